"""The eight endpoints of the document, under `/api/system`."""

from datetime import datetime
from typing import Final

from fastapi import Response
from pydantic import Field

from retoma.apps.quotes import store
from retoma.apps.quotes.api.how import (
    Has,
    LoteId,
    QuoteId,
    WaitingFor,
    percentage,
    read,
    routes,
    waiting_told,
)
from retoma.apps.quotes.api.lotes import LoteShown, lote_of, lote_told
from retoma.apps.quotes.api.quotes import QuoteShown, shown
from retoma.apps.quotes.cleanup import clean_up
from retoma.apps.quotes.model import CONFIGURATION, KIND, ProcessingCheckpoint, QuoteStatus
from retoma.engine.errors import IllegalMove
from retoma.engine.insights import PAGE, Stuck
from retoma.engine.states import State
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.many import do_to_batch
from retoma.web.orders import Order
from retoma.web.wire import Moved, Shown
from retoma.words import Language, say

QUIET: Final = "10m"  # without progress for so long a quote is stuck
DAY: Final = "24h"  # over which the average is taken
NAMED: Final = 1_000  # quotes that a clean-up names
MOST: Final = PAGE  # stuck quotes that are named


class Health(Shown):
    """Whether the database answers."""

    status: str


class Stats(Shown):
    """The example of the document, key by key."""

    total_processing: int
    stuck_count: int
    by_checkpoint: dict[ProcessingCheckpoint, int]
    avg_processing_time_seconds: float | None


class StuckQuote(Shown):
    """A quote that does not move."""

    id: int
    batch_request_id: int | None
    processing_checkpoint: ProcessingCheckpoint
    progress_percentage: int
    worker_id: str
    last_progress: datetime | None
    seconds: float
    lease_expired: bool


class Recovered(Shown):
    """What was taken up again."""

    recovered: int
    stuck_count: int


class Cleaned(Shown):
    """What was marked ERROR."""

    cleaned: int
    parked: int = Field(description="How many of these were waiting for somebody.")
    quotes: list[int] = Field(description=f"The numbers of the first {NAMED} of them.")


class BatchStatus(LoteShown):
    """A lote in detail."""

    stuck_count: int
    by_checkpoint: dict[ProcessingCheckpoint, int]
    errors: dict[str, int]
    waiting_for: list[WaitingFor] = Field(
        description="What somebody must put right before its quotes go on, the most first."
    )


@routes.get("/api/system/health")
async def health(_: Viewer, house: AHouse) -> Health:
    """Whether the database answers."""
    await house.retoma.ready()
    return Health(status="healthy")


@routes.get("/api/system/processing-stats")
async def processing_stats(_: Viewer, house: AHouse) -> Stats:
    """How many are at work, where they stand, and how long one takes, over the last 24 hours."""
    return await stats_told(house)


@routes.get("/api/system/stuck-quotes")
async def stuck_quotes(_: Viewer, house: AHouse) -> list[StuckQuote]:
    """Without progress for ten minutes, or on a runner whose lease is over; the longest first."""
    return await stuck_told(house)


async def stuck_told(house: Has) -> list[StuckQuote]:
    found = await stuck_of(house)
    told = await read(house, lambda tx: store.quotes_of(tx, [each.job for each in found]))
    return [
        StuckQuote(
            id=told[each.job],
            batch_request_id=each.batch,
            processing_checkpoint=_at(each.checkpoint),
            progress_percentage=percentage(each.checkpoint),
            worker_id=each.runner,
            last_progress=each.moved_at,
            seconds=round(each.quiet, 1),
            lease_expired=each.orphan,
        )
        for each in found
        if each.job in told
    ]


@routes.post("/api/system/recover-stuck")
async def recover_stuck(who: Operator, house: AHouse) -> Recovered:
    """What runners whose lease is over have left is taken back now; asked again it changes nothing."""
    return await recover_all(house, who.name)


async def recover_all(house: Has, actor: str) -> Recovered:
    """Runners that are lost leave jobs of every kind, and all of them wait again: quotes are counted."""
    recovered = await house.retoma.take_back(
        actor=actor, count=lambda tx, jobs: len(store.quotes_of(tx, jobs))
    )
    return Recovered(recovered=recovered, stuck_count=await count_stuck(house))


