"""How rounds, their tasks and stored matches look on the wire."""

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field, JsonValue

from retoma.apps.matches.inputs import LeagueName, Number, Year
from retoma.apps.matches.model import TaskStatus
from retoma.web import router
from retoma.web.wire import Body, Id, Shown

routes = router("matches")

OfLeague = Annotated[str | None, Query(max_length=100, description="Only of this league.")]
OfSeason = Annotated[int | None, Query(ge=1, le=9_999, description="Only of this season.")]
OfRound = Annotated[int | None, Query(ge=1, le=1_000, description="Only of this round.")]
LeagueAt = Annotated[str, Path(max_length=100, description="The key of a league.")]
SeasonAt = Annotated[int, Path(ge=1, le=9_999, description="The year of a season.")]
RoundAt = Annotated[int, Path(ge=1, le=1_000, description="The number of a round.")]


class WhichFailed(Body):
    """What is tried again: of one scrape, or of a league, a season, a round; nothing: all."""

    job_id: Id | None = None
    league: LeagueName | None = None
    season: Year | None = None
    round: Number | None = None


class WhichRound(Body):
    """One round."""

    league: LeagueName
    season: Year
    round: Number


class ScrapeShown(Shown):
    """A round that is scraped, as the document's `scrape_jobs` has it."""

    id: int
    league: str
    season: int
    round: int
    status: TaskStatus
    complete: bool = Field(description="Every match of the round is stored.")
    expected: int | None = Field(
        description="Matches that the round has: by its pages, its league or a person; null: nobody knows yet."
    )
    listed: int = Field(
        description="Matches that its pages have named, without what was dropped."
    )
    dropped: int = Field(description="Matches that never were, because a person says so.")
    stored: int
    pending: int
    running: int
    not_yet: int
    failed: int
    left_out: int = Field(description="Tasks that a person has skipped.")
    error_code: str | None = Field(description="What its discovery failed by.")
    error: JsonValue = None
    snapshot: str | None = Field(description="The SHA-256 of the page that was refused.")
    discovery: int | None = Field(description="The job that looks for its matches.")
    batch: int | None = Field(description="`/api/stream?batch=` tells what happens to it.")
    created_by: str
    created_at: datetime | None
    completed_at: datetime | None


class Begun(Shown):
    """A scrape, and whether this call has begun it."""

    scrape: ScrapeShown
    new: bool


class BegunShown(Shown):
    scrapes: list[Begun]


class TaskShown(Shown):
    """A match of a round, as the document's `scrape_tasks` has it."""

    id: int
    job_id: int
    league: str
    season: int
    round: int
    match_key: str
    home: str
    away: str
    url: str
    kickoff: datetime | None
    status: TaskStatus
    attempts: int
    error_code: str | None
    error: JsonValue = Field(description="Selector or path, status, headers, attempt.")
    snapshot: str | None = Field(description="The SHA-256 of the page that was refused.")
    not_yet: str | None = Field(description="Why it is not stored yet.")
    look_again_at: datetime | None
    partida_id: int | None
    job: int | None
    created_at: datetime | None
    dropped: str | None = Field(description="Why a person says that this match never was.")


class RetriedShown(Shown):
    """Jobs that are tried again."""

    jobs: list[int]


class MissingShown(Shown):
    """What is not stored of a round, and what was set going."""

    scrape: ScrapeShown
    looked_again: bool = Field(description="Whether this call has its page looked at again.")
    missing: list[str]
    jobs: list[int] = Field(description="Those of them that are tried again.")


class RoundShown(Shown):
    """The publish gate of a round."""

    league: str
    season: int
    round: int
    complete: bool
    expected: int | None
    stored: int
    missing: list[str]
    unlisted: int = Field(description="Matches that the round has and no page has named.")
    completed_at: datetime | None
    scrape: int


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
