"""What people say about rounds and matches: bodies of the API, and forms of the pages."""

from typing import Annotated

from fastapi import Path
from pydantic import Field, JsonValue, StrictBool, StrictInt, StrictStr

from retoma.apps.matches.model import SchemaInvalid
from retoma.apps.matches.schemas import MOST_MATCHES, MatchPage, from_json
from retoma.apps.matches.service.replays import Which
from retoma.apps.matches.service.scrapes import check_rounds
from retoma.apps.matches.store.rows import Round
from retoma.apps.matches.words import in_words
from retoma.codec import encode
from retoma.web.problems import Flaw, Refusal
from retoma.web.wire import LARGEST, MARK, Body, CodeName, Id, Why
from retoma.words import say

ScrapeId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a scrape.")]
TaskId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a task.")]
MatchId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a match.")]
LeagueName = Annotated[StrictStr, Field(min_length=1, max_length=100, examples=["brasileirao"])]
Year = Annotated[StrictInt, Field(ge=1, le=9_999, examples=[2026])]
Number = Annotated[StrictInt, Field(ge=1, le=1_000, examples=[1])]
Revision = Annotated[
    StrictInt, Field(ge=1, description="As `GET /api/matches/{match}` has shown it.")
]


class NewScrape(Body):
    """A round, or those from `round` to `to_round`."""

    league: LeagueName
    season: Year
    round: Number
    to_round: Number | None = None

    def rounds(self) -> list[Round]:
        return check_rounds(self.league, self.season, self.round, self.to_round)


class ReplayAsked(Body):
    """Which pages are read again, and by which parsers; `apply`: what can be read is stored."""

    code: CodeName | None = None
    league: LeagueName | None = None
    job_id: Id | None = None
    task_id: Id | None = None
    layouts: Annotated[StrictStr, Field(max_length=100, examples=["modern,classic"])] | None = (
        None
    )
    apply: StrictBool = False
    cursor: Annotated[StrictStr, Field(max_length=MARK)] | None = Field(
        None, description="`next` of the answer before; nothing: from the first page on."
    )

    def which(self) -> Which:
        return Which(
            code=self.code,
            league=self.league,
            run=self.job_id,
            task=self.task_id,
            layouts=self.layouts,
        )


class Accepted(Body):
    """A match as a person has put it right, and why."""

    match: dict[str, JsonValue]
    why: Why

    def page(self) -> MatchPage:
        """Return the match, checked as strictly as a page; raise Refusal with every flaw of it."""
        try:
            return from_json(MatchPage, encode(self.match))
        except SchemaInvalid as error:
            raise Refusal(
                "bad_input",
                say("the match does not add up; nothing was changed"),
                [Flaw(each.path, in_words(each.why)) for each in error.problems],
            ) from None


class Corrected(Accepted):
    """A stored match as a person says it is, why, and which revision was seen."""

    revision: Revision


class Reason(Body):
    """Why; it is in the audit."""

    why: Why


class Deleted(Reason):
    """Why a match is stored no longer, and which revision was seen."""

    revision: Revision


class SizeConfirmed(Reason):
    """How many matches a round has, and why that is not what its league says."""

    matches: Annotated[StrictInt, Field(ge=1, le=MOST_MATCHES)]
