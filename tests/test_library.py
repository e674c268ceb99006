"""The library face: what a user may do, and what is refused at the door."""

import asyncio
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from retoma import BadInput, Context, IdempotencyMismatch, Retoma, State, Unsure
from retoma.codec import Undecodable, Unstorable
from retoma.engine.rules.errors import UnknownKind
from retoma.engine.testing import crash_at, drain
from tests.engine.aids import boot, claim, rows


@dataclass(frozen=True)
class Request:
    """A payload with a shape."""

    product: str
    n: int = 1


async def work(ctx: Context, payload: Any) -> Any:
    return payload


def app_of(url: str) -> Retoma:
    app = Retoma(url)
    app.job(work)
    return app


async def how_many(app: Retoma) -> int:
    [[n]] = await rows(await app.database(), "SELECT count(*) FROM jobs")
    assert isinstance(n, int)
    return n


def test_nothing_is_opened_until_it_is_used(tmp_path):
    app_of(f"sqlite:///{tmp_path / 'work.db'}")

    assert [] == list(tmp_path.iterdir())


async def test_a_job_goes_through(database_url):
    async with Retoma(database_url) as app:

        async def search(request: Request) -> list[str]:
            return [f"{request.product} {n}" for n in range(request.n)]

        @app.job(timeout="5m")
        async def quote(ctx: Context, request: Request) -> dict[str, Any]:
            offers = await ctx.step("search", search, request)
            return {"best": offers[0], "of": len(offers)}

        job = await app.submit(quote, Request("chair", 3), correlation="c-1")
        await drain(app)

        found = await app.get(job.id)
        assert State.WAITING is job.state
        assert ("quote", State.DONE, '{"best":"chair 0","of":3}', "c-1") == (
            found.kind, found.state, found.result, found.correlation,
        )  # fmt: skip
        assert found.created_at <= found.started_at <= found.ended_at  # type: ignore[operator]


# --- idempotency


async def test_e8_the_same_key_and_payload_give_the_same_job_whatever_its_state(database_url):
    async with app_of(database_url) as app:
        first = await app.submit("work", {"a": 1}, key="k")
        await drain(app)
        again = await app.submit("work", {"a": 1}, key="k")

        assert (first.id, State.DONE) == (again.id, again.state)
        assert 1 == await how_many(app)


async def test_e8_another_payload_under_the_same_key_is_refused(database_url):
    async with app_of(database_url) as app:
        await app.submit("work", 1, key="k")

        with pytest.raises(IdempotencyMismatch):
            await app.submit("work", 2, key="k")
        with pytest.raises(IdempotencyMismatch, match="nothing was submitted"):
            await app.submit_many("work", [9, 2], keys=["new", "k"])

        assert 1 == await how_many(app)
        assert [] == await app.batches.list()


async def test_e8_two_payloads_for_one_key_in_one_submission_are_refused(database_url):
    async with app_of(database_url) as app:
        with pytest.raises(IdempotencyMismatch, match="stands for two payloads"):
            await app.submit_many("work", [1, 2], keys=["k", "k"])

        batch = await app.submit_many("work", [1, 1, 2], keys=["k", "k", "l"])
        assert (2, 2) == (batch.submitted, await how_many(app))


async def test_e8_a_repeated_bulk_finds_its_jobs_in_their_old_batch(database_url):
    async with app_of(database_url) as app:
        first = await app.submit_many("work", [1, 2], keys=["a", "b"])
        second = await app.submit_many("work", [1, 2, 3], keys=["a", "b", "c"])

        assert (2, 0) == (first.submitted, first.already)
        assert (1, 2) == (second.submitted, second.already)
        assert {State.WAITING: 2} == await first.counts()
        assert {State.WAITING: 1} == await second.counts()


async def test_the_same_batch_key_is_the_same_batch(database_url):
    async with app_of(database_url) as app:
        first = await app.submit_many("work", range(3), key="lote-42", name="lote 42")
        again = await app.submit_many("work", range(3), key="lote-42", name="lote 42")

        assert first.id == again.id
        assert (0, 3) == (again.submitted, again.already)
        assert 3 == await how_many(app)


