"""Wait for a scenario for as long as it gets on: a busy machine is no hang."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from retoma import db
from retoma.db import DatabaseError, adhoc
from tests.prove.play import Play

STILL = 40.0  # seconds in which nothing gets on
LIMIT = 300.0  # seconds in which even what gets on has to be done; most take one or two
RECORDED = adhoc(
    "SELECT count(*), sum(seq), sum(epoch), (SELECT count(*) FROM runners WHERE state <> 'alive'),"
    " (SELECT count(*) FROM runners) FROM jobs"
)


class Hangs(Exception):
    """A scenario that is not done and does not get on."""


async def until_done(
    acts: Awaitable[None],
    progress: Callable[[], Awaitable[object]],
    *,
    still: float,
    limit: float = LIMIT,
) -> None:
    """Raise Hangs, and cancel what acts, where `progress` is the same after so many seconds."""
    began = time.monotonic()
    acting = asyncio.ensure_future(acts)
    before = None
    try:
        while not (await asyncio.wait([acting], timeout=still))[0]:
            now = await progress()
            if now == before:
                raise Hangs(f"nothing got on for {still:g} s")
            if time.monotonic() - began > limit:
                raise Hangs(f"not done after {limit:g} s")
            before = now
        acting.result()
    finally:
        acting.cancel()
        await asyncio.wait([acting])


async def of_play(played: Play, direct: str) -> object:
    """What a scenario has done: events and claims of jobs, runners, effects, and questions that were refused.

    Heartbeats are none: a runner that only sends those is what a hang looks like.
    """
    written = sum(each.stat().st_size for each in played.folder.iterdir())
    return await asyncio.to_thread(_recorded, direct), written, len(played.refused)


def _recorded(direct: str) -> object:
    """The rows; of a database that cannot be read the error, which is like no other: only `LIMIT` ends that."""
    database = db.open(direct, patience=1.0)
    try:
        return asyncio.run(database.read(lambda tx: tx.one(RECORDED)))
    except DatabaseError as error:
        return error
    finally:
        database.close()
