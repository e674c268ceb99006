"""`retoma audit`: what is known of a job or a batch, signed; and whether it is what was signed."""

import asyncio
from pathlib import Path
from typing import Final

from retoma import bundle, settings
from retoma.bootstrap import build_vault
from retoma.bundle import PURPOSE, Bundle
from retoma.cli.backup import id_of
from retoma.console.kit import ask, print_json
from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.secret import Secret
from retoma.services.audit import Subject
from retoma.settings import Settings
from retoma.vault import EnvKeys, KeyFile, Signer, key_file, signer_with
from retoma.words import say, speak, tell

WHATS: Final = {"job": say("job"), "batch": say("batch")}


def write(
    database: str | None, as_json: bool, file: Path, *, job: int | None, batch: int | None
) -> None:
    if (job is None) == (batch is None):
        raise BadInput(say("say of what: --job N or --batch N"))
    chosen = settings.read(database_url=database)

    async def written(app: Retoma) -> Bundle:
        opened = await app.database()
        signer = await build_vault(chosen, opened, app.ids).signer(PURPOSE)
        return await bundle.write(opened, Subject(job, batch), file, signer, chosen.timezone)

    made = ask(database, written)
    _say(
        made,
        file,
        as_json,
        speak("{file}: {lines} lines about {what}, signed", **_told(made, file)),
    )


def verify(database: str | None, as_json: bool, file: Path) -> None:
    found = bundle.verify(file, _signer(settings.read(database_url=database)))
    _say(
        found,
        file,
        as_json,
        speak("{file} is what was signed: {lines} lines about {what}", **_told(found, file)),
    )


def _signer(chosen: Settings) -> Signer:
    """With the key alone where it is told: whoever verifies need not have the database."""
    if chosen.secret_key is not None:
        return signer_with(EnvKeys(Secret(chosen.secret_key.get_secret_value())), PURPOSE)
    told, url = chosen.secret_key_file, chosen.database_url
    embedded = url.startswith("sqlite:")
    id_ = "" if told is not None or embedded else asyncio.run(id_of(url))
    return signer_with(KeyFile(key_file(told, url, id_)), PURPOSE)


def _told(made: Bundle, file: Path) -> dict[str, object]:
    [(what, id_)] = made.of.items()
    return {"file": file, "lines": made.lines, "what": f"{tell(WHATS[what])} {id_}"}


def _say(made: Bundle, file: Path, as_json: bool, sentence: str) -> None:
    if not as_json:
        print(sentence)
        return
    told = {"at": made.at, "database_id": made.database, "lines": made.lines, "key": made.key}
    print_json({"file": str(file), "of": made.of, **told})