# --- commits whose answer is lost


async def test_e7_with_a_key_a_lost_answer_is_asked_again(database_url):
    async with app_of(database_url) as app:
        await app.upgrade()

        with crash_at("submit.after_commit", "reply_lost"):
            job = await app.submit("work", 1, key="k")

        assert (1, job.id) == (await how_many(app), (await app.get(job.id)).id)


async def test_e7_without_a_key_a_lost_answer_is_told(database_url):
    async with app_of(database_url) as app:
        await app.upgrade()

        with (
            crash_at("submit.after_commit", "reply_lost"),
            pytest.raises(Unsure, match="may have been accepted"),
        ):
            await app.submit("work", 1)

        assert 1 == await how_many(app)


async def test_e7_a_batch_whose_answer_was_lost_is_submitted_once(database_url):
    async with app_of(database_url) as app:
        await app.upgrade()

        with crash_at("submit_many.after_commit", "reply_lost"):
            batch = await app.submit_many("work", range(5))

        assert 5 == await how_many(app)
        assert {State.WAITING: 5} == await batch.counts()


# --- all or nothing


async def test_a_bulk_is_taken_in_whole_or_not_at_all(database_url):
    async with app_of(database_url) as app:

        def payloads():
            yield from range(6_000)
            raise RuntimeError("the list is broken")

        with pytest.raises(RuntimeError, match="the list is broken"):
            await app.submit_many("work", payloads())
        with pytest.raises(Unstorable):
            await app.submit_many("work", [1, 2, object()])
        with (
            crash_at("submit_many.before_commit"),
            pytest.raises(Exception, match="before_commit"),
        ):
            await app.submit_many("work", range(10))

        assert 0 == await how_many(app)
        assert [] == await app.batches.list()
        assert {} == await app.insights.counts()


HUNDRED_THOUSAND = """
    import asyncio, re, sys
    from pathlib import Path
    from retoma import Context, Retoma, State

    app = Retoma(sys.argv[1])

    @app.job
    async def work(ctx: Context, payload: dict) -> None: ...

    async def main():
        async with app:
            batch = await app.submit_many(work, ({"n": n} for n in range(100_000)))
            counts = await batch.counts()
            print(batch.submitted, counts[State.WAITING])
        # Not ru_maxrss: that is never less than what the process which started us had.
        status = Path("/proc/self/status").read_text()
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)

    asyncio.run(main())
"""


async def test_a_hundred_thousand_jobs_are_submitted_in_one_transaction(database_url, tmp_path):
    program = tmp_path / "bulk.py"
    program.write_text(textwrap.dedent(HUNDRED_THOUSAND))

    child = await asyncio.create_subprocess_exec(
        sys.executable, program, database_url, stdout=subprocess.PIPE
    )
    told, _ = await child.communicate()

    submitted, waiting, megabytes = map(int, told.split())
    assert (100_000, 100_000) == (submitted, waiting)
    assert megabytes <= 300
    async with app_of(database_url) as app:
        database = await app.database()
        [[jobs, events, first, last]] = await rows(
            database,
            "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM events),"
            " first_job, last_job FROM batches",
        )
        assert (100_000, 100_000, 99_999) == (jobs, events, last - first)
        transactions = "SELECT count(DISTINCT xid) FROM events"
        if database.dialect == "postgres":
            assert [(1,)] == await rows(database, transactions)


# --- times and priorities


async def test_a_time_may_be_told_as_an_instant_or_as_a_wait(database_url):
    async with app_of(database_url) as app:
        at = datetime(2040, 1, 1, 12, tzinfo=timezone(timedelta(hours=-3)))
        instant = await app.submit("work", 1, run_at=at)
        wait = await app.submit("work", 1, delay="2h")
        now = await app.submit("work", 1)

        found = await app.get(wait.id)
        assert datetime(2040, 1, 1, 15, tzinfo=UTC) == (await app.get(instant.id)).run_at
        assert found.run_at is not None
        assert found.created_at is not None
        assert timedelta(minutes=119) < found.run_at - found.created_at < timedelta(minutes=121)
        assert (False, False, True) == (instant.due, wait.due, now.due)


