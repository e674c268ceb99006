"""Matches that are stored: asked for, one of them with all that happened in it, and taken away as a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from retoma.apps.matches import service
from retoma.apps.matches.inputs import Deleted, MatchId, Reason
from retoma.apps.matches.model import GOALS, EventKind, Side
from retoma.apps.matches.pages.home import LeagueOf, SeasonOf
from retoma.apps.matches.pages.presenters import (
    CONCERN,
    KINDS,
    PAGE,
    STATISTICS,
    STORED,
    led,
    match_at,
    round_at,
    short,
)
from retoma.apps.matches.sites import league_name, sites
from retoma.apps.matches.store.games import StoredMatch, WholeMatch
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CursorOf, Name, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import form_of, page_router, serve_screen
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

ROWS: Final = 50
FILES: Final = (("excel", "csv", "Excel"), ("csv", "csv", "CSV"), ("json", "json", "JSON"))
WIDTH: Final = 100.0  # of a statistic, both sides together
NO_SUCH_MATCH: Final = say("No results")
NO_MATCHES: Final = say(
    "No match is stored yet. Scrape a round: each match appears here once it is whole."
)
HAND: Final = "job "  # whoever is not called so has stored it as a person

RoundOf = Annotated[Annotated[int, Field(ge=1, le=1_000)] | None, Blank, Query()]
TeamOf = Annotated[Name | None, Blank, Query()]


# — all of them —


@dataclass(frozen=True, slots=True)
class MatchesScreen(Screen):
    """Matches that are stored, by what is asked of them."""

    league: str | None = None
    season: int | None = None
    round: int | None = None
    team: str | None = None
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    @property
    def asked(self) -> dict[str, object]:
        """As the API calls it: the files are asked for so."""
        return {
            "league": self.league,
            "season": self.season,
            "round": self.round,
            "team": self.team,
        }

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("matches", f"{self.league} {self.season} {self.round} {self.team}")
        [after] = stamp.read(self.cursor, int) or [0]
        found = await service.games.list_matches(
            self.pages.house.retoma,
            limit=ROWS + 1,
            after=after,
            league=self.league,
            season=self.season,
            round_=self.round,
            team=self.team,
        )
        listed, more = found[:ROWS], len(found) > ROWS
        rows = {
            f"match-{each.id}": self.pages.render(
                "matches/match_row.html",
                self.view,
                match=each,
                league=league_name(each.league),
                kickoff=short(self.view, each.kickoff),
                place=match_at(each.id),
                by_hand=is_by_hand(each),
            )
            for each in listed
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        filtered = self._link() != STORED
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_MATCH if filtered else NO_MATCHES,
            way=(say("Clear"), STORED) if filtered else (say("Scrape a round"), PAGE),
            following=self._link(stamp.write(listed[-1].id)) if more else None,
            first=self.cursor and self._link(),
            by_age=False,
        )
        return [drawn("rows", table, rows), turns]

    def _link(self, cursor: str | None = None) -> str:
        asked = {
            "liga": self.league,
            "temporada": self.season,
            "rodada": self.round,
            "time": self.team,
            "cursor": cursor,
        }
        return STORED + query_of(asked)


def is_by_hand(match: StoredMatch) -> bool:
    return not match.stored_by.startswith(HAND)


def matches_screen(
    who: ALooker,
    liga: LeagueOf = None,
    temporada: SeasonOf = None,
    rodada: RoundOf = None,
    time: TeamOf = None,
    cursor: CursorOf = None,
) -> MatchesScreen:
    return MatchesScreen(who.pages, who.view, liga, temporada, rodada, time, cursor)


AList = Annotated[MatchesScreen, Depends(matches_screen)]


@routes.get("/matches/partidas")
async def show_all(_: Viewer, who: ALooker, screen: AList) -> Response:
    leagues = [each.league for each in sites().values()]
    wanted = [each for each in leagues if screen.league in (None, each.key)]
    return await who.page(
        screen,
        "matches/matches.html",
        chosen=screen,
        leagues=leagues,
        teams=sorted(
            (team.name, key) for league in wanted for key, team in league.teams.items()
        ),
        files=[
            (name, ending, f"/api/matches/export{query_of({**screen.asked, 'format': each})}")
            for each, ending, name in FILES
        ],
    )


serve_screen(routes, "/matches/partidas", matches_screen)


# — one —


@routes.get("/matches/partidas/{match}")
async def show(match: MatchId, _: Viewer, who: ALooker) -> Response:
    """What is stored of a match changes by a person alone, so nothing here moves."""
    told = await service.games.get_match(who.house.retoma, match)
    current = await service.scrapes.find_current_scrape(who.house.retoma, told.of)
    return who.answer(
        "matches/match.html",
        match=told,
        league=league_name(told.league),
        round=PAGE if current is None else round_at(current),
        place=match_at(told.id),
        names=(told.home_name or told.home, told.away_name or told.away),
        events=[_event(who.view, each) for each in told.events],
        statistics=[_statistic(who.view, name, told) for name in STATISTICS],
        lineups=told.lineups if isinstance(told.lineups, dict) else {},
        by_hand=is_by_hand(told),
        plain=told.of.parameters(),
    )


@routes.post("/matches/partidas/{match}/{verb}")
async def repair(
    match: MatchId, verb: str, actor: Operator, who: ALooker, request: Request
) -> Response:
    """ "Buscar de novo", "Excluir": each with its reason."""
    form = await form_of(request)
    why, retoma = form.one("why"), who.house.retoma
    match verb:
        case "atualizar":
            body = filled(Reason, {"why": why})
            job = await service.repairs.refresh_match(retoma, match, body.why, actor=actor.name)
            return led(who, f"/jobs/{job}")
        case "excluir":
            revision = form.one("revision") or ""
            seen = int(revision) if revision.isascii() and revision.isdigit() else revision
            deleted = filled(Deleted, {"why": why, "revision": seen})
            runs = await service.repairs.delete_match(
                retoma, match, deleted.why, actor=actor.name, revision=deleted.revision
            )
            return led(who, round_at(runs[-1]) if runs else STORED)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


def _event(view: View, told: dict[str, Any]) -> dict[str, Any]:
    kind = EventKind(told["kind"])
    added = "" if told["added"] is None else f"+{told['added']}"
    return {
        **told,
        "at": f"{told['minute']}{added}'",
        "word": view.tell(KINDS[kind]),
        "goal": kind in GOALS,
    }


def _statistic(view: View, name: str, match: WholeMatch) -> tuple[str, int, int, float]:
    """What it is called, both sides, and how much of the bar is the home side's."""
    sides = match.statistics.get(name, {})
    home, away = sides.get(Side.HOME, 0), sides.get(Side.AWAY, 0)
    share = WIDTH / 2 if home + away == 0 else home * WIDTH / (home + away)
    return view.tell(STATISTICS[name]), home, away, share
