"""Matches that are stored: asked for, and taken away as a table."""

from typing import Annotated, Any, Final

from fastapi import Query, Response

from retoma.apps.matches import service
from retoma.apps.matches.api.wire import (
    MatchLine,
    MatchShown,
    OfLeague,
    OfRound,
    OfSeason,
    routes,
)
from retoma.apps.matches.inputs import MatchId
from retoma.web import AHouse, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import AsFile, list_of, listed_file
from retoma.web.wire import Limit, NextPage, PageOf

HEADINGS: Final = (
    *("id", "league", "season", "round", "kickoff", "home", "home_name", "home_score"),
    *("away_score", "away", "away_name", "stadium", "status", "url"),
)
OfTeam = Annotated[str | None, Query(max_length=100, description="Only with this team.")]


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
    found = await service.games.list_matches(house.retoma, after=after, limit=limit + 1, **how)
    shown = [MatchLine.model_validate(each) for each in found[:limit]]
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
    found = service.games.list_all_matches(
        house.retoma, league=league, season=season, round_=round, team=team
    )
    pages = ([MatchLine.model_validate(each) for each in page] async for page in found)
    return await listed_file(house, as_, "partidas", HEADINGS, pages)


@routes.get("/api/matches/{match}")
async def get_match(match: MatchId, _: Viewer, house: AHouse) -> MatchShown:
    """One match: its events in their order, statistics, line-ups."""
    return MatchShown.model_validate(await service.games.get_match(house.retoma, match))
