"""One Retoma used by several threads, each with event loops of its own, as under a threaded web server."""

import asyncio
import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from retoma import BadInput, Context, Retoma, State
from tests.engine.aids import eventually

THREADS = 8
REQUESTS = 10  # of each thread, each on a loop of its own


def with_work(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def work(ctx: Context, n: int) -> int:
        return n

    return app


def asked_by_threads(ask: Any) -> list[Any]:
    """What each of `THREADS` threads was answered; a thread that hangs fails the test."""
    with ThreadPoolExecutor(THREADS) as pool:
        return [each.result(60) for each in [pool.submit(ask, n) for n in range(THREADS)]]


def test_d7_every_thread_is_answered_on_its_own_loop(database_url):
    app = with_work(database_url)

    async def submit(n: int) -> list[int]:
        made = await asyncio.gather(*(app.submit("work", n) for _ in range(3)))
        [keyed, again] = [await app.submit("work", n, key=f"key {n}") for _ in range(2)]
        batch = await app.submit_many("work", [n])
        assert (keyed.id, 1) == (again.id, sum((await batch.counts()).values()))
        return [job.id for job in made]

    def request(thread: int) -> list[int]:
        return [job for n in range(REQUESTS) for job in asyncio.run(bounded(submit(n)))]

    answers = asked_by_threads(request)
    counts = asyncio.run(app.insights.counts())
    asyncio.run(app.close())

    assert THREADS * REQUESTS * 3 == len({job for each in answers for job in each})
    keyed, batches = REQUESTS, THREADS * REQUESTS
    assert {State.WAITING: THREADS * REQUESTS * 3 + keyed + batches} == counts


async def bounded(asked: Any) -> Any:
    async with asyncio.timeout(50):
        return await asked


def test_d7_a_loop_that_is_stopped_while_it_submits_holds_up_no_other(database_url):
    app = with_work(database_url)
    asyncio.run(app.submit("work", 0))
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def interrupted() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        for n in range(20):
            asyncio.ensure_future(app.submit("work", n))  # noqa: RUF006 — ended with its loop
        await asyncio.sleep(0)

    async def all_tasks_cancelled() -> None:
        """As a server that cancels all it has, and goes on."""
        asked = [asyncio.ensure_future(app.submit("work", n)) for n in range(3)]
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await app.submit("work", 3)

    for _ in range(3):
        asyncio.run(interrupted())
        asyncio.run(bounded(app.submit("work", 1)))
        asyncio.run(bounded(all_tasks_cancelled()))
    gc.collect()

    assert [None] * 3 == [loop() for loop in loops], "nothing keeps a loop that is over"
    asyncio.run(app.close())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_d7_threads_of_a_forked_process_open_connections_of_their_own(database_url):
    app = with_work(database_url)
    asyncio.run(app.submit("work", 0))

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asked_by_threads(lambda n: asyncio.run(bounded(app.submit("work", n))))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    counts = asyncio.run(app.insights.counts())
    asyncio.run(app.close())

    assert 0 == os.waitstatus_to_exitcode(status)
    assert {State.WAITING: 1 + THREADS} == counts


def test_d7_a_runner_is_stopped_from_another_thread_and_closed_on_its_own(database_url):
    app = with_work(database_url)
    thread = threading.Thread(target=lambda: asyncio.run(app.run(tick=600)))
    thread.start()
    job = asyncio.run(app.submit("work", 7))

    async def done() -> bool:
        return (await app.get(job.id)).state is State.DONE

    asyncio.run(eventually(done))
    with pytest.raises(BadInput, match="call stop"):
        asyncio.run(app.close())
    app.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert [] == [each for each in asyncio.run(app.runners.list()) if each.living]
    asyncio.run(app.close())
