"""Jobs: look at them, say why one does not run, and steer one."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from retoma.engine.query import (
    PAGE,
    AttemptSeen,
    Durations,
    Event,
    EvidenceSeen,
    JobSeen,
    Minute,
    Search,
    Stand,
    StepSeen,
    Stuck,
)
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import say

__all__ = [
    "PAGE",
    "AttemptSeen",
    "Durations",
    "Event",
    "EvidenceSeen",
    "Job",
    "JobSeen",
    "Minute",
    "Search",
    "State",
    "StepSeen",
]


@dataclass(frozen=True, slots=True)
class JobDetails:
    """A job with its steps, its attempts and its timeline."""

    job: Job
    steps: list[StepSeen]
    attempts: list[AttemptSeen]
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a job is not running, in one sentence."""

    job: int
    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Pace:
    """What moved, minute by minute, and how long attempts took."""

    minutes: list[Minute]
    durations: list[Durations]


async def list_jobs(
    app: Retoma,
    state: str | None = None,
    kind: str | None = None,
    batch: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[Job]:
    """Newest first, a page at a time."""
    return await app.jobs(state=state, kind=kind, batch=batch, before=before, limit=limit)


async def show_job(app: Retoma, job: int) -> JobDetails:
    """Everything that is known of one job: its steps, its attempts, its timeline."""
    found = await app.get(job)  # first: an unknown id is said, not shown as an empty page
    seen = await asyncio.gather(app.steps(job), app.attempts(job), app.events(job))
    return JobDetails(found, *seen)


async def explain_job(app: Retoma, job: int) -> Explained:
    """Why it is not running, in one sentence, and what would change it."""
    state = (await app.get(job)).state
    return Explained(job, state, await app.explain(job))


async def retry_job(app: Retoma, job: int, fresh: bool = False, *, actor: str) -> Job:
    """Try an ended job again with a fresh budget; committed steps are kept."""
    return await app.retry(job, fresh=fresh, actor=actor)


async def cancel_job(app: Retoma, job: int, *, actor: str) -> State:
    """End a job that has not ended; a running one ends at its next step."""
    return await app.cancel(job, actor=actor)


async def send_again(app: Retoma, job: int, *, actor: str) -> Job:
    """Say that what a parked job had begun is gone, or never was: it is done anew."""
    return await app.remote.send_again(job, actor=actor)


async def adopt_json(app: Retoma, job: int, found: str, *, actor: str) -> Job:
    """Say what became of what a parked job had begun: it goes on with that."""
    try:
        value: Any = json.loads(found)
    except ValueError as error:
        raise BadInput(
            say(
                'what it gave is given as JSON (17, or "w-17" with its quotes): {error}',
                error=error,
            )
        ) from None
    return await app.remote.adopt(job, value, actor=actor)


async def list_events(app: Retoma, job: int, after: int = 0) -> list[Event]:
    """The timeline of a job, the oldest event first."""
    await app.get(job)  # an unknown id is said, not shown as an empty timeline
    return await app.events(job, after=after)


# — all jobs at once —


async def count_jobs(app: Retoma, batch: int | None = None) -> dict[str, dict[State, int]]:
    """How many jobs of each kind are in each state."""
    return await app.insights.counts_by_kind(batch)


async def show_funnel(app: Retoma, kind: str | None = None) -> list[Stand]:
    """How many run, or are parked, at which checkpoint, and since when."""
    return await app.insights.funnel(kind)


async def list_stuck(app: Retoma, quiet: str = "10m", limit: int = 50) -> list[Stuck]:
    """What runs without progress, or on a runner whose lease is over."""
    return await app.insights.stuck(quiet=quiet, limit=limit)


async def show_pace(app: Retoma, last: str = "1h", kind: str | None = None) -> Pace:
    """What moved, minute by minute, and how long attempts took."""
    minutes = await app.insights.throughput(last=last, kind=kind)
    return Pace(minutes, await app.insights.durations(last=last, kind=kind))
