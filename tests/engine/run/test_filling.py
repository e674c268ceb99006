"""A batch too large for one transaction comes in by slices: all of it or nothing, on both databases."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest

from retoma import Context, IdempotencyMismatch, Retoma, State
from retoma.db import Busy, adhoc
from retoma.engine import checker
from retoma.engine.ports import Clock
from retoma.engine.run.filling import LARGE, Filling, LargeBatch
from retoma.engine.run.submission import Submitted, jobs_of, new_job, submission
from retoma.engine.store import filling
from retoma.engine.store.filling import Slice
from retoma.engine.store.submit import CHUNK
from tests.engine import aids

JOBS = 12_000  # three slices
COUNTS = adhoc("SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM filling_jobs)")
ROWS = adhoc("SELECT (SELECT count(*) FROM fillings) + (SELECT count(*) FROM filling_jobs)")


@asynccontextmanager
async def app_of(url: str, **how: Any) -> AsyncIterator[Retoma]:
    app = Retoma(url, **how)

    @app.job
    async def work(_: Context, payload: Any) -> None: ...

    async with app:
        await app.upgrade()
        yield app


async def submit(
    app: Retoma,
    payloads: Iterable[Any],
    *,
    key: str = "k",
    keys: Sequence[str] | None = None,
    owner: str = "me",
) -> Submitted:
    kind = app.kinds.of("work")
    batch = LargeBatch(
        about=submission(kind, {}),
        name="large",
        key=key,
        budget=None,
        jobs=jobs_of(kind, payloads, keys),
    )
    return await Filling(await app.database(), Clock(), owner, batch).submit()


async def left(app: Retoma) -> int:
    """Rows of submissions that have neither been moved nor undone."""
    database = await app.database()
    [(n,)] = await database.read(lambda tx: tx.all(ROWS))
    return int(n)


async def violations(app: Retoma) -> list[checker.Violation]:
    database = await app.database()
    return await database.read(lambda tx: list(checker.violations(tx)))


async def begin(app: Retoma, *, slices: int, accepted: bool) -> None:
    """As a process leaves it that dies in the middle."""
    kind, database = app.kinds.of("work"), await app.database()
    text = filling.described(submission(kind, {}), name="large", key="k")

    async def write(fn: Any) -> Any:
        return await database.write(fn, verb="test")

    begun = await write(lambda tx: filling.begin(tx, key="k", owner="dead", submission=text))
    for n in range(slices):
        jobs = [new_job(kind, n, None) for _ in range(100)]
        part = Slice(n, n * 100, jobs)
        await write(
            lambda tx, part=part: filling.stage(tx, begun.filling, "dead", "work", part)
        )
    if accepted:
        await write(lambda tx: filling.accept(tx, begun.filling, "dead"))


async def test_all_of_it_is_there_in_its_order(database_url):
    async with app_of(database_url) as app:
        made = await submit(app, ({"n": n} for n in range(JOBS)))

        assert (JOBS, 0) == (made.new, made.already)
        assert {State.WAITING: JOBS} == await app.insights.counts()
        [batch] = await app.batches.list()
        assert "large" == batch.name
        database = await app.database()
        [(jobs, turns, events, later)] = await database.read(
            lambda tx: tx.all(
                adhoc(
                    "SELECT count(*), count(DISTINCT turn), (SELECT count(*) FROM events),"
                    " sum(CASE WHEN turn > before THEN 1 ELSE 0 END) FROM (SELECT turn,"
                    " lag(turn) OVER (ORDER BY id) AS before FROM jobs) AS ordered"
                )
            )
        )
        assert (JOBS, JOBS, JOBS, JOBS - 1) == (jobs, turns, events, later)
        assert 0 == await left(app)


async def test_the_same_key_again_adds_nothing(database_url):
    async with app_of(database_url) as app:
        made = await submit(app, range(JOBS))
        again = await submit(app, range(JOBS), owner="you")

        assert (made.batch, 0, JOBS) == (again.batch, again.new, again.already)
        assert {State.WAITING: JOBS} == await app.insights.counts()
        assert 0 == await left(app)


def broken(payloads: Iterable[Any]) -> Iterator[Any]:
    yield from payloads
    raise ValueError("the source has ended early")


async def test_what_raises_in_the_middle_leaves_nothing(database_url):
    async with app_of(database_url) as app:
        with pytest.raises(ValueError, match="ended early"):
            await submit(app, broken(range(JOBS)))

        assert 0 == await left(app)
        assert [] == await app.batches.list()
        assert {} == await app.insights.counts()
        assert JOBS == (await submit(app, range(JOBS))).new


async def test_a_part_of_it_is_neither_claimed_nor_counted_nor_listed(database_url):
    async with app_of(database_url) as app:
        await begin(app, slices=2, accepted=False)

        await app.run(until_idle=True)

        assert ([], [], {}) == (
            await app.batches.list(),
            await app.jobs(),
            await app.insights.counts(),
        )
        assert 201 == await left(app)


async def test_the_same_key_begins_anew_what_a_dead_process_left(database_url, test_clock):
    async with app_of(database_url) as app:
        await begin(app, slices=2, accepted=False)
        test_clock.jump(61)

        made = await submit(app, range(JOBS))

        assert JOBS == made.new
        assert {State.WAITING: JOBS} == await app.insights.counts()
        assert 0 == await left(app)


async def test_the_same_key_finishes_what_was_accepted(database_url):
    async with app_of(database_url) as app:
        await begin(app, slices=3, accepted=True)
        assert {State.WAITING: 300} == await app.insights.counts()
        assert [] == await app.jobs()
        assert [] == await violations(app)

        again = await submit(app, range(300))

        assert (0, 300) == (again.new, again.already)
        assert {State.WAITING: 300} == await app.insights.counts()
        assert 200 == len(await app.jobs(limit=200))
        assert [] == await violations(app)
        assert 0 == await left(app)


@pytest.mark.parametrize(("accepted", "done"), [(False, {}), (True, {State.DONE: 300})])
async def test_a_runner_finishes_or_undoes_what_was_left(
    database_url, test_clock, accepted, done
):
    async with app_of(database_url) as app:
        await begin(app, slices=3, accepted=accepted)
        test_clock.jump(61)

        async def over() -> bool:
            return await left(app) == 0 and await app.insights.counts() == done

        async with aids.running(app):
            await aids.eventually(over)


async def test_no_job_escapes_a_verb_of_its_batch_while_it_is_moved_in(database_url):
    async with app_of(database_url) as app:
        await begin(app, slices=3, accepted=True)
        [batch] = await app.batches.list()
        canceling = asyncio.create_task(batch.cancel())
        await asyncio.sleep(0.1)
        assert not canceling.done()

        await submit(app, range(300))

        assert 300 == await canceling
        assert {State.CANCELED: 300} == await app.insights.counts()


async def test_whoever_lost_its_lease_adds_nothing_more(database_url, test_clock):
    async with app_of(database_url) as app:
        database = await app.database()
        await begin(app, slices=1, accepted=False)
        test_clock.jump(61)
        await submit(app, range(100))
        kind = app.kinds.of("work")
        part = Slice(1, 100, [new_job(kind, 1, None)])
        with pytest.raises(Exception, match="was undone"):
            await database.write(
                lambda tx: filling.stage(tx, 1, "dead", "work", part), verb="test"
            )
        assert {State.WAITING: 100} == await app.insights.counts()


# — keys —


def keys_of(n: int) -> list[str]:
    return [f"key {i}" for i in range(n)]


async def test_keys_that_are_there_already_are_counted_so(database_url):
    async with app_of(database_url) as app:
        await app.submit("work", 7, key="key 7")

        made = await submit(app, range(JOBS), keys=keys_of(JOBS))

        assert (JOBS - 1, 1) == (made.new, made.already)
        assert {State.WAITING: JOBS} == await app.insights.counts()


@pytest.mark.parametrize("place", [0, JOBS - 1])
async def test_one_other_payload_refuses_the_whole_submission(database_url, place):
    async with app_of(database_url) as app:
        await app.submit("work", "other", key=f"key {place}")

        with pytest.raises(IdempotencyMismatch, match=f"key {place}"):
            await submit(app, range(JOBS), keys=keys_of(JOBS))

        assert {State.WAITING: 1} == await app.insights.counts()
        assert 0 == await left(app)


async def test_one_key_with_two_payloads_refuses_the_whole_submission(database_url):
    async with app_of(database_url) as app:
        keys = [*keys_of(JOBS), "key 3"]

        with pytest.raises(IdempotencyMismatch, match="key 3"):
            await submit(app, range(JOBS + 1), keys=keys)

        assert {} == await app.insights.counts()
        assert JOBS == (await submit(app, [*range(JOBS), 3], keys=keys)).new


async def test_a_key_that_is_coming_in_is_submitted_with_the_same_payload_alone(database_url):
    async with app_of(database_url, patience=0.2) as app:
        kind, database = app.kinds.of("work"), await app.database()
        text = filling.described(submission(kind, {}), name="large", key="k")
        begun = await database.write(
            lambda tx: filling.begin(tx, key="k", owner="me", submission=text), verb="test"
        )
        part = Slice(0, 0, [new_job(kind, 1, "one"), new_job(kind, 2, "two")])
        number = int(begun.filling or 0)
        await database.write(
            lambda tx: filling.stage(tx, number, "me", "work", part), verb="test"
        )

        with pytest.raises(Busy, match="still coming in: one"):
            await app.submit("work", "other", key="one")
        with pytest.raises(Busy, match="still coming in: one"):
            await app.submit_many("work", ["other"], keys=["one"])
        await app.submit("work", 2, key="two")
        await database.write(lambda tx: filling.accept(tx, number, "me"), verb="test")
        again = await submit(app, [1, 2], keys=["one", "two"])

        assert (0, 2) == (again.new, again.already)
        assert {State.WAITING: 2} == await app.insights.counts()
        assert ["one", "two"] == sorted(str(job.key) for job in await app.jobs())


# — beside others —


class MeasuringWrites:
    """A database that measures how many rows each transaction adds or takes away."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.changes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, fn: Any, **how: Any) -> Any:
        def measured(tx: Any) -> Any:
            before = tx.one(COUNTS)
            answer = fn(tx)
            self.changes += [abs(b - a) for b, a in zip(before, tx.one(COUNTS), strict=True)]
            return answer

        return await self._inner.write(measured, **how)


