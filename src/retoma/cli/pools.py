"""`retoma pools`: shared exclusive things, who holds them, and switching them by hand.

What a thing is (an address with its password, say) is told to those who hold it, not here.
"""

from collections.abc import Sequence
from typing import Any

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.store.pool import ItemSeen
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.pools.list())
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no pools"))
        return
    page = table(
        speak("pool"), speak("things"), speak("on"), speak("held"), speak("at least on")
    )
    for each in found:
        counts = (each.items, each.on, each.held, each.rules.healthy)
        page.add_row(clean(each.name), *map(str, counts))
    console().print(page)


def show(database: str | None, as_json: bool, pool: str) -> None:
    found = ask(database, lambda app: app.pools.items(pool))
    if as_json:
        print_json([_document(each) for each in found])
        return
    page = table(
        speak("thing"),
        speak("vendor"),
        speak("state"),
        speak("why"),
        speak("held by job"),
        speak("until"),
        speak("uses"),
        speak("failures"),
        speak("score"),
        speak("last used"),
    )
    for each in found:
        page.add_row(
            clean(each.name),
            clean(each.vendor),
            each.state,
            clean(each.reason or ""),
            "" if each.job is None else str(each.job),
            each.scope or "",
            str(each.uses),
            str(each.failures),
            f"{each.score:.2f}",
            at(each.used_at),
        )
    console().print(page)


def switch(
    database: str | None,
    as_json: bool,
    pool: str,
    things: Sequence[str],
    *,
    on: bool,
    why: str,
) -> None:
    ask(database, lambda app: app.pools.switch(pool, things, on=on, reason=why, actor=ACTOR))
    if as_json:
        print_json({"pool": pool, "things": list(things), "state": "on" if on else "off"})
        return
    names = {"pool": clean(pool), "things": clean(", ".join(things))}
    if on:
        print(speak("pool {pool}: switched on {things}", **names))
    else:
        print(
            speak("pool {pool}: switched off {things}; who holds it may end with it", **names)
        )


def free(database: str | None, as_json: bool, pool: str, thing: str) -> None:
    ask(database, lambda app: app.pools.declare_free(pool, thing, actor=ACTOR))
    if as_json:
        print_json({"pool": pool, "thing": thing, "held": False})
    else:
        print(speak("pool {pool}: {thing} is free", pool=clean(pool), thing=clean(thing)))


def _document(item: ItemSeen) -> dict[str, Any]:
    return {
        "name": item.name,
        "vendor": item.vendor,
        "state": item.state,
        "reason": item.reason,
        "job": item.job,
        "scope": item.scope,
        "uses": item.uses,
        "failures": item.failures,
        "score": item.score,
        "ready_at": item.ready_at,
        "used_at": item.used_at,
    }
