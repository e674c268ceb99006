"""Where a task stands."""

import asyncio

from retoma.engine.handlers import stacks


async def outer() -> None:
    await inner()


async def inner() -> None:
    await asyncio.get_running_loop().create_future()


async def test_the_stack_of_a_waiting_task_goes_down_to_what_it_waits_for():
    task = asyncio.create_task(outer())
    await asyncio.sleep(0)

    told = stacks.of_task(task)
    task.cancel()

    assert told.index("in outer") < told.index("in inner") < told.index("waits for <")


async def test_of_many_tasks_only_some_are_told():
    tasks = [asyncio.create_task(inner()) for _ in range(20)]
    await asyncio.sleep(0)

    told = stacks.of_tasks(tasks)
    for task in tasks:
        task.cancel()

    assert stacks.AT_MOST == told.count("in inner")


async def test_a_task_that_has_ended_stands_nowhere():
    task = asyncio.create_task(asyncio.sleep(0))
    await task

    assert "" == stacks.of_task(task)
