"""A claim behind many rows that it may not take: scheduled ones, a paused batch's, unknown kinds'.

They stand before everything else; an unknown kind has a queue of its own, as every kind has that was not
told otherwise. Measured is a claim of a hundred, beside the same
claim where nothing stands before it; what the first claims put out of the way is not.
"""

import asyncio
import statistics
from typing import TYPE_CHECKING, Any

from bench.child import call
from bench.compare import Figures, Measure
from bench.floor import BOOT, KIND, KNOWS, Floor
from bench.history import CLAIMED, LIMIT, address, opened, timed
from bench.places import Places

if TYPE_CHECKING:
    from retoma.db import Database, Transaction
    from retoma.engine.store import Found

HERE = "bench.blocked"
WALLS = ("scheduled", "paused", "unknown")
SHARED = "unknown_in_a_shared_queue"  # which somebody must have asked for by name
UNKNOWN = {"unknown": "stranger", SHARED: "squatter"}
MET = 2_000  # jobs in one look at a closed gate
FIRST = -10  # the priority of what is in the way


# --- In the parent


def behind(make: str, wall: str, rows: int, samples: int) -> Measure:
    """How many times longer a claim takes behind `rows` of one of WALLS than behind none."""

    def measure(places: Places) -> Figures:
        urls = [address(places, make, side) for side in ("small", "large")]
        for url, there in zip(urls, (0, rows), strict=True):
            call(f"{HERE}:build", limit=LIMIT, url=url, wall=wall, rows=there)
        return (call(f"{HERE}:claim_in_turns", limit=LIMIT, urls=urls, samples=samples),)

    return measure


# --- In a child


def build(url: str, wall: str, rows: int) -> None:
    asyncio.run(build_wall(url, wall, rows))


async def build_wall(url: str, wall: str, rows: int) -> None:
    from retoma import Context, Retoma

    app = Retoma(url)

    async def do_nothing(_ctx: Context, _payload: Any) -> None: ...

    app.job(name=KIND)(do_nothing)
    app.job(name="stranger")(do_nothing)
    app.job(name="squatter", queue=KIND)(do_nothing)
    async with app:
        await app.upgrade()
        if not rows:
            return
        kind = UNKNOWN.get(wall, KIND)
        delay = 86_400 if wall == "scheduled" else None
        batch = await app.submit_many(
            kind, [{}] * rows, name="wall", delay=delay, priority=FIRST
        )
        if wall == "paused":
            await batch.pause()


def claim_in_turns(urls: list[str], samples: int) -> float:
    return asyncio.run(claim_all(urls, samples))


async def claim_all(urls: list[str], samples: int) -> float:
    taken: list[list[float]] = [[], []]
    with opened(urls) as databases:
        for database in databases:
            await prepare(database, (samples + 1) * CLAIMED)
        for turn in range(samples):
            for side in (0, 1) if turn % 2 else (1, 0):
                taken[side].append(await timed(databases[side], claim, writes=True))
    bare, behind_it = (statistics.median(seconds) for seconds in taken)
    return behind_it / bare


async def prepare(database: "Database", waiting: int) -> None:
    """A runner, something to claim, and claims until one gets what it asks for."""
    from retoma.engine.store import Submission, submit_jobs

    await Floor(database, CLAIMED).boot()
    about = Submission(kind=KIND, version=1, queue=KIND)
    await database.write(
        lambda tx: submit_jobs(tx, about, ["{}"] * waiting), verb="submit_many"
    )
    while (await database.write(claim, verb="claim")).gated:
        await database.write(set_aside, verb="claim")


def claim(tx: "Transaction") -> "Found":
    from retoma.engine.store import Spot, claim_jobs

    return claim_jobs(tx, BOOT, [Spot(KIND)], KNOWS, slots=CLAIMED, suspects=0, promote=True)


def set_aside(tx: "Transaction") -> "Found":
    """What a runner does after a claim that met a closed gate."""
    from retoma.engine.store import Spot, claim_past_gates

    return claim_past_gates(
        tx, BOOT, [Spot(KIND)], KNOWS, slots=0, suspects=0, promote=False, meet=MET
    )
