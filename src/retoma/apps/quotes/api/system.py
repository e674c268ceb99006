"""The eight endpoints of the document, under `/api/system`."""

from fastapi import Response

from retoma.apps.quotes.api.wire import (
    NAMED,
    BatchStatus,
    Cleaned,
    LoteId,
    QuoteId,
    QuoteShown,
    routes,
)
from retoma.apps.quotes.service import lotes, quotes, recovery
from retoma.apps.quotes.service.recovery import Recovered, Stats, StuckQuote
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.many import moved_shown
from retoma.web.wire import Moved, Shown


class Health(Shown):
    """Whether the database answers."""

    status: str


@routes.get("/api/system/health")
async def health(_: Viewer, house: AHouse) -> Health:
    """Whether the database answers."""
    await house.retoma.ready()
    return Health(status="healthy")


@routes.get("/api/system/processing-stats")
async def processing_stats(_: Viewer, house: AHouse) -> Stats:
    """How many are at work, where they stand, and how long one takes, over the last 24 hours."""
    return await recovery.get_stats(house.retoma)


@routes.get("/api/system/stuck-quotes")
async def stuck_quotes(_: Viewer, house: AHouse) -> list[StuckQuote]:
    """Without progress for ten minutes, or on a runner whose lease is over; the longest first."""
    return await recovery.list_stuck(house.retoma)


@routes.post("/api/system/recover-stuck")
async def recover_stuck(who: Operator, house: AHouse) -> Recovered:
    """What runners whose lease is over have left is taken back now; asked again it changes nothing."""
    return await recovery.recover_stuck(house.retoma, actor=who.name)


@routes.post("/api/system/recover-quote/{quote}")
async def recover_quote(quote: QuoteId, who: Operator, house: AHouse) -> QuoteShown:
    """One quote goes on where it stopped: taken back, resumed, or tried anew after an error."""
    await recovery.recover_quote(house.retoma, quote, actor=who.name)
    return QuoteShown.model_validate(await quotes.get_quote(house.retoma, quote))


@routes.post("/api/system/resume-batch/{lote}", responses={202: {"model": Moved}})
async def resume_batch(
    lote: LoteId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """An interrupted lote goes on: what was left is taken back, what is parked resumed, a pause over."""
    done = await lotes.resume_lote(house.retoma, lote, actor=who.name, context=visit)
    return moved_shown(done, response)


@routes.get("/api/system/batch-status/{lote}")
async def batch_status(lote: LoteId, _: Viewer, house: AHouse, visit: AVisit) -> BatchStatus:
    """How far a lote is, where its quotes stand, and by what they failed or what they wait for."""
    return BatchStatus.model_validate(
        await lotes.get_lote_status(house.retoma, lote, visit.language)
    )


@routes.post("/api/system/cleanup-old")
async def cleanup_old(who: Operator, house: AHouse) -> Cleaned:
    """What began more than 24 hours ago is marked ERROR, also where it is parked; never where a lease is valid."""
    done = await recovery.clean_up_old(house.retoma, actor=who.name)
    ended = [*done.waiting, *done.parked]
    return Cleaned(cleaned=len(ended), parked=len(done.parked), quotes=ended[:NAMED])
