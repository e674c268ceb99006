"""The old page of a round: a table, a row for each match."""

from typing import Any, Final

from selectolax.lexbor import LexborNode

from retoma.apps.matches.clients.parsers.classic import words
from retoma.apps.matches.clients.parsers.reading import Page, word
from retoma.apps.matches.sites import Site

ROOT: Final = "table.jogos"


def read(page: Page, site: Site) -> dict[str, Any]:
    table = page.one(ROOT)
    return {
        "league": page.text("#topo .liga"),
        "season": page.text("#topo .temporada"),
        "round": words.number_in(words.ORDINAL, page.text("#topo .rodada")),
        "total": words.number_in(words.TOTAL, page.text("caption", table)),
        "matches": tuple(_match(page, row, site) for row in page.many("tr.jogo", table)),
    }


def _match(page: Page, row: LexborNode, site: Site) -> dict[str, Any]:
    link = ".placar a"
    return {
        "url": page.attribute(page.one(link, row), link, "href"),
        "home": page.text(".mandante", row),
        "away": page.text(".visitante", row),
        "kickoff": words.kickoff(page.text(".data", row), site.league.zone),
        "status": word(words.STATUSES, page.text(".situacao", row)),
    }
