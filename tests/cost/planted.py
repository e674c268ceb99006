"""A door that is made to cost too much: the gate must name it. It stands in no table."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.cost.family import Cost, Family

STEP: Final = 8  # bytes between two looks through all that came before
ANY: Final = Cost(cpu=1_000.0, memory=1_000)  # only how its cost grows can be wrong


@asynccontextmanager
async def opened() -> AsyncIterator[None]:
    yield


async def look_back(_: None, raw: bytes) -> object:
    return sum(raw.count(b"b", 0, at) for at in range(0, len(raw), STEP))


async def look_once(_: None, raw: bytes) -> object:
    return [raw.count(b"b", at, at + STEP) for at in range(0, len(raw), STEP)]


FAMILIES: Final = [
    Family(
        door="a planted door",
        name=name,
        make=lambda n: b"a" * n,
        read=read,
        cost=ANY,
    )
    for name, read in (
        ("the square of its bytes", look_back),
        ("as many as its bytes", look_once),
    )
]