async def test_no_transaction_of_a_large_batch_keeps_others_waiting(database_url):
    async with app_of(database_url) as app:
        measuring: Any = MeasuringWrites(await app.database())
        app.connection.use(measuring)

        batch = await app.submit_many("work", (n for n in range(LARGE + 1)))

        assert LARGE + 1 == batch.submitted
        assert CHUNK == max(measuring.changes)


MILLION = """
    import asyncio, re, sys
    from pathlib import Path
    from retoma import Context, Retoma, State

    app = Retoma(sys.argv[1])

    @app.job
    async def work(ctx: Context, payload: dict) -> None: ...

    async def main():
        async with app:
            await app.upgrade()
            print("begun", flush=True)
            n = int(sys.argv[2])
            batch = await app.submit_many(work, ({"n": i} for i in range(n)))
            print(batch.submitted, (await batch.counts())[State.WAITING])
        status = Path("/proc/self/status").read_text()
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)

    asyncio.run(main())
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_no_other_process_waits_long_for_a_million_jobs(database_url, tmp_path):
    jobs = 1_000_000
    program = tmp_path / "million.py"
    program.write_text(textwrap.dedent(MILLION))
    child = await asyncio.create_subprocess_exec(
        sys.executable, program, database_url, str(jobs), stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert b"begun\n" == await child.stdout.readline()
    told, waits, start = asyncio.create_task(child.communicate()), [], monotonic()
    async with app_of(database_url) as app:
        while not told.done():
            began = monotonic()
            await app.submit("work", 1)
            waits.append(monotonic() - began)
            await asyncio.sleep(0.02)
        answer, _ = await told
        took = monotonic() - start
        submitted, waiting, megabytes = map(int, answer.split())

    print(f"{took:.0f} s; {len(waits)} others, the slowest {max(waits):.2f} s; {megabytes} MB")
    assert (jobs, jobs) == (submitted, waiting)
    assert megabytes <= 300
    assert len(waits) >= 100
    # A second; on a machine with much else to do a small part of what the whole took.
    assert max(waits) <= max(1.0, took / 20)
