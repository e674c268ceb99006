"""Matches that are stored: asked for, and taken away as a table."""

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import Field, JsonValue

from retoma.apps.matches import store
from retoma.apps.matches.api.how import (
    MatchId,
    OfLeague,
    OfRound,
    OfSeason,
    read,
    routes,
    times_told,
)
from retoma.web import AHouse, House, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import AsFile, list_of, listed_file
from retoma.web.wire import Limit, NextPage, PageOf, Shown

PAGE: Final = 1_000  # matches read at a time for a file
HEADINGS: Final = (
    *("id", "league", "season", "round", "kickoff", "home", "home_name", "home_score"),
    *("away_score", "away", "away_name", "stadium", "status", "url"),
)
OfTeam = Annotated[str | None, Query(max_length=100, description="Only with this team.")]


class MatchLine(Shown):
    """A match that is over."""

    id: int
    league: str
    season: int
    round: int
    home: str
    home_name: str | None
    away: str
    away_name: str | None
    status: str
    kickoff: datetime | None
    stadium: str
    home_score: int
    away_score: int
    url: str
    stored_by: str
    stored_at: datetime | None
    walkover: bool = Field(description="It was awarded: nobody played it, or not to its end.")
    revision: int = Field(
        description="One more with each change: who changes it says which was seen."
    )


class MatchShown(MatchLine):
    """A match, with all that happened in it."""

    events: list[dict[str, JsonValue]]
    statistics: dict[str, dict[str, int]]
    lineups: JsonValue


@routes.get("/api/matches")
async def list_matches(
    _: Viewer,
    house: AHouse,
    league: OfLeague = None,
    season: OfSeason = None,
    round: OfRound = None,  # noqa: A002 — the document's word
    team: OfTeam = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[MatchLine]:
    """Matches that are stored, in the order in which they were."""
    stamp = Cursor("matches", f"{league} {season} {round} {team}")
    [after] = stamp.read(cursor, int) or [0]
    how: dict[str, Any] = {"league": league, "season": season, "round_": round, "team": team}
    found = await read(
        house, partial(store.games.list_matches, after=after, n=limit + 1, **how)
    )
    shown = [_line(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get(
    "/api/matches/export",
    response_class=Response,
    responses=list_of("matches that are stored"),
)
async def export_matches(
    _: Viewer,
    house: AHouse,
    league: OfLeague = None,
    season: OfSeason = None,
    round: OfRound = None,  # noqa: A002
    team: OfTeam = None,
    as_: AsFile = "csv",
) -> Response:
    """All of them; in the table nothing is a formula."""
    how = {"league": league, "season": season, "round_": round, "team": team}
    return await listed_file(house, as_, "partidas", HEADINGS, _all(house, how))


@routes.get("/api/matches/{match}")
async def get_match(match: MatchId, _: Viewer, house: AHouse) -> MatchShown:
    """One match: its events in their order, statistics, line-ups."""
    return await match_told(house, match)


async def match_told(house: House, match: int) -> MatchShown:
    told = await read(house, partial(store.games.match_seen, partida=match))
    return MatchShown(**{**told, **times_told(told, "kickoff", "stored_at")})


async def _all(house: House, how: dict[str, Any]) -> AsyncIterator[list[MatchLine]]:
    after = 0
    while True:
        page = partial(store.games.list_matches, after=after, n=PAGE, **how)
        rows = await read(house, page)
        yield [_line(each) for each in rows]
        if len(rows) < PAGE:
            return
        after = rows[-1]["id"]


def _line(told: dict[str, Any]) -> MatchLine:
    return MatchLine(**{**told, **times_told(told, "kickoff", "stored_at")})
