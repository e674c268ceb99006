"""Dead letters: jobs that ended in failure, why, and what a person does with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retoma.engine.query import Cause
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import say

__all__ = ["Cause"]


@dataclass(frozen=True, slots=True)
class Letters:
    """A page of dead letters, and how many jobs died by each code."""

    jobs: list[Job]
    codes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: the job, why it is dead, and the error with its details."""

    job: Job
    why: str
    error: dict[str, Any]
    cause: Cause


async def list_dead(
    app: Retoma,
    kind: str | None = None,
    batch: int | None = None,
    code: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> Letters:
    """Dead letters that nobody has discarded, newest first."""
    found = await app.dead.list(kind=kind, batch=batch, code=code, before=before, limit=limit)
    return Letters(found, await app.dead.codes(batch))


async def show_dead(app: Retoma, job: int) -> Letter:
    """Why it is dead: the error, its stack, what to do."""
    found = await get_dead(app, job)
    cause = (await app.dead.causes([job]))[job]
    return Letter(found, await app.explain(job), dict(cause.details), cause)


async def retry_dead(app: Retoma, job: int, fresh: bool = False, *, actor: str) -> Job:
    """Try a dead job again with a fresh budget; committed steps are kept."""
    await get_dead(app, job)
    return await app.retry(job, fresh=fresh, only_dead=True, actor=actor)


async def discard_dead(app: Retoma, job: int, *, why: str | None = None, actor: str) -> Job:
    """Put a dead letter away: off this list, its history kept."""
    return await app.dead.discard(job, why, actor=actor)


async def get_dead(app: Retoma, job: int) -> Job:
    """Return a job that is dead. Raises IllegalMove where it is not."""
    found = await app.get(job)
    if found.state is not State.DEAD:
        raise IllegalMove(say("job {job} is {state}, not dead", job=job, state=found.state))
    return found
