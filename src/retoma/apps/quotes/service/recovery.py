"""What the document watches and recovers: quotes at work, stuck quotes, quotes that wait for a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from retoma.apps.quotes import store
from retoma.apps.quotes.cleanup import Cleanup, clean_up
from retoma.apps.quotes.model import (
    CONFIGURATION,
    KIND,
    ProcessingCheckpoint,
    QuoteStatus,
    percentage,
)
from retoma.apps.quotes.service.writing import read
from retoma.engine.query import PAGE, Stuck
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import Language, Said, say, tell
from retoma.words.recall import tell_stored

QUIET: Final = "10m"  # without progress for so long a quote is stuck
DAY: Final = "24h"  # over which the average is taken
MOST_STUCK: Final = PAGE  # stuck quotes in one list
# How a person puts right what stopped a quote.
CURES: Final[Mapping[str, Said]] = {
    "no_key": say(
        "Set the key that is named (`RETOMA_ANTHROPIC_KEY` or `RETOMA_SERPAPI_KEY`) and start the runners"
        " again; then resume."
    ),
    "unauthorized": say(
        "The service refused the key: give the runners one that is good and start them again; then resume."
    ),
    "wrong_address": say(
        "There is no such service or no such model: correct `RETOMA_ANTHROPIC_MODEL` or the address of the"
        " service and start the runners again; then resume."
    ),
    "rejected": say(
        "The service rejected the request: put right what it says (the credit of the account, or"
        " `RETOMA_ANTHROPIC_MODEL`) and start the runners again; then resume."
    ),
    "config": say(
        "Put right the setting or the key that it names and start the runners again; then resume."
    ),
    "budget": say("Add credit at the service, or raise the budget; then resume."),
}
OTHERWISE: Final = say("Put right what it says; then resume.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The example of the document, key by key."""

    total_processing: int
    stuck_count: int
    by_checkpoint: Mapping[ProcessingCheckpoint, int]
    avg_processing_time_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckQuote:
    """A quote that does not move."""

    id: int
    batch_request_id: int | None
    processing_checkpoint: ProcessingCheckpoint
    progress_percentage: int
    worker_id: str
    last_progress: datetime | None
    seconds: float
    lease_expired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was taken up again."""

    recovered: int
    stuck_count: int


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """What stopped some quotes, the message of the newest of them, and how to put it right."""

    code: str
    quotes: int
    message: str | None
    cure: str


async def get_stats(retoma: Retoma) -> Stats:
    """Count the quotes that are processed now; the average is that of the last 24 hours."""
    by: dict[ProcessingCheckpoint, int] = {}
    for each in await retoma.insights.funnel(KIND):
        if each.state is State.RUNNING:
            at = _checkpoint_of(each.checkpoint)
            by[at] = by.get(at, 0) + each.jobs
    took = await read(retoma, lambda tx: store.average_duration(tx, DAY))
    return Stats(
        total_processing=sum(by.values()),
        stuck_count=await count_stuck(retoma),
        by_checkpoint=by,
        avg_processing_time_seconds=None if took is None else round(took, 2),
    )


async def list_stuck(retoma: Retoma) -> list[StuckQuote]:
    """List quotes without progress for ten minutes, or on a runner whose lease is over; the longest first."""
    found = await _stuck_jobs(retoma)
    quotes = await read(retoma, lambda tx: store.quotes_of(tx, [each.job for each in found]))
    return [
        StuckQuote(
            id=quotes[each.job],
            batch_request_id=each.batch,
            processing_checkpoint=_checkpoint_of(each.checkpoint),
            progress_percentage=percentage(each.checkpoint),
            worker_id=each.runner,
            last_progress=each.moved_at,
            seconds=round(each.quiet, 1),
            lease_expired=each.orphan,
        )
        for each in found
        if each.job in quotes
    ]


async def count_stuck(retoma: Retoma, lote: int | None = None) -> int:
    """Count the stuck quotes, also beyond the length of their list, and those that wait for their configuration."""
    held = await retoma.insights.count_stuck(quiet=QUIET, kind=KIND, batch=lote)
    parked = await read(retoma, lambda tx: store.parked_by_code(tx, lote))
    return held + sum(each.quotes for each in parked if each.code in CONFIGURATION)


async def list_waiting(
    retoma: Retoma, language: Language | None, lote: int | None = None
) -> list[WaitingFor]:
    """List what the parked quotes of one lote, or of all, wait for; the most first."""
    found = await read(retoma, lambda tx: store.parked_by_code(tx, lote))
    return [waiting_for(*each, language) for each in found]


def waiting_for(
    code: str, quotes: int, message: str | None, language: Language | None
) -> WaitingFor:
    cure = tell(CURES.get(code, OTHERWISE), language)
    told = None if message is None else tell_stored(message, language)
    return WaitingFor(code, quotes, told, cure)


async def is_recoverable(retoma: Retoma, job: Job) -> bool:
    """Whether `recover_quote` would move the job: it refuses where a live runner holds it."""
    if job.state is State.RUNNING:
        stuck = await _stuck_jobs(retoma)
        return any(each.job == job.id and each.orphan for each in stuck)
    return job.state in (State.DEAD, State.PARKED)


async def recover_stuck(retoma: Retoma, *, actor: str) -> Recovered:
    """Take back the jobs of lost runners, of every kind, and count the quotes among them."""
    recovered = await retoma.runners.take_back(
        actor=actor, count=lambda tx, jobs: len(store.quotes_of(tx, jobs))
    )
    return Recovered(recovered=recovered, stuck_count=await count_stuck(retoma))


async def recover_quote(retoma: Retoma, quote: int, *, actor: str) -> None:
    """Let a quote go on where it stopped: take it back, resume it, or retry it after an error."""
    job = await read(retoma, lambda tx: store.job_of(tx, quote))
    await retoma.runners.take_back(actor=actor)
    state = (await retoma.get(job)).state
    if state is State.DEAD:
        await retoma.retry(job, only_dead=True, actor=actor)
    elif state is State.PARKED:
        await retoma.resume(job, actor=actor)
    elif state is State.RUNNING:
        raise IllegalMove(
            say(
                "quote {quote} is PROCESSING on a runner that lives: nothing to recover",
                quote=quote,
            )
        )
    elif state is not State.WAITING:
        status = QuoteStatus.DONE if state is State.DONE else QuoteStatus.CANCELED
        raise IllegalMove(
            say(
                "quote {quote} has ended as {status}: nothing to recover",
                quote=quote,
                status=status,
            )
        )


async def clean_up_old(retoma: Retoma, *, actor: str) -> Cleanup:
    """End in ERROR what began more than 24 hours ago, also where it is parked; never where a lease is valid."""
    await retoma.runners.take_back(actor=actor)
    return await clean_up(retoma, actor=actor)


async def _stuck_jobs(retoma: Retoma) -> list[Stuck]:
    return await retoma.insights.stuck(quiet=QUIET, kind=KIND, limit=MOST_STUCK)


def _checkpoint_of(checkpoint: str | None) -> ProcessingCheckpoint:
    return ProcessingCheckpoint(checkpoint or ProcessingCheckpoint.INIT)
