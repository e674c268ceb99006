"""An event loop in a thread of its own goes on, whatever a task on it raises."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from retoma.engine.loop_thread import LoopThread

SECONDS = 30.0  # nothing here takes that long


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("retoma-test")
    yield thread
    thread.stop(SECONDS)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_a_task_that_ends_its_thread_ends_only_itself(thread, end):
    async def leaves() -> None:
        raise end

    async def answers() -> str:
        return "an answer"

    with capture_logs() as logs:
        left = asyncio.run_coroutine_threadsafe(leaves(), thread.loop)
        answered = asyncio.run_coroutine_threadsafe(answers(), thread.loop)
        told = answered.result(SECONDS)

    assert "an answer" == told
    assert end is type(left.exception(SECONDS))
    assert ["loop.interrupted"] == [line["event"] for line in logs]


def test_a_thread_that_is_stopped_closes_its_loop(thread):
    thread.stop(SECONDS)

    assert thread.loop.is_closed()
