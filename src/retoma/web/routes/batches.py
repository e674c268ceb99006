"""`/api/batches`: how far each is, and what may be done with all jobs of one."""

from dataclasses import asdict
from typing import Any

from fastapi import Response

from retoma.services import batches
from retoma.services.batches import Batch, BatchSeen
from retoma.services.bulk import Order
from retoma.services.jobs import Search
from retoma.web.asked import CheckpointOf, CodeOf, StateOf, TextOf, page_of_jobs
from retoma.web.cursor import Cursor
from retoma.web.house import AHouse, AVisit
from retoma.web.many import do_to_batch
from retoma.web.replay import asked, written
from retoma.web.route import router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import (
    BatchDetails,
    BatchId,
    BatchMade,
    Codes,
    JobLine,
    Limit,
    Moved,
    NewBatch,
    NextPage,
    Once,
    PageOf,
    Paused,
    SkipInBatch,
)

routes = router("batches")

BY_A_JOB: dict[int | str, dict[str, Any]] = {
    202: {"model": Moved, "description": "They are many: a job of its own does it."}
}


@routes.get("/api/batches")
async def list_batches(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[BatchSeen]:
    """Newest first, with how far each one is."""
    stamp = Cursor("batches", None)
    before = stamp.read(cursor, int)
    found = await batches.list_batches(house.retoma, before[0] if before else None, limit)
    last = found[-1].id if len(found) == limit else None
    return PageOf(items=found, next=stamp.write(last))


@routes.post(
    "/api/batches",
    status_code=201,
    responses={
        200: {"model": BatchMade, "description": "It was there already, under its key."},
        201: {"headers": {"Location": {"schema": {"type": "string"}}}},
    },
)
async def submit_batch(
    body: NewBatch,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> BatchMade:
    """Submit jobs together, all or none."""
    house.check_may_submit(body.kind)

    def write(tx: Any) -> Batch:
        made: Batch = tx.submit_many(
            body.kind,
            body.payloads,
            name=body.name,
            priority=body.priority,
            run_at=body.run_at,
            deadline=body.deadline,
            correlation=visit.correlation,
            traceparent=visit.traceparent,
            actor=who.name,
        )
        about = {"kind": made.kind, "jobs": made.submitted}
        tx.tell("batch.submitted", str(made.id), about, actor=who.name)
        return made

    ask = asked(key, who, "submit_batch", body)
    shown, first = await written(house, ask, write, BatchMade.model_validate, BatchMade)
    response.headers["Location"] = f"/api/batches/{shown.id}"
    if not first:
        response.status_code = 200
    return shown


@routes.get("/api/batches/{batch}")
async def show_batch(batch: BatchId, _: Viewer, house: AHouse) -> BatchDetails:
    """How far it is, and by which codes its jobs died."""
    found = await batches.show_batch(house.retoma, batch)
    return BatchDetails(**asdict(found.batch), codes=dict(found.codes))


@routes.get("/api/batches/{batch}/items")
async def batch_items(
    batch: BatchId,
    _: Viewer,
    house: AHouse,
    state: StateOf = None,
    code: CodeOf = None,
    checkpoint: CheckpointOf = None,
    text: TextOf = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[JobLine]:
    """Its jobs, newest first."""
    await house.retoma.batches.get(batch)
    search = Search(batch=batch, state=state, code=code, checkpoint=checkpoint, text=text)
    return await page_of_jobs(house, "items", search, cursor, limit)


@routes.post("/api/batches/{batch}/resume", responses=BY_A_JOB)
async def resume(
    batch: BatchId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """Its parked jobs go on where they stopped, and a pause is over."""
    found = await house.retoma.batches.get(batch)
    order = Order(verb="resume", actor=who.name, batch=batch)
    return await do_to_batch(house, found, order, visit, response)


@routes.post("/api/batches/{batch}/retry-failed", responses=BY_A_JOB)
async def retry_failed(
    batch: BatchId,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    body: Codes | None = None,
) -> Moved:
    """Its dead jobs once more, all or by code; committed steps are kept."""
    found = await house.retoma.batches.get(batch)
    codes = None if body is None else body.codes
    order = Order(verb="retry", actor=who.name, batch=batch, codes=codes)
    return await do_to_batch(house, found, order, visit, response)


@routes.post("/api/batches/{batch}/cancel", responses=BY_A_JOB)
async def cancel(
    batch: BatchId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """End every job of it that has not ended."""
    found = await house.retoma.batches.get(batch)
    order = Order(verb="cancel", actor=who.name, batch=batch)
    return await do_to_batch(house, found, order, visit, response)


@routes.post("/api/batches/{batch}/skip", responses=BY_A_JOB)
async def skip(
    batch: BatchId,
    body: SkipInBatch,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
) -> Moved:
    """End one job of it, or those that failed with these codes, without doing them."""
    found = await house.retoma.batches.get(batch)
    if body.job is not None:
        moved = await found.skip(body.why, job=body.job, actor=who.name)
        return Moved(batch=batch, moved=moved)
    order = Order(verb="skip", actor=who.name, batch=batch, codes=body.codes, why=body.why)
    return await do_to_batch(house, found, order, visit, response)


@routes.post("/api/batches/{batch}/pause")
async def pause(batch: BatchId, who: Operator, house: AHouse) -> Paused:
    """Start no more of its jobs; what runs ends."""
    return Paused.model_validate(await batches.pause_batch(house.retoma, batch, actor=who.name))


@routes.post("/api/batches/{batch}/unpause")
async def unpause(batch: BatchId, who: Operator, house: AHouse) -> Paused:
    """Let it go on where it was paused."""
    return Paused.model_validate(
        await batches.unpause_batch(house.retoma, batch, actor=who.name)
    )