async def test_a_priority_is_that_of_the_kind_unless_it_is_told(database_url):
    async with Retoma(database_url) as app:
        app.job(priority=5)(work)
        usual = await app.submit("work", 1)
        urgent = await app.submit("work", 1, priority=-5)

        assert (5, -5) == (usual.priority, urgent.priority)
        assert 5 == (await app.get(usual.id)).priority


# --- what is refused, and changes nothing


class Odd:
    """Nothing a database could keep."""


BAD_PAYLOADS = [
    Odd(), float("nan"), float("inf"), "a\0b", "\ud800", {1: 2}, {"when": {3, 4}}, "x" * 17_000_000,
]  # fmt: skip


@pytest.mark.parametrize("payload", BAD_PAYLOADS, ids=lambda p: repr(p)[:20])
async def test_a_payload_no_database_would_keep_is_refused_at_the_door(database_url, payload):
    async with app_of(database_url) as app:
        with pytest.raises(Unstorable):
            await app.submit("work", payload)
        with pytest.raises(Unstorable):
            await app.submit_many("work", [1, payload])

        assert 0 == await how_many(app)


@pytest.mark.parametrize(
    "how",
    [
        {"key": ""},
        {"key": "x" * 501},
        {"key": "a\nb"},
        {"key": 3},
        {"key": "\ud800"},
        {"priority": 1001},
        {"priority": "high"},
        {"correlation": "a\0b"},
        {"correlation": {"id": 1}},
        {"delay": "soon"},
        {"delay": -1},
        {"delay": 1, "run_at": datetime(2040, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(2040, 1, 1)},  # noqa: DTZ001 — that it has none is the point
    ],
    ids=str,
)
async def test_what_no_rule_allows_is_refused_at_the_door(database_url, how):
    async with app_of(database_url) as app:
        with pytest.raises(BadInput):
            await app.submit("work", 1, **how)

        assert 0 == await how_many(app)


async def test_a_payload_that_does_not_fit_its_story_is_refused(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def typed(ctx: Context, request: Request) -> None: ...

        @app.job
        async def alone(ctx: Context) -> None: ...

        with pytest.raises(Undecodable):
            await app.submit(typed, {"price": 3})
        with pytest.raises(BadInput, match="takes no payload"):
            await app.submit(alone, 3)
        with pytest.raises(BadInput, match="2 payloads and 1 keys"):
            await app.submit_many(alone, [None, None], keys=["a"])

        assert 0 == await how_many(app)


async def test_an_unknown_kind_is_refused_by_name_and_by_function(database_url):
    async with app_of(database_url) as app:

        async def stranger(ctx: Context) -> None: ...

        for kind in ("invoice", stranger):
            with pytest.raises(UnknownKind, match="known: work"):
                await app.submit(kind)

        assert 0 == await how_many(app)


async def test_a_batch_may_be_empty(database_url):
    async with app_of(database_url) as app:
        batch = await app.submit_many("work", [])

        assert (0, {}) == (batch.submitted, await batch.counts())
        assert (await batch.wait()).finished


async def test_a_closed_app_opens_again_when_it_is_used(database_url):
    app = app_of(database_url)
    job = await app.submit("work", 1)
    await app.close()
    await app.close()

    assert State.WAITING is (await app.get(job.id)).state
    await app.close()


async def test_what_was_submitted_in_a_bulk_is_claimed_in_its_order(database_url):
    async with app_of(database_url) as app:
        await app.submit_many("work", range(5))
        database = await app.database()
        await boot(database)

        taken = [(await claim(database, "me"))[0].payload for _ in range(5)]

        assert ["0", "1", "2", "3", "4"] == taken


@pytest.mark.parametrize("name", ["a\0b", "\ud800", 3, "x" * 501])
async def test_a_batch_whose_name_no_database_would_keep_is_refused(database_url, name):
    async with app_of(database_url) as app:
        with pytest.raises(BadInput, match="a batch name has 1 to 200 printable"):
            await app.submit_many("work", [1], name=name)

        assert 0 == await how_many(app)
        assert [] == await app.batches.list()
