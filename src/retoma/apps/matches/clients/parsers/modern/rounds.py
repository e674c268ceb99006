"""The relaunched page of a round: a card for each match."""

from typing import Any, Final

from selectolax.lexbor import LexborNode

from retoma.apps.matches.clients.parsers.modern import words
from retoma.apps.matches.clients.parsers.reading import Page, word
from retoma.apps.matches.sites import Site

ROOT: Final = 'main[data-page="round"]'
LIST: Final = "section[data-matches]"


def read(page: Page, _: Site) -> dict[str, Any]:
    main = page.one(ROOT)
    section = page.one(LIST, main)
    return {
        "league": page.attribute(main, ROOT, "data-league"),
        "season": page.attribute(main, ROOT, "data-season"),
        "round": page.attribute(main, ROOT, "data-round"),
        "total": page.attribute(section, LIST, "data-matches"),
        "matches": tuple(_match(page, card) for card in page.many("article", section)),
    }


def _match(page: Page, card: LexborNode) -> dict[str, Any]:
    return {
        "url": page.attribute(page.one("a", card), "article a", "href"),
        "home": page.text('[data-side="home"]', card),
        "away": page.text('[data-side="away"]', card),
        "kickoff": words.kickoff(page.one("time", card)),
        "status": word(words.STATUSES, page.attribute(card, "article", "data-status")),
    }
