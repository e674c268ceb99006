"""`retoma matches …`: pages that were refused, read again."""

from dataclasses import asdict
from typing import Any

from retoma import settings
from retoma.apps.matches import APP
from retoma.apps.matches.replay import Replay, Reread
from retoma.apps.tools import Tools
from retoma.cli.apps import ask_in
from retoma.cli.desk import ACTOR, clean, console, print_json, table
from retoma.words import speak

SHOWN = ("what", "id", "round", "key", "change")


def replay(
    database: str | None,
    as_json: bool,
    code: str | None,
    *,
    league: str | None,
    layouts: str | None,
    apply: bool,
) -> None:
    url = settings.read(database_url=database).matches_url

    async def reread(tools: Tools) -> list[Reread]:
        how: dict[str, Any] = {"league": league, "layouts": layouts, "apply": apply}
        return await Replay(tools.retoma, url).of_code(code, actor=ACTOR, **how)

    found = ask_in(APP, database, reread)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    page = table(*SHOWN, "detail")
    for each in found:
        page.add_row(*(clean(getattr(each, name)) for name in SHOWN), clean(_detail(each)))
    if found:
        console().print(page)
    readable = sum(each.change in ("stored", "discovered") for each in found)
    promoted = sum(each.promoted for each in found)
    print(
        speak(
            "{n} pages read again: {readable} can be read, {promoted} were promoted",
            n=len(found),
            readable=readable,
            promoted=promoted,
        )
    )


def _detail(each: Reread) -> str:
    """What it would be, or what it is still refused for."""
    told = each.after or {}
    if each.change == "stored":
        score = told["score"]
        return f"{score['home']}-{score['away']}, {len(told['events'])} events"
    if each.change == "discovered":
        return f"{len(told['matches'])} matches"
    return str(told.get("path") or told.get("selector") or told.get("status") or "")
