"""A loop that is wound up, what is left when it is not, and that nothing ends a process without a loop."""

import asyncio
import faulthandler
import os
import subprocess
import sys

import structlog

from retoma.engine.isolation.scratch import find_kept, kept_file, scratch
from retoma.engine.ops.loop_watchdog import HeldLoops, LoopWatch
from tests import nursery
from tests.engine.aids import eventually

HELD = """
import asyncio, sys, time
from retoma.engine.ops.loop_watchdog import LoopWatch
from retoma.engine.isolation.scratch import scratch

async def hold_the_loop():
    with LoopWatch(sys.argv[1], 0.3):
        print(scratch(), flush=True)
        time.sleep(60)

asyncio.run(hold_the_loop())
"""
CANCELED_TWICE = """
import asyncio, sys, time
from retoma import Retoma

async def main():
    app = Retoma(sys.argv[1])
    begun, told = asyncio.Event(), asyncio.Event()

    @app.job
    async def stubborn(ctx, _payload):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.set()
            await asyncio.sleep(60)

    async with app:
        await app.submit("stubborn")
        running = asyncio.create_task(app.run(loop_limit=0.5, let_go=60))
        await begun.wait()
        running.cancel()
        await told.wait()
        running.cancel()
        await asyncio.wait([running])

asyncio.run(main())
print("has other work", flush=True)
time.sleep(2)
"""


async def test_a_loop_that_goes_on_is_wound_up_again_and_leaves_nothing_behind(monkeypatch):
    """Nothing is really wound up: on a machine that pauses, it would end the tests."""
    wound: list[float] = []

    def wind(limit: float, *, exit: bool, file: object) -> None:  # noqa: A002 — as it is called
        wound.append(limit)

    async def again() -> bool:
        return len(wound) >= 3

    monkeypatch.setattr(faulthandler, "dump_traceback_later", wind)
    watch = LoopWatch("lively", 0.1)

    watch.start()
    there = find_kept("lively")
    await eventually(again)
    watch.stop()

    assert {0.1} == set(wound)
    assert there == kept_file("lively")
    assert "" == HeldLoops().stacks_of("lively")
    assert find_kept("lively") is None


async def test_a_loop_is_watched_where_there_is_no_temp_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: None)
    monkeypatch.setattr("retoma.engine.isolation.scratch._ours", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    watch = LoopWatch("ana", 60)

    with structlog.testing.capture_logs() as told:
        watch.start()
        watch.stop()

    assert ["runner.stacks_go_to_stderr"] == [line["event"] for line in told]
    assert "" == HeldLoops().stacks_of("ana")


async def test_no_folder_of_another_user_is_in_the_way(tmp_path, monkeypatch):
    """As `retoma-loops-0` was, which anybody could make for root."""
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: None)
    monkeypatch.setattr("retoma.engine.isolation.scratch._ours", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (f"retoma-loops-{os.getuid()}", f"retoma-{os.getuid()}", "retoma-scratch-"):
        (tmp_path / name).touch()

    with structlog.testing.capture_logs() as told, LoopWatch("ana", 60):
        assert find_kept("ana") == kept_file("ana")

    assert [] == told


async def test_a_limit_of_nothing_watches_nothing():
    with LoopWatch("unwatched", 0):
        assert find_kept("unwatched") is None


def test_what_a_held_process_wrote_is_read_until_it_is_forgotten():
    done = subprocess.run(
        [sys.executable, "-c", HELD, "held"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 1 == done.returncode, done.stderr
    [folder] = done.stdout.splitlines()

    scratch()  # which sweeps what the dead have left
    told = HeldLoops().stacks_of("held")
    HeldLoops().forget("held")

    assert "in hold_the_loop" in told
    assert "" == HeldLoops().stacks_of("held")
    assert not os.path.exists(folder)  # noqa: PTH110 — a word of the child's
    HeldLoops().forget("held")


async def test_a_runner_that_was_cut_short_ends_no_process(database_url):
    """Canceled while it stopped its jobs, it left the watch armed: the process died of a loop it no longer had."""
    child = nursery.Born(
        [sys.executable, "-c", CANCELED_TWICE, database_url], stdout=subprocess.PIPE, text=True
    )

    out, _ = await asyncio.to_thread(child.communicate, timeout=60)

    assert ("has other work\n", 0) == (out, child.returncode)
