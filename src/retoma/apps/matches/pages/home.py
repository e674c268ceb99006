"""The grid of seasons: every round a cell, live; how rounds are begun; what pages are refused for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from markupsafe import Markup
from pydantic import Field
from starlette.responses import Response

from retoma.apps.matches import service, store
from retoma.apps.matches.inputs import NewScrape
from retoma.apps.matches.model import TaskStatus
from retoma.apps.matches.pages.presenters import (
    CONCERN,
    LOOKS,
    PAGE,
    REPLAY,
    bar_of,
    led,
    meaning_of,
    round_at,
    share_of,
)
from retoma.apps.matches.service.boards import Season
from retoma.apps.matches.sites import league_name, sites
from retoma.apps.matches.store.boards import Refused
from retoma.apps.matches.store.runs import Scrape
from retoma.engine import store as engine
from retoma.web.house import AVisit
from retoma.web.pages.asked import Blank, Name, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

PAUSE: Final = 1.0  # seconds between two drawings: each round of each season is counted
YEARS: Final = (1, 9_999)
NUMBERS: Final = ("season", "round", "to_round")
FIELDS: Final = ("league", *NUMBERS)
NUMBER: Final = re.compile(r"\s*[0-9]{1,9}\s*")


class Wanted(StrEnum):
    """Which rounds are shown of a season."""

    INCOMPLETE = "incompletas"
    FAILED = "falhas"
    COMPLETE = "completas"


LeagueOf = Annotated[Name | None, Blank, Query()]
SeasonOf = Annotated[Annotated[int, Field(ge=YEARS[0], le=YEARS[1])] | None, Blank, Query()]
WantedOf = Annotated[Wanted | None, Blank, Query()]


def _shown(season: Season, wanted: Wanted | None) -> list[int]:
    return [each for each in season.numbers if _is(season.rounds.get(each), wanted)]


def _is(scrape: Scrape | None, wanted: Wanted | None) -> bool:
    match wanted:
        case None:
            return True
        case Wanted.COMPLETE:
            return scrape is not None and scrape.complete
        case Wanted.FAILED:
            return scrape is not None and (
                scrape.failed > 0 or scrape.status is TaskStatus.FAILED
            )
        case Wanted.INCOMPLETE:
            return scrape is not None and not scrape.complete


@dataclass(frozen=True, slots=True)
class HomeScreen(Screen):
    """Seasons, and what pages are refused for."""

    league: str | None = None
    season: int | None = None
    wanted: Wanted | None = None

    @property
    def concern(self) -> Concern:
        return replace(CONCERN, pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        seasons, refused = await service.boards.get_seasons(
            retoma, league=self.league, season=self.season
        )
        return [self._alerts(refused), self._seasons(seasons)]

    def _alerts(self, refused: Sequence[Refused]) -> Region:
        html = self.pages.render(
            "matches/home_alerts.html",
            self.view,
            alerts=store.runs.ALERTS,
            refused=[
                (
                    each,
                    league_name(each.league),
                    meaning_of(self.view, each.code),
                    _replay_of(each),
                )
                for each in refused
            ],
        )
        return drawn("home-alerts", html)

    def _seasons(self, seasons: Sequence[Season]) -> Region:
        """Its rows are the cells of all rounds: what changed in one is all that is sent."""
        cells: dict[str, Markup] = {}
        tops: dict[str, Markup] = {}
        shown = []
        for each in seasons:
            own = {
                f"round-{each.id}-{n}": self._cell(each, n) for n in _shown(each, self.wanted)
            }
            tops[f"season-{each.id}"] = self.pages.render(
                "matches/season_head.html", self.view, season=each
            )
            cells |= own
            shown.append((each, tops[f"season-{each.id}"], list(own.values())))
        html = self.pages.render(
            "matches/home_seasons.html",
            self.view,
            seasons=shown,
            filtered=any((self.league, self.season, self.wanted)),
        )
        return drawn("home-seasons", html, tops | cells)

    def _cell(self, season: Season, number: int) -> Markup:
        scrape = season.rounds.get(number)
        given: dict[str, Any] = {"season": season, "number": number, "scrape": scrape}
        if scrape is not None:
            given |= {
                "look": LOOKS[TaskStatus.FAILED if scrape.failed else scrape.status],
                "bar": bar_of(scrape),
                "share": share_of(scrape),
                "place": round_at(scrape.id),
            }
        return self.pages.render("matches/round_cell.html", self.view, **given)


def _replay_of(refused: Refused) -> str:
    return REPLAY + query_of({"liga": refused.league, "codigo": refused.code})


def home_screen(
    who: ALooker,
    liga: LeagueOf = None,
    temporada: SeasonOf = None,
    situacao: WantedOf = None,
) -> HomeScreen:
    return HomeScreen(who.pages, who.view, liga, temporada, situacao)


AScreen = Annotated[HomeScreen, Depends(home_screen)]


@routes.get("/matches")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    now = await (await who.house.retoma.database()).read(engine.now)
    return await who.page(
        screen,
        "matches/home.html",
        chosen=screen,
        leagues=[each.league for each in sites().values()],
        wanted=list(Wanted),
        looks=LOOKS,
        year=screen.season or now.year,
    )


serve_screen(routes, "/matches", home_screen)


@routes.post("/matches")
async def start(actor: Operator, who: ALooker, visit: AVisit, request: Request) -> Response:
    """ "Começar": a round, or a range of them; one that is open already is shown."""
    form = await form_of(request)
    rounds = filled(NewScrape, _asked(form)).rounds()
    begun = await who.house.retoma.write(
        partial(
            service.scrapes.start_rounds,
            rounds=rounds,
            actor=actor.name,
            correlation=visit.correlation,
        )
    )
    if len(begun) == 1 and form.one("stay") is None:
        return led(who, round_at(begun[0][0]))
    new = sum(is_new for _, is_new in begun)
    said = say("rounds started: {n} of {all}", n=new, all=len(begun))
    return did(who, who.view.tell(said), PAGE)


def _asked(form: Form) -> dict[str, Any]:
    """The fields of the form; or a cell that was clicked, which names its round itself."""
    told = {name: form.one(name) for name in FIELDS}
    cell = form.one("wanted")
    if cell is not None:
        told |= dict(zip(FIELDS, cell.split(" "), strict=False))
    return {name: _number(given, name) for name, given in told.items()}


def _number(given: str | None, name: str) -> str | int | None:
    """A number where one is wanted; what is none is refused by whoever checks it."""
    if given is None or name not in NUMBERS or not NUMBER.fullmatch(given):
        return given
    return int(given)
