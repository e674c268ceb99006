"""`retoma secrets`: where secrets lie, never what they are; and a new key for those sealed here."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from retoma import settings
from retoma.bootstrap import build_vault
from retoma.console.exits import Exit, Stop
from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.library import Retoma
from retoma.vault import Place, Rotated, SecretSeen, Vault
from retoma.words import say, speak

T = TypeVar("T")


def list_(database: str | None, as_json: bool) -> None:
    found = _with_vault(database, _all)
    if as_json:
        print_json([_document(each) for each in found])
        return
    if not found:
        console().print(speak("no secrets"))
        return
    page = table(
        *(speak("of"), speak("row"), speak("lies"), speak("in"), speak("ends with")),
        *(speak("since"), speak("set by")),
    )
    for each in found:
        page.add_row(
            *(clean(f"{each.place.table}.{each.place.column}"), clean(each.place.row)),
            *(each.source, clean(each.where), clean(each.last4 or "")),
            *(at(each.set_at), clean(each.set_by)),
        )
    console().print(page)


def rotate(database: str | None, as_json: bool) -> None:
    done = _with_vault(database, lambda vault: vault.rotate(actor=ACTOR))
    if as_json:
        stuck = [str(each) for each in done.unreadable]
        print_json({"key": done.key, "sealed": done.sealed, "unreadable": stuck})
    else:
        print(speak("{n} secrets are sealed with key {key} now", n=done.sealed, key=done.key))
    _refuse_unreadable(done)


async def _all(vault: Vault) -> list[SecretSeen]:
    found: list[SecretSeen] = []
    after: Place | None = None
    while page := await vault.page(after):
        found += page
        after = page[-1].place
    return found


def _with_vault(database: str | None, verb: Callable[[Vault], Awaitable[T]]) -> T:
    chosen = settings.read(database_url=database)

    async def asked(app: Retoma) -> T:
        return await verb(build_vault(chosen, await app.database(), app.ids))

    return ask(database, asked)


def _refuse_unreadable(done: Rotated) -> None:
    if done.unreadable:
        raise Stop(
            Exit.FAILED,
            say(
                "{n} secrets do not open and keep their old key; set them anew: {places}",
                n=len(done.unreadable),
                places=", ".join(map(str, done.unreadable[:10])),
            ),
        )


def _document(seen: SecretSeen) -> dict[str, Any]:
    return {
        "table": seen.place.table,
        "column": seen.place.column,
        "row": seen.place.row,
        "source": seen.source,
        "where": seen.where,
        "last4": seen.last4,
        "set_at": seen.set_at,
        "set_by": seen.set_by,
    }
