"""The floor: the engine's own statements, run raw, with no stories, no slots and no runner around them.

What the runner loses against it is what our Python costs. Claims of a full batch on one line, settling on
the other, one batch ahead, as the runner does; on SQLite both go through the one writer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from bench.child import call
from bench.compare import Absent, Figures, Measure
from bench.places import Places
from bench.span import seconds_of

if TYPE_CHECKING:
    from retoma.db import Database, Transaction
    from retoma.engine.rules.job import Claim
    from retoma.engine.store import Spot

T = TypeVar("T")

HERE = "bench.floor"
SIDE = "floor"
KIND = "noop"
KNOWS = (f"{KIND}@1",)
BOOT = "floor"
LEASE = 600.0  # seconds: nobody beats here


# --- In the parent


def floor_drain_postgres(jobs: int, batch: int) -> Measure:
    return lambda places: rate(jobs, batch, url=needed(places).postgres(SIDE))


def floor_drain_sqlite(jobs: int, batch: int) -> Measure:
    return lambda places: rate(jobs, batch, url=f"sqlite:///{needed(places).file(SIDE)}")


def rate(jobs: int, batch: int, url: str) -> Figures:
    call(f"{HERE}:fill", url=url, jobs=jobs)
    call(f"{HERE}:drain", url=url, batch=batch)
    return (jobs / seconds_of(url, jobs),)


def needed(places: Places) -> Places:
    if find_spec("retoma") is None:
        raise Absent("not installed: retoma")
    return places


# --- In a child


def fill(url: str, jobs: int) -> None:
    from retoma.engine.store import Submission, open_batch, submit_jobs

    def submit(tx: "Transaction") -> None:
        # In a batch, as ours are: one more index to keep.
        batch, _ = open_batch(tx, name="floor", key="floor", kind=KIND)
        about = Submission(kind=KIND, version=1, queue=KIND, batch=batch)
        submit_jobs(tx, about, (f'{{"number":{number}}}' for number in range(jobs)))

    asyncio.run(migrated_and(url, submit))


async def migrated_and(url: str, submit: "Callable[[Transaction], None]") -> None:
    from retoma import db
    from retoma.db.migrations import upgrade

    database = db.open(url)
    await upgrade(database)
    await database.write(submit, verb="submit")
    database.close()


def drain(url: str, batch: int) -> None:
    import uvloop

    uvloop.run(drain_all(url, batch))


async def drain_all(url: str, batch: int) -> None:
    from retoma import db

    floor = Floor(db.open(url), batch)
    await floor.boot()
    claimed: asyncio.Queue[list[Claim]] = asyncio.Queue(maxsize=1)
    await asyncio.gather(floor.claim_all(claimed), floor.settle_all(claimed))
    floor.database.close()


@dataclass(slots=True)
class Floor:
    """A runner's two statements and nothing else."""

    database: "Database"
    batch: int

    async def boot(self) -> None:
        from retoma.engine.ports import Process
        from retoma.engine.store import Boot, boot_runner

        me = Boot(
            id=BOOT,
            name=BOOT,
            process=Process.this(),
            version="0",
            slots=self.batch,
            knows=KNOWS,
        )
        await self.database.write(lambda tx: boot_runner(tx, me, LEASE), verb="boot")

    async def claim_all(self, claimed: "asyncio.Queue[list[Claim]]") -> None:
        from retoma.db import Lane
        from retoma.engine.store import Spot, claim_jobs

        spot = Spot(KIND)
        while True:
            found = await self.database.write(
                lambda tx, spot=spot: claim_jobs(  # type: ignore[misc]
                    tx, BOOT, [spot], KNOWS, slots=self.batch, suspects=0, promote=False
                ),
                verb="claim",
                lane=Lane.CLAIM,
            )
            await claimed.put(found.claims)
            if not found.claims:
                return
            spot = after(found.claims)

    async def settle_all(self, claimed: "asyncio.Queue[list[Claim]]") -> None:
        from retoma.engine.rules.settlement import done
        from retoma.engine.store import settle_row, settles

        while claims := await claimed.get():
            rows = [settle_row(claim.held, done("null")) for claim in claims]
            await self.database.write(
                lambda tx, rows=rows: tx.finish(settles(BOOT, rows)),  # type: ignore[misc]
                verb="settle",
            )


def after(claims: "list[Claim]") -> "Spot":
    """The hint a runner keeps: nothing before the last one taken is worth a look."""
    from retoma.engine.store import Spot

    return Spot(KIND, max((claim.priority, claim.turn, claim.job) for claim in claims))