@routes.post("/api/system/recover-quote/{quote}")
async def recover_quote(quote: QuoteId, who: Operator, house: AHouse) -> QuoteShown:
    """One quote goes on where it stopped: taken back, resumed, or tried anew after an error."""
    await recover_one(house, quote, who.name)
    return await shown(house, quote)


async def recover_one(house: Has, quote: int, actor: str) -> None:
    job = await read(house, lambda tx: store.job_of(tx, quote))
    await house.retoma.take_back(actor=actor)
    state = (await house.retoma.get(job)).state
    if state is State.DEAD:
        await house.retoma.retry(job, only_dead=True, actor=actor)
    elif state is State.PARKED:
        await house.retoma.resume(job, actor=actor)
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


@routes.post("/api/system/resume-batch/{lote}", responses={202: {"model": Moved}})
async def resume_batch(
    lote: LoteId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """An interrupted lote goes on: what was left is taken back, what is parked resumed, a pause over."""
    found = await lote_of(house, lote)
    if (await found.progress()).finished:
        raise IllegalMove(
            say(
                "lote {lote} has finished: nothing to resume; what is in ERROR is tried again on its page, or by"
                " `POST /api/batches/{lote}/retry-failed`",
                lote=lote,
            )
        )
    await house.retoma.take_back(actor=who.name)
    order = Order(verb="resume", actor=who.name, batch=lote)
    return await do_to_batch(house, found, order, visit, response)


@routes.get("/api/system/batch-status/{lote}")
async def batch_status(lote: LoteId, _: Viewer, house: AHouse, visit: AVisit) -> BatchStatus:
    """How far a lote is, where its quotes stand, and by what they failed or what they wait for."""
    return await status_told(house, lote, visit.language)


async def status_told(house: Has, lote: int, language: Language | None = None) -> BatchStatus:
    found = await lote_of(house, lote)
    told = await lote_told(house, found)
    rows = await read(house, lambda tx: tx.all(store.LOTE_CHECKPOINTS, lote=lote))
    return BatchStatus(
        **told.model_dump(),
        stuck_count=await count_stuck(house, lote),
        by_checkpoint={_at(at): n for at, n in rows},
        errors=await house.retoma.dead_codes(lote),
        waiting_for=await waiting_told(house, language, lote),
    )


@routes.post("/api/system/cleanup-old")
async def cleanup_old(who: Operator, house: AHouse) -> Cleaned:
    """What began more than 24 hours ago is marked ERROR, also where it is parked; never where a lease is valid."""
    await house.retoma.take_back(actor=who.name)
    done = await clean_up(house.retoma, actor=who.name)
    quotes = [*done.waiting, *done.parked]
    return Cleaned(cleaned=len(quotes), parked=len(done.parked), quotes=quotes[:NAMED])


async def stats_told(house: Has) -> Stats:
    stands = [each for each in await house.retoma.funnel(KIND) if each.state is State.RUNNING]
    by: dict[ProcessingCheckpoint, int] = {}
    for each in stands:
        by[_at(each.checkpoint)] = by.get(_at(each.checkpoint), 0) + each.jobs
    took = await house.retoma.durations(last=DAY, kind=KIND)
    return Stats(
        total_processing=sum(by.values()),
        stuck_count=await count_stuck(house),
        by_checkpoint=by,
        avg_processing_time_seconds=round(took[0].mean, 2) if took else None,
    )


async def stuck_of(house: Has) -> list[Stuck]:
    """One question for the list, the count and the alert."""
    return await house.retoma.stuck(quiet=QUIET, kind=KIND, limit=MOST)


async def count_stuck(house: Has, lote: int | None = None) -> int:
    """Those of that list, what is beyond its length, and what waits for its configuration."""
    held = await house.retoma.count_stuck(quiet=QUIET, kind=KIND, batch=lote)
    parked = await read(house, lambda tx: store.parked_by_code(tx, lote))
    return held + sum(each.quotes for each in parked if each.code in CONFIGURATION)


def _at(checkpoint: str | None) -> ProcessingCheckpoint:
    return ProcessingCheckpoint.INIT if checkpoint is None else ProcessingCheckpoint(checkpoint)
