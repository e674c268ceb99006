"""What several ask at once is one question, and everybody gets his own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from retoma.engine.writing.coalescer import Together


class Oracle:
    """Answers when it is let, with the double; of 13 it knows nothing, and of 99 it dies."""

    def __init__(self) -> None:
        self.heard: list[list[int]] = []
        self.lets = asyncio.Event()
        self.asking = Together(self.answer, most=3)

    async def answer(self, asked: Sequence[int]) -> list[int | Exception]:
        self.heard.append([*asked])
        await self.lets.wait()
        if 99 in asked:
            raise RuntimeError("it died")
        return [LookupError("nothing") if n == 13 else 2 * n for n in asked]

    async def asked(self, *numbers: int) -> "list[asyncio.Task[int]]":
        tasks = [asyncio.create_task(self.asking.asked(n)) for n in numbers]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks


async def test_who_comes_while_one_is_asked_goes_with_the_next():
    oracle = Oracle()
    tasks = await oracle.asked(1)
    tasks += await oracle.asked(2, 3, 4, 5)
    oracle.lets.set()
    assert [2, 4, 6, 8, 10] == await asyncio.gather(*tasks)
    assert [[1], [2, 3, 4], [5]] == oracle.heard


async def test_each_gets_its_own_error_and_the_next_are_asked_all_the_same():
    oracle = Oracle()
    oracle.lets.set()
    tasks = await oracle.asked(1, 13, 2, 99)
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [2, LookupError, 4, RuntimeError] == [
        each if isinstance(each, int) else type(each) for each in told
    ]
    [after] = await oracle.asked(7)
    assert 14 == await after


async def test_who_leaves_takes_nobody_along():
    oracle = Oracle()
    leaves, stays = await oracle.asked(1, 2)
    leaves.cancel()
    oracle.lets.set()
    assert 4 == await stays
    with pytest.raises(asyncio.CancelledError):
        await leaves


async def test_a_question_holds_so_much_and_one_however_large():
    heard: list[list[int]] = []

    async def answer(asked: Sequence[int]) -> Sequence[int]:
        heard.append([*asked])
        return asked

    asking = Together(answer, most=10, size=lambda n: n)
    numbers = [4, 6, 1, 50, 3, 7]
    assert numbers == await asyncio.gather(*(asking.asked(n) for n in numbers))
    assert [[4, 6], [1], [50], [3, 7]] == heard
    assert asking.idle
