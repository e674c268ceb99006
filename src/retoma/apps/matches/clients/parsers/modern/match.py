"""The relaunched page of a match: one timeline, a list of statistics, two line-ups."""

from typing import Any, Final

from selectolax.lexbor import LexborNode

from retoma.apps.matches.clients.parsers.modern import words
from retoma.apps.matches.clients.parsers.reading import Page, text_of, word
from retoma.apps.matches.schemas import BEFORE
from retoma.apps.matches.sites import Site

ROOT: Final = 'main[data-page="match"]'
TIMELINE: Final = "ol[data-timeline]"


def read(page: Page, _: Site) -> dict[str, Any]:
    main = page.one(ROOT)
    head = page.one("header", main)
    status = word(words.STATUSES, page.attribute(main, ROOT, "data-status"))
    before = status in BEFORE
    awarded = page.attribute(main, ROOT, "data-status").casefold() in words.AWARDED
    return {
        "league": page.attribute(main, ROOT, "data-league"),
        "season": page.attribute(main, ROOT, "data-season"),
        "round": page.attribute(main, ROOT, "data-round"),
        "home": page.text('h2[data-side="home"]', head),
        "away": page.text('h2[data-side="away"]', head),
        "kickoff": words.kickoff(page.one("time", head)),
        "stadium": page.text("address", head),
        "status": status,
        "walkover": awarded,
        "score": words.score(page.one("output[data-score]", head)),
        "events": tuple(_event(page, row) for row in page.many("li", page.one(TIMELINE))),
        "statistics": _statistics(page, needed=not before and not awarded),
        "lineups": _lineups(page, needed=not before and not awarded),
    }


def _event(page: Page, row: LexborNode) -> dict[str, Any]:
    off = row.css_first("del")
    return {
        "minute": page.attribute(row, f"{TIMELINE} li", "data-minute"),
        "added": row.attributes.get("data-added"),
        "side": page.attribute(row, f"{TIMELINE} li", "data-side"),
        "kind": word(words.KINDS, page.attribute(row, f"{TIMELINE} li", "data-type")),
        "player": page.text("cite", row),
        "other": None if off is None else text_of(off),
    }


def _statistics(page: Page, *, needed: bool) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for row in page.many("[data-stat]", page.one("dl[data-stats]")):
        name = words.STATISTICS.get(row.attributes.get("data-stat") or "")
        cells = page.many("dd", row)
        if len(cells) != 2:
            raise page.lacks("dl[data-stats] dd")
        if name is not None:
            found[name] = {"home": text_of(cells[0]), "away": text_of(cells[1])}
    return found if found or needed else None


def _lineups(page: Page, *, needed: bool) -> dict[str, Any] | None:
    if not needed and not page.many("[data-lineup]"):
        return None
    return {
        side: {
            "starters": _players(page, f'[data-lineup="{side}"] [data-role="starting"]'),
            "bench": _players(page, f'[data-lineup="{side}"] [data-role="bench"]'),
            "staff": tuple(
                text_of(each) for each in page.many(f'[data-lineup="{side}"] [data-coach]')
            ),
        }
        for side in ("home", "away")
    }


def _players(page: Page, list_: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"number": page.text("[data-number]", row), "name": page.text("[data-name]", row)}
        for row in page.many("li", page.one(list_))
    )
