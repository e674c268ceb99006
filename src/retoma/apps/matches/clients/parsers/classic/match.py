"""The old page of a match: a list for goals, one for cards, one for substitutions, two tables."""

from collections.abc import Iterator
from typing import Any, Final

from selectolax.lexbor import LexborNode

from retoma.apps.matches.clients.parsers.classic import words
from retoma.apps.matches.clients.parsers.reading import Page, text_of, word
from retoma.apps.matches.model import EventKind
from retoma.apps.matches.schemas import BEFORE
from retoma.apps.matches.sites import Site

ROOT: Final = "#jogo"
SQUADS: Final = {"home": ".escalacao.mandante", "away": ".escalacao.visitante"}


def read(page: Page, site: Site) -> dict[str, Any]:
    status = word(words.STATUSES, page.text("#jogo .situacao"))
    before = status in BEFORE
    awarded = page.text("#jogo .situacao").casefold() in words.AWARDED
    return {
        "league": page.text("#topo .liga"),
        "season": page.text("#topo .temporada"),
        "round": words.number_in(words.ORDINAL, page.text("#topo .rodada")),
        "home": page.text(".confronto .mandante"),
        "away": page.text(".confronto .visitante"),
        "kickoff": words.kickoff(page.text("#jogo .data"), site.league.zone),
        "stadium": page.text("#jogo .estadio"),
        "status": status,
        "walkover": awarded,
        "score": words.score(page.text(".confronto .placar")),
        "events": tuple(_events(page)),
        "statistics": _statistics(page, needed=not before and not awarded),
        "lineups": _lineups(page, needed=not before and not awarded),
    }


def _events(page: Page) -> Iterator[dict[str, Any]]:
    for row in page.many("li", page.one("ul.gols")):
        mark = " ".join(text_of(each) for each in page.many("i", row))  # most goals have none
        yield {**_event(page, row, ".jogador"), "kind": word(words.GOALS, mark)}
    for row in page.many("li", page.one("ul.cartoes")):
        yield {**_event(page, row, ".jogador"), "kind": words.card(row.attributes.get("class"))}
    for row in page.many("li", page.one("ul.substituicoes")):
        came = _event(page, row, ".entra")
        yield {**came, "kind": EventKind.SUBSTITUTION, "other": page.text(".sai", row)}


def _event(page: Page, row: LexborNode, player: str) -> dict[str, Any]:
    return {
        **words.minute(page.text("b", row)),
        "side": words.side(row.attributes.get("class")),
        "player": page.text(player, row),
    }


def _statistics(page: Page, *, needed: bool) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for row in page.many("tr", page.one("table.estatisticas")):
        name = words.STATISTICS.get(page.text("th", row).casefold())
        cells = page.many("td", row)
        if len(cells) != 2:
            raise page.lacks("table.estatisticas td")
        if name is not None:
            found[name] = {"home": text_of(cells[0]), "away": text_of(cells[1])}
    return found if found or needed else None


def _lineups(page: Page, *, needed: bool) -> dict[str, Any] | None:
    if not needed and not page.many(".escalacao"):
        return None
    return {
        side: {
            "starters": _players(page, f"{squad} ol.titulares"),
            "bench": _players(page, f"{squad} ol.reservas"),
            "staff": tuple(text_of(each) for each in page.many(f"{squad} .tecnico")),
        }
        for side, squad in SQUADS.items()
    }


def _players(page: Page, list_: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"number": page.attribute(row, f"{list_} li", "value"), "name": text_of(row)}
        for row in page.many("li", page.one(list_))
    )
