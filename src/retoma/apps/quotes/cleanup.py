"""The daily cleaning up: quotes that began more than a day ago and that nobody works on end in ERROR."""

from typing import Final, NamedTuple

from retoma.apps.quotes import store
from retoma.library import Retoma

OLD: Final = "24h"
SLICE: Final = 1_000  # parked quotes of one transaction


class Cleanup(NamedTuple):
    """The quotes that were given up: between two attempts, and parked. Their ERROR comes with the next claim."""

    waiting: list[int]
    parked: list[int]


async def clean_up(retoma: Retoma, *, actor: str) -> Cleanup:
    """Give up what is too old and no runner holds; who calls this takes back what lost runners hold first."""
    waiting = await retoma.write(lambda tx: store.expire_old(tx, OLD, actor=actor))
    parked: list[int] = []
    while True:
        some = await retoma.write(lambda tx: store.expire_parked(tx, OLD, n=SLICE, actor=actor))
        parked += some
        if len(some) < SLICE:
            break
    database = await retoma.database()
    quotes = await database.read(lambda tx: store.quotes_of(tx, [*waiting, *parked]))
    return Cleanup(
        [quotes[job] for job in waiting if job in quotes],
        [quotes[job] for job in parked if job in quotes],
    )
