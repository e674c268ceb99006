"""`retoma backup` and `retoma restore`: a whole house into one file, and back."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from retoma import backup, db, settings
from retoma.backup import Manifest
from retoma.console.kit import ACTOR, clean, console, must_exist, print_json, reachable, shown
from retoma.db import migrations
from retoma.db.migrations import ENGINE, Room
from retoma.engine.ports import Ids
from retoma.engine.rules.errors import BadInput
from retoma.manifest import application_of
from retoma.settings import Settings
from retoma.vault import key_file
from retoma.words import say, speak


def back_up(database: str | None, as_json: bool, file: Path, *, secret_key: bool) -> None:
    chosen = settings.read(database_url=database)
    must_exist(chosen.database_url)
    id_ = asyncio.run(id_of(chosen.database_url))
    installation = _place(chosen, id_, secret_key=secret_key)
    with _told(quiet=as_json) as report:
        made = backup.back_up(installation, file, report)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, **made.document})
        return
    print(
        speak(
            "{file}: {rows} rows of {tables} tables and {files} files of evidence, {size} bytes",
            file=file,
            rows=sum(each.rows for each in made.tables),
            tables=len(made.tables),
            files=made.evidence["files"],
            size=size,
        )
    )
    for line in _missing(made, chosen):
        print(line)


def restore(database: str | None, as_json: bool, file: Path) -> None:
    chosen = settings.read(database_url=database)
    url = chosen.database_url
    asyncio.run(reachable(db.open(url)))
    with _told(quiet=as_json) as report, backup.opened(file, report) as found:
        about = found.manifest.about
        installation = _place(chosen, about.database, secret_key=True)
        reopened = backup.restore(
            found,
            installation,
            incarnation=Ids().new(),
            migrations_of=_room,
            actor=ACTOR,
            report=report,
        )
    if as_json:
        told = {"runners": reopened.runners, "jobs": reopened.jobs}
        print_json({"database": shown(url), **found.manifest.document, "taken_back": told})
        return
    print(
        speak(
            "{url} is as it was at {at}; {runners} runners of then are shut out, {jobs} jobs of"
            " theirs wait again",
            url=shown(url),
            at=f"{about.at:%Y-%m-%d %H:%M:%S} UTC",
            runners=reopened.runners,
            jobs=reopened.jobs,
        )
    )


def _place(chosen: Settings, database: str, *, secret_key: bool) -> backup.Installation:
    file = None
    if secret_key and chosen.secret_key is None:
        file = key_file(chosen.secret_key_file, chosen.database_url, database)
    return backup.Installation(chosen.database_url, chosen.evidence, file)


def _missing(made: Manifest, chosen: Settings) -> Iterator[str]:
    """What is not in the file, and who has to keep it."""
    if not made.evidence["included"]:
        yield speak(
            "evidence in {where} is not in it: keep that too", where=made.evidence["where"]
        )
    if chosen.secret_key is not None:
        yield speak("RETOMA_SECRET_KEY is not in it: without it no secret opens again")


async def id_of(url: str) -> str:
    """Asked without a Retoma, which would bring the schema up: one backs up before that."""
    await reachable(db.open(url))
    opened = db.open(url)
    try:
        await migrations.status(opened)  # refuses what is not ours
        return await opened.read(lambda tx: str(tx.all(ID)[0][0]))
    finally:
        opened.close()


def _room(name: str) -> Room:
    if name == ENGINE.name:
        return ENGINE
    found = application_of(name)
    if found.migrations is None:
        raise BadInput(say("{name} has no tables", name=name))
    return Room(found.name, found.migrations)


@contextmanager
def _told(*, quiet: bool) -> Iterator[backup.Progress]:
    out = console()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, n: bar.update(task, description=clean(name), advance=n)


ID = db.adhoc("SELECT value FROM meta WHERE name = 'database'")
