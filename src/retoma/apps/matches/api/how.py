"""What all the rooms of this API need."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path, Query
from pydantic import Field, StrictInt, StrictStr

from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.rows import Round, time_of
from retoma.db import Transaction
from retoma.engine.rules.errors import BadInput
from retoma.web import House, router
from retoma.web.wire import LARGEST
from retoma.words import say

T = TypeVar("T")
routes = router("matches")

MOST_ROUNDS: Final = 100  # that one request begins

ScrapeId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a scrape.")]
TaskId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a task.")]
MatchId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a match.")]
LeagueName = Annotated[StrictStr, Field(min_length=1, max_length=100, examples=["brasileirao"])]
Year = Annotated[StrictInt, Field(ge=1, le=9_999, examples=[2026])]
Number = Annotated[StrictInt, Field(ge=1, le=1_000, examples=[1])]
OfLeague = Annotated[str | None, Query(max_length=100, description="Only of this league.")]
OfSeason = Annotated[int | None, Query(ge=1, le=9_999, description="Only of this season.")]
OfRound = Annotated[int | None, Query(ge=1, le=1_000, description="Only of this round.")]


def checked_round(league: str, season: int, number: int) -> Round:
    """A round that there is; BadInput or NotFound, before anything is written."""
    site_of(league).round_url(season, number)
    return Round(league, season, number)


def checked_rounds(league: str, season: int, first: int, last: int) -> list[Round]:
    """Those of a range, each of which there is."""
    if not first <= last < first + MOST_ROUNDS:
        raise BadInput(
            say("a range of rounds goes up, and has {most} at most", most=MOST_ROUNDS)
        )
    return [checked_round(league, season, each) for each in range(first, last + 1)]


def times_told(told: dict[str, Any], *names: str) -> dict[str, datetime | None]:
    return {name: time_of(told[name]) for name in names}


async def read(house: House, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)
