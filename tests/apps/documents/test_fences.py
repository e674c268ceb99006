"""Who moves an execution by what he read is refused where it is no longer so, on whichever connection (C5)."""

import asyncio
from typing import Any

from retoma.apps.documents import store
from retoma.apps.documents.store.executions import Stand
from retoma.apps.documents.store.rows import SQL
from retoma.db import Statement
from tests.apps.documents.aids import WHO, House, house, paper

QUIET = 301  # seconds: a little more than five minutes


async def moved(there: House, statement: Statement, **how: Any) -> bool:
    """As somebody would who read that some time ago."""
    database = await there.app.database()
    return await database.write(lambda tx: tx.one(statement, **how) is not None, verb="test")


async def test_c5_a_resume_counts_once_for_what_was_seen(database_url, test_clock):
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1")])
        await there.left_by_a_dead_runner(execution)
        await there.idle_runner()
        test_clock.jump(QUIET)
        seen = await there.stand(execution)
        old = {"execution": execution, "epoch": seen.epoch, "anyway": 0}
        assert await moved(there, SQL.resume_execution, **old)
        new = {**old, "epoch": seen.epoch + 1}
        assert not await moved(there, SQL.resume_execution, **new), "it is not stuck any more"
        test_clock.jump(QUIET)
        assert "TRAVADO" == (await there.stand(execution)).status
        assert not await moved(there, SQL.resume_execution, **old), "that was another epoch"
        assert await moved(there, SQL.resume_execution, **new)


async def test_c5_what_failed_is_tried_again_once_for_what_was_seen(database_url):
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1", "stumble.pdf")])
        await there.drained()
        seen = await there.stand(execution)
        old = {
            "execution": execution,
            "generation": seen.generation,
            "reprocessed": 1,
            "rules": "{}",
        }
        stand, set_going = await reprocessed(there, execution)
        assert ("EM_ANDAMENTO", True) == (stand.status, set_going)
        new = {**old, "generation": seen.generation + 1}
        assert not await moved(there, SQL.reprocess_execution, **new), "it has not ended"
        await there.drained()
        assert not await moved(there, SQL.reprocess_execution, **old), (
            "that was another generation"
        )
        assert await moved(there, SQL.reprocess_execution, **new)


async def reprocessed(there: House, execution: int) -> tuple[Stand, bool]:
    return await there.app.write(
        lambda tx: store.executions.reprocess(tx, execution, actor=WHO)
    )


async def test_c5_fifty_who_resume_on_two_connections_are_one(database_url, test_clock):
    """Two houses, each with a connection of its own: on PostgreSQL they really meet."""
    async with house(database_url) as here, house(database_url) as there:
        execution = await here.execution([paper("A-1")])
        await here.left_by_a_dead_runner(execution)
        await here.idle_runner()
        test_clock.jump(QUIET)

        async def resume(each: House) -> bool:
            stand = await each.app.write(
                lambda tx: store.executions.resume(tx, execution, actor=WHO)
            )
            return stand is not None

        answers = await asyncio.gather(*(resume(each) for each in [here, there] * 25))
        assert 1 == sum(answers)
        stand = await here.stand(execution)
        assert (2, 1) == (stand.epoch, stand.resumes)
