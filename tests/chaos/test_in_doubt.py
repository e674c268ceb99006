"""The connection of a runner breaks while the server is committing: nothing of the job is done twice."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from retoma import Context, Retoma, State, Transaction
from tests import services
from tests.engine.aids import eventually, rows, running
from tests.proxy import Proxy
from tests.standby import SOON, connected, standby_gone, until_commits


@pytest.fixture
def server() -> Iterator[services.PostgresServer]:
    """One of our own, whose standby goes."""
    with services.PostgresServer(services.FAST) as running_server:
        yield running_server


class Stop:
    """A place in a job where it waits until it may go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.passed = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.passed.wait()


def put(tx: Transaction, job: int) -> str:
    tx.run("INSERT INTO public.effects VALUES (:job)", job=job)
    tx.submit("child", job)
    return "done"


def jobs_of(app: Retoma, stop: Stop) -> None:
    @app.job
    async def child(ctx: Context, of: int) -> None: ...

    @app.job
    async def writes(ctx: Context) -> Any:
        await stop()
        return await ctx.write("put", put, ctx.job)

    @app.job
    async def pays(ctx: Context) -> str:
        async def pay() -> str:
            ctx.cost(provider="acme", usd="1.00", calls=1)
            await stop()
            return "done"

        return await ctx.step("pay", pay)

    @app.job
    async def saves(ctx: Context) -> str:
        async def save() -> str:
            await stop()
            return "done"

        return await ctx.step("save", save)


@pytest.mark.parametrize("query", ["", "?pooler=transaction"], ids=["direct", "pooled"])
@pytest.mark.parametrize(
    ("kind", "effects", "spent"), [("writes", 1, 0), ("pays", 0, 1), ("saves", 0, 0)]
)
async def test_what_a_job_commits_while_its_connection_breaks_is_done_once(
    server, query, kind, effects, spent
):
    stop = Stop()
    with Proxy(server.dsn) as proxy, connected(server) as admin:
        async with Retoma(proxy.url + query) as app:
            jobs_of(app, stop)
            await app.upgrade()
            admin.execute("CREATE TABLE public.effects (job bigint)")
            async with running(app, tick=0.5):
                job = await app.submit(kind)
                await asyncio.wait_for(stop.reached.wait(), SOON)

                with standby_gone(admin):
                    stop.passed.set()
                    await eventually(lambda: saving(admin))
                    await asyncio.to_thread(proxy.cut, leave_server=True)
                    await asyncio.sleep(0.5)  # time for whoever would repeat it too soon
                await eventually(lambda: ended(app, job.id))

            assert State.DONE == (await app.get(job.id)).state
            told = [str(event.type) for event in await app.events(job.id)]
            assert ["submitted", "claimed", "step_saved", "done"] == told
            assert effects == len(await app.jobs(kind="child"))
            assert [(effects,)] == await count_effects(app)
            assert spent == sum(cost.spent.usd for cost in await app.costs.of_job(job.id))


@pytest.mark.parametrize("query", ["", "?pooler=transaction"], ids=["direct", "pooled"])
@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "is lost"])
@pytest.mark.parametrize(
    ("kind", "effects", "spent"), [("writes", 1, 0), ("pays", 0, 1), ("saves", 0, 0)]
)
async def test_a_commit_in_doubt_is_done_once_after_a_standby_was_promoted(
    server, query, arrives, kind, effects, spent
):
    """The primary dies while it waits for its standby, which has the commit or has not."""
    stop = Stop()
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(server.dsn))
        async with Retoma(proxy.url + query) as app:
            jobs_of(app, stop)
            await app.upgrade()
            with connected(server) as primary:
                primary.execute("CREATE TABLE public.effects (job bigint)")
            await app.close()
        standby = stack.enter_context(await asyncio.to_thread(server.copy_as_standby))
        replica = stack.enter_context(connected(standby))
        async with Retoma(proxy.url + query) as app:
            jobs_of(app, stop)
            async with running(app, tick=0.5):
                job = await app.submit(kind)
                await asyncio.wait_for(stop.reached.wait(), SOON)
                with connected(server) as primary:
                    await eventually(lambda: claimed(replica, job.id))
                    if not arrives:
                        standby.stop()
                    wait_for_two_standbys(primary)
                    stop.passed.set()
                    await eventually(lambda: saving(primary))
                    if arrives:
                        await eventually(lambda: received(primary, replica))
                    await asyncio.to_thread(proxy.cut, leave_server=True)
                    proxy.refuse()
                await asyncio.to_thread(server.stop, "immediate")
                if not arrives:
                    await asyncio.to_thread(standby.start)
                with connected(standby) as promoted:
                    promoted.execute("SELECT pg_promote()")
                proxy.lead_to(standby.dsn)
                proxy.refuse(False)
                await eventually(lambda: ended(app, job.id), SOON)

            assert State.DONE == (await app.get(job.id)).state
            told = [str(event.type) for event in await app.events(job.id)]
            assert ["submitted", "claimed", "step_saved", "done"] == told
            assert effects == len(await app.jobs(kind="child"))
            assert [(effects,)] == await count_effects(app)
            assert spent == sum(cost.spent.usd for cost in await app.costs.of_job(job.id))


async def claimed(replica: "psycopg.Connection[Any]", job: int) -> bool:
    found = replica.execute("SELECT state FROM retoma.jobs WHERE id = %s", [job])
    return [("running",)] == found.fetchall()


def wait_for_two_standbys(primary: "psycopg.Connection[Any]") -> None:
    """Every commit waits for one more standby, which never answers."""
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '2 (standby, gone)'")
    primary.execute("SELECT pg_reload_conf()")
    until_commits(primary, wait=True)


async def received(
    primary: "psycopg.Connection[Any]", replica: "psycopg.Connection[Any]"
) -> bool:
    """Whether the standby has on disk what the primary has."""
    [(here,)] = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
    sql = "SELECT pg_last_wal_receive_lsn() >= CAST(%s AS pg_lsn)"
    return bool(replica.execute(sql, [here]).fetchall()[0][0])


async def saving(admin: "psycopg.Connection[Any]") -> bool:
    """Whether a transaction that saves a step waits for the standby; others wait no longer."""
    waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    at_steps = (
        "SELECT pid FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation = %s::regclass"
    )
    # In this order: who waits has all its locks.
    waiting = {pid for (pid,) in admin.execute(waits).fetchall()}
    saves = {pid for (pid,) in admin.execute(at_steps, ["retoma.steps"]).fetchall()}
    for pid in waiting - saves:
        admin.execute("SELECT pg_cancel_backend(%s)", [pid])
    return bool(waiting & saves)


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def count_effects(app: Retoma) -> list[tuple[Any, ...]]:
    return await rows(await app.database(), "SELECT count(*) FROM public.effects")
