"""The verbs of the ads orchestrator: a session lives, a mission is extracted, its ads are stored.

Three stories, each told from the top at every poll and free of effects between its steps.
"""

from typing import Any, Final

from retoma.apps.ads.model import ERRORS
from retoma.apps.ads.steps.extraction import Extraction
from retoma.apps.ads.steps.hands import Hands
from retoma.apps.ads.steps.health import Health
from retoma.apps.ads.steps.session import Session
from retoma.apps.ads.steps.storage import Storage
from retoma.apps.ads.store import EXTRACTION, HEALTH, SESSION, SESSIONS, STORAGE
from retoma.apps.ads.store.recurrence import RECURRENCE, recur
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.rules.errors import Action as Retrying
from retoma.engine.rules.errors import Code, ErrorClass, table
from retoma.engine.rules.retry import Retry
from retoma.toolkit.tools import Tools

TESTS: Final = 16  # health tests at a time
MANY: Final = 1000  # attempts: how often a phase is tried again is the mission's own count

# How often a phase is tried again is the mission's own count; a mistake of ours is not tried for ever.
CODES: Final = table(
    Code("exception", ErrorClass.BUG, Retrying.RETRY, 5, "erro interno"),
    *(
        Code(each.code, each.error_class, Retrying.RETRY, None, each.means)
        for each in ERRORS.values()
    ),
)


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    hands = Hands(tools)
    sessions, extractions, storages = Session(hands), Extraction(hands), Storage(hands)
    tests = Health(hands)
    how: dict[str, Any] = {
        "retry": Retry(attempts=MANY, base=5.0, cap=300.0),
        "codes": CODES,
        "application": "ads",
    }

    @job(name=SESSION, **how)
    async def session(ctx: Context, session: int) -> Any:
        return await sessions.tell(ctx, session)

    @job(name=EXTRACTION, holds=SESSIONS, **how)
    async def extraction(ctx: Context, mission: str) -> Any:
        return await extractions.tell(ctx, mission)

    @job(name=STORAGE, **how)
    async def storage(ctx: Context, mission: str) -> Any:
        return await storages.tell(ctx, mission)

    # How a test went is its result: tried again is only one that was lost with its runner.
    @job(name=HEALTH, limit=TESTS, timeout=60, retry=Retry(attempts=3), application="ads")
    async def health(ctx: Context, what: dict[str, str] | None) -> Any:
        return await tests.tell(ctx, what)

    @job(name=RECURRENCE, retry=Retry(attempts=MANY, base=5.0, cap=300.0), application="ads")
    async def recurrence(ctx: Context, wanted: dict[str, Any]) -> Any:
        return await ctx.write("missions", recur, ctx.job, wanted)

    made: list[Any] = [session, extraction, storage, health, recurrence]
    return [each.kind for each in made]
