"""The site: a page for each round and each match, drawn by the layout of now, at the step of now."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from retoma.apps.matches.sandbox.layouts import DRAWN, Layout, Listing
from retoma.apps.matches.sandbox.odd import Odd, oddly
from retoma.apps.matches.sandbox.season import Match, Season
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault
from retoma.words import say

DEEP: Final = 100_000  # elements, each in the other
DROPS: Final = 20
PAUSE: Final = 0.02  # seconds between two drops
HUGE: Final = 50  # MiB
MIB: Final = 1 << 20
ELSEWHERE: Final = "https://elsewhere.example/jogo/1"
LOOPBACK: Final = "http://127.0.0.1:1/admin"
STEPS: Final = range(101)  # that a world may be told
AWAY: Final[Mapping[Odd | None, str]] = {Odd.MOVED: "{path}", Odd.MOVED_AWAY: ELSEWHERE}
LINKS: Final[Mapping[Odd, str]] = {Odd.OFF_SITE: ELSEWHERE, Odd.TO_LOOPBACK: LOOPBACK}


class World:
    """What a test may change while the site is asked: layout, step, and who is odd."""

    def __init__(self, season: Season) -> None:
        self.season = season
        self.step = 0
        self._layouts: dict[str, Layout] = dict.fromkeys(season.leagues, Layout.CLASSIC)
        self._odd: dict[tuple[str, str], Odd] = {}

    def layout(self, league: str) -> Layout:
        return self._layouts[league]

    def draw(self, layout: Layout, league: str | None = None) -> None:
        """From now on every page, or every page of one league, looks like this."""
        for each in self.season.leagues if league is None else [league]:
            self._layouts[each] = layout

    def make_odd(self, league: str, key: str, odd: Odd | None) -> None:
        """`key`: who plays whom, `flamengo-x-santos`. None: it is as it should be again."""
        teams = {team.key for team in self.season.leagues[league].teams}
        if not set(key.split("-x-")) < teams or key.count("-x-") != 1:
            raise BadInput(say("nobody plays {key!r} in {league}", key=key, league=league))
        self._odd.pop((league, key), None)
        if odd is not None:
            self._odd[league, key] = odd

    def odd(self, match: Match) -> Odd | None:
        return self._odd.get((match.league.name, match.key))

    def tell(self, told: Mapping[str, Any]) -> None:
        """As somebody asks for it over HTTP; what makes no sense is refused, and changes nothing."""
        with _understood():
            match told:
                case {"step": int(step), **rest} if not rest and step in STEPS:
                    self.step = step
                case {"layout": str(layout), **rest} if set(rest) <= {"league"}:
                    self.draw(Layout(layout), self._league(rest.get("league")))
                case {"odd": odd, "league": league, "match": str(key), **rest} if not rest:
                    self.make_odd(str(league), key, None if odd is None else Odd(odd))
                case _:
                    raise ValueError

    def state(self) -> dict[str, Any]:
        odd = [
            {"league": league, "match": key, "odd": odd}
            for (league, key), odd in self._odd.items()
        ]
        return {"step": self.step, "layouts": self._layouts, "odd": odd}

    def _league(self, name: Any) -> str | None:
        if name is not None and name not in self.season.leagues:
            raise ValueError
        return None if name is None else str(name)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError):
        raise BadInput(
            say("a world is told a step, a layout (of a league), or what is odd about a match")
        ) from None


def build_pages(world: World) -> Starlette:
    season = world.season

    async def round_(request: Request) -> Response:
        league, year, number = (
            request.path_params[name] for name in ("league", "year", "round")
        )
        known = season.leagues.get(league)
        if known is None or year != known.year or not 1 <= number <= known.rounds:
            return not_found()
        matches = season.round(league, number, world.step)
        listed = list(_listed(world, matches))
        listing = Listing(
            league=known, round=number, total=_total(world, matches), matches=tuple(listed)
        )
        return HTMLResponse(DRAWN[world.layout(league)].round(listing))

    async def match(request: Request) -> Response:
        league, year, id_ = (request.path_params[name] for name in ("league", "year", "id"))
        known = season.leagues.get(league)
        found = None if known is None else season.by_id(league, id_, world.step)
        if known is None or year != known.year or found is None or not found.published:
            return not_found()
        if request.url.path == found.path and world.odd(found) in AWAY:
            address = AWAY[world.odd(found)].format(path=found.path.replace("jogo", "partida"))
            return Response(status_code=301, headers={"location": address})
        return _drawn(world, found)

    return Starlette(
        routes=[
            Route("/{league}/{year:int}/rodada/{round:int}", round_),
            Route("/{league}/{year:int}/jogo/{id:int}", match),
            Route("/{league}/{year:int}/partida/{id:int}", match),
        ]
    )


def _total(world: World, matches: tuple[Match, ...]) -> int:
    odd = [world.odd(each) for each in matches]
    return len(matches) + odd.count(Odd.LISTED_TWICE) - odd.count(Odd.UNLISTED)


def _listed(world: World, matches: tuple[Match, ...]) -> Iterator[tuple[Match, str]]:
    for each in matches:
        odd = world.odd(each)
        if odd in (Odd.NOT_LISTED, Odd.UNLISTED):
            continue
        link = LINKS.get(odd, each.path) if odd is not None else each.path
        yield each, link
        if odd is Odd.LISTED_TWICE:
            yield each, link


def _drawn(world: World, found: Match) -> Response:
    odd = world.odd(found)
    draw = DRAWN[world.layout(found.league.name)].match
    match odd:
        case Odd.OTHER:
            turn = (found.place + 1) % found.league.each
            return HTMLResponse(
                draw(world.season.match(found.league.name, found.round, turn, world.step), None)
            )
        case Odd.ALIEN:
            riddle = '<form id="captcha">Você é humano?</form>'
            return HTMLResponse(f"<!doctype html><title>Verificação</title>{riddle}")
        case Odd.LATIN_1 | Odd.LATIN_1_REFUSED:
            page = draw(oddly(found, odd), None).replace(
                '<meta charset="utf-8">', '<meta charset="iso-8859-1">'
            )
            return HTMLResponse(
                page.encode("latin-1", "xmlcharrefreplace"),
                media_type="text/html; charset=iso-8859-1",
            )
        case Odd.GARBLED:
            return HTMLResponse(draw(found, None).encode("latin-1", "replace"))
        case Odd.DEEP:
            return HTMLResponse(draw(found, None).replace("</body>", "<div>" * DEEP))
        case Odd.DRIP:
            return StreamingResponse(_dripping(draw(found, None)), media_type="text/html")
        case Odd.HUGE:
            return StreamingResponse(_huge(draw(found, None)), media_type="text/html")
        case _:
            return HTMLResponse(draw(oddly(found, odd), odd))


async def _dripping(page: str) -> AsyncIterator[bytes]:
    half = page.encode()[: len(page) // 2]
    for at in range(0, len(half), len(half) // DROPS):
        yield half[at : at + len(half) // DROPS]
        await Clock().sleep(PAUSE)


async def _huge(page: str) -> AsyncIterator[bytes]:
    blank = b" " * MIB
    for _ in range(HUGE):
        yield blank
        await Clock().give_way()  # who has had enough is heard
    yield page.encode()


def refusal(fault: Fault) -> Response:
    return HTMLResponse(
        f"<!doctype html><title>Erro</title><h1>Erro {fault.status}</h1>", fault.status
    )


def not_found() -> Response:
    return HTMLResponse("<!doctype html><title>Erro</title><h1>Página não encontrada</h1>", 404)


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    return {"input": asked.path, "caller": asked.headers.get("user-agent")}


def told_in(body: bytes) -> Mapping[str, Any]:
    with _understood():
        told = json.loads(body)
        if not isinstance(told, dict):
            raise TypeError
        return told
