"""What people do with executions and documents; API, pages and command line call these."""

from retoma.apps.documents import store
from retoma.apps.documents.store.executions import Stand
from retoma.library import Retoma


async def resume(
    retoma: Retoma, execution: int, *, actor: str, anyway: bool = False
) -> tuple[Stand, bool]:
    """Go on where it stopped: how it stands then, and whether this call set it going. What waits for a
    person or was paused goes on too, and that is counted as no resume."""
    moved = await retoma.write(
        lambda tx: store.executions.resume(tx, execution, actor=actor, anyway=anyway)
    )
    await retoma.take_back(actor=actor)
    batch = await retoma.batch(execution)
    unparked = 0
    if not (await batch.progress()).finished:
        unparked = await batch.resume(actor=actor)
    stand = await stand_of(retoma, execution)
    return stand, moved is not None or unparked > 0


async def cancel(retoma: Retoma, execution: int, *, actor: str) -> tuple[Stand, bool]:
    """End what has not ended; whether this call said so first."""
    canceled = await retoma.write(
        lambda tx: store.executions.cancel(tx, execution, actor=actor)
    )
    await (await retoma.batch(execution)).cancel(actor=actor)
    return await stand_of(retoma, execution), canceled


async def reprocess(retoma: Retoma, execution: int, *, actor: str) -> tuple[Stand, bool]:
    """Try what failed again, as a new generation; whether this call set it going."""
    return await retoma.write(lambda tx: store.executions.reprocess(tx, execution, actor=actor))


async def stand_of(retoma: Retoma, execution: int) -> Stand:
    database = await retoma.database()
    return await database.read(lambda tx: store.executions.stand_of(tx, execution))
