"""The simulated loop: virtual time, an order that a seed decides, hosts that die and stop."""

import asyncio
from random import Random
from typing import Any

import pytest

from retoma.simulation.loop import NeverEnds, new_loop


async def speak(said: list[str], name: str, times: int = 3) -> None:
    for number in range(times):
        said.append(f"{name}{number}")
        await asyncio.sleep(0)


def talk(seed: int) -> list[str]:
    """What three threads say, in the order in which a seed lets them."""
    loop = new_loop(Random(seed))
    said: list[str] = []
    tasks = [
        loop.start_on(loop.new_thread(loop.new_host(name)), speak(said, name)) for name in "abc"
    ]
    loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
    return said


def test_a_seed_decides_the_order_and_each_thread_keeps_its_own():
    orders = {tuple(talk(seed)) for seed in range(20)}

    assert talk(7) == talk(7)
    assert len(orders) > 10
    for order in orders:
        for name in "abc":
            assert [f"{name}{n}" for n in range(3)] == [s for s in order if s[0] == name]


def test_an_hour_passes_at_once():
    loop = new_loop(Random(0))

    loop.run_until_complete(asyncio.sleep(3600))

    assert 3600 <= loop.time() < 3601


def test_a_killed_host_runs_nothing_any_more_not_even_finally():
    loop = new_loop(Random(0))
    said: list[Any] = []
    host = loop.new_host("doomed")

    async def work() -> None:
        try:
            await asyncio.sleep(10)
            said.append("survived")
        finally:
            said.append("finally")

    async def main() -> None:
        loop.start_on(loop.new_thread(host), work())
        await asyncio.sleep(5)
        loop.kill(host)
        await asyncio.sleep(100)

    loop.run_until_complete(main())

    assert [] == said
    loop.close()


def test_a_stopped_host_goes_on_where_it_was_when_it_is_continued():
    loop = new_loop(Random(0))
    said: list[Any] = []
    host = loop.new_host("frozen")

    async def work() -> None:
        await asyncio.sleep(10)
        said.append(round(loop.time()))

    async def main() -> None:
        task = loop.start_on(loop.new_thread(host), work())
        await asyncio.sleep(5)
        host.stop()
        await asyncio.sleep(95)
        host.go_on()
        await task

    loop.run_until_complete(main())

    assert [100] == said


def test_who_waits_for_ever_is_found():
    loop = new_loop(Random(0))

    with pytest.raises(NeverEnds, match="everybody waits and nothing is due"):
        loop.run_until_complete(loop.create_future())


def test_a_bound_of_virtual_time_is_kept():
    loop = new_loop(Random(0))

    with pytest.raises(NeverEnds, match="not at rest after 60 s"):
        loop.run_until_complete(asyncio.sleep(61), until=60)
