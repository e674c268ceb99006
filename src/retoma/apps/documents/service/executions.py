"""Executions: add, list, resume, reprocess, cancel."""

from collections.abc import Collection, Sequence

from retoma.apps.documents import store
from retoma.apps.documents.model import ExecutionStatus
from retoma.apps.documents.service.database import Page, create_once, cut_page, read
from retoma.apps.documents.store.executions import ExecutionLine, NewDocument, Stand
from retoma.db import Transaction
from retoma.engine.store import Asked
from retoma.library import Retoma


async def list_executions(
    retoma: Retoma,
    *,
    limit: int,
    before: int | None = None,
    project: int | None = None,
    status: ExecutionStatus | None = None,
) -> Page[ExecutionLine]:
    """List executions, the newest first."""
    rows = await read(
        retoma,
        lambda tx: store.executions.list_executions(
            tx, before=before, n=limit + 1, project=project, status=status
        ),
    )
    return cut_page(rows, limit, lambda each: each.id)


async def get_execution(retoma: Retoma, execution: int) -> ExecutionLine:
    return await read(retoma, lambda tx: store.executions.get_execution(tx, execution))


async def add_execution(
    retoma: Retoma,
    project: int,
    documents: Sequence[NewDocument],
    *,
    actor: str,
    name: str | None = None,
    budget: str | None = None,
    without: Collection[str] = (),
    once: Asked | None = None,
) -> tuple[int, bool]:
    """Submit all of these documents, or none; return the execution, and whether this call added it.
    `without`: codes of documents that are left out."""
    return await create_once(
        retoma,
        once,
        lambda tx: store.executions.add_execution(
            tx, project, documents, name=name, budget=budget, without=without, actor=actor
        ),
    )


async def count_labels(retoma: Retoma, execution: int) -> dict[str, int]:
    """Count the documents of an execution by label."""

    def count(tx: Transaction) -> dict[str, int]:
        store.executions.stand_of(tx, execution)
        return store.documents.count_labels(tx, execution)

    return await read(retoma, count)


async def resume_execution(
    retoma: Retoma, execution: int, *, actor: str, anyway: bool = False
) -> tuple[Stand, bool]:
    """Resume an execution where it stopped; return its state, and whether this call changed it.
    Documents that are parked or paused are resumed too, and that is not counted as a resume.
    `anyway`: also beyond the limit of its project."""
    moved = await retoma.write(
        lambda tx: store.executions.resume(tx, execution, actor=actor, anyway=anyway)
    )
    await retoma.runners.take_back(actor=actor)
    batch = await retoma.batches.get(execution)
    unparked = 0
    if not (await batch.progress()).finished:
        unparked = await batch.resume(actor=actor)
    return await _get_stand(retoma, execution), moved is not None or unparked > 0


async def cancel_execution(retoma: Retoma, execution: int, *, actor: str) -> tuple[Stand, bool]:
    """Cancel what has not ended; return the state of the execution, and whether this call changed it."""
    canceled = await retoma.write(
        lambda tx: store.executions.cancel(tx, execution, actor=actor)
    )
    await (await retoma.batches.get(execution)).cancel(actor=actor)
    return await _get_stand(retoma, execution), canceled


async def reprocess_errors(
    retoma: Retoma, execution: int, *, actor: str, code: str | None = None
) -> tuple[Stand, bool]:
    """Retry the documents that failed, as a new generation; return the state of the execution, and
    whether this call changed it. `code`: only documents that failed by this code."""
    return await retoma.write(
        lambda tx: store.executions.reprocess(tx, execution, actor=actor, code=code)
    )


async def skip_errors(
    retoma: Retoma, execution: int, code: str, why: str, *, actor: str
) -> int:
    """Skip every document that failed, or is parked, by this code; return how many."""
    return await (await retoma.batches.get(execution)).skip(why, codes=[code], actor=actor)


async def _get_stand(retoma: Retoma, execution: int) -> Stand:
    return await read(retoma, lambda tx: store.executions.stand_of(tx, execution))
