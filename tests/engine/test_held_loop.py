"""A loop that is wound up, and what is left when it is not."""

import asyncio
import faulthandler

from retoma.engine import held_loop
from retoma.engine.held_loop import LoopWatch


async def test_a_loop_that_goes_on_leaves_nothing_behind():
    watch = LoopWatch("lively", 0.4)

    watch.start()
    there = held_loop._place("lively").exists()
    await asyncio.sleep(0.8)
    watch.stop()

    assert there
    assert "" == held_loop.stacks_of("lively")
    assert not held_loop._place("lively").exists()


async def test_a_limit_of_nothing_watches_nothing():
    watch = LoopWatch("unwatched", 0)

    watch.start()
    there = held_loop._place("unwatched").exists()
    watch.stop()

    assert not there


def test_what_a_boot_wrote_is_read_until_it_is_forgotten():
    with held_loop._place("written").open("w") as file:
        faulthandler.dump_traceback(file)

    told = held_loop.stacks_of("written")
    held_loop.forget("written")

    assert "in test_what_a_boot_wrote_is_read_until_it_is_forgotten" in told
    assert "" == held_loop.stacks_of("written")
    held_loop.forget("written")
