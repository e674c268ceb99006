"""The doors of texts: what is looked through for secrets before anybody is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from retoma.access.model import told
from retoma.secret import known, redact_text
from tests.cost.family import KIBIBYTE, Cost, Family
from tests.cost.inputs import TEXT

LOOKED_THROUGH: Final = Cost(cpu=4.0, memory=60)
NOT_LOOKED_THROUGH: Final = Cost(cpu=0.1, memory=10)


@asynccontextmanager
async def opened() -> AsyncIterator[None]:
    """Some secrets to look for."""
    for n in range(20):
        known.add(f"CANARY-secret-{n}-abcdefghijkl")
    yield


async def redacted(_: None, text: str) -> object:
    return redact_text(text)


async def kept(_: None, text: str) -> object:
    return told(text)


FAMILIES: Final = [
    *(
        Family(
            door="a line of the log",
            name=name,
            make=make,
            read=redacted,
            cost=LOOKED_THROUGH,
            smallest=8 * KIBIBYTE,
            largest=64 * KIBIBYTE,
            limit=128 * KIBIBYTE,
        )
        for name, make in TEXT.items()
    ),
    *(
        Family(
            door="what a browser says of itself",
            name=name,
            make=make,
            read=kept,
            cost=NOT_LOOKED_THROUGH,
            smallest=2 * KIBIBYTE,
            largest=16 * KIBIBYTE,
            limit=16 * KIBIBYTE,
        )
        for name, make in TEXT.items()
    ),
]
