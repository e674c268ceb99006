"""What a person does to a batch: each job is moved once, however many ask at the same time (E12)."""

import asyncio
import re
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import pytest

from retoma import BadInput, IllegalMove, NotFound, Retoma, State
from retoma.db import Transaction, adhoc
from retoma.engine import query, store
from retoma.engine.ops.batches import Batch
from retoma.engine.rules import settlement
from retoma.engine.rules.job import Claim, StepId
from retoma.engine.rules.states import BatchState, DeadReason, ParkReason
from retoma.engine.store import Submission
from tests.db.test_plans import ANALYZE, Explaining
from tests.engine.aids import boot, change, claim, eventually, rows, settle

PARKED = settlement.parked("look at it", ParkReason.OPERATOR, "config")
DONE = settlement.done("1")
MISCOUNTED = """
    SELECT state, sum(n) FROM (
        SELECT state, count(*) AS n FROM jobs GROUP BY state
        UNION ALL SELECT state, -n FROM counts WHERE batch = -1 AND state <> 'refused'
        UNION ALL SELECT to_state, -n FROM tallies WHERE to_state <> 'refused'
        UNION ALL SELECT from_state, n FROM tallies WHERE from_state IS NOT NULL
    ) both_ways GROUP BY state HAVING sum(n) <> 0"""
GAPS = """
    SELECT job FROM events GROUP BY job
    HAVING count(*) <> max(seq) OR max(seq) <> (SELECT seq FROM jobs WHERE id = job)"""


def dead(code: str = "ERROR202") -> settlement.Settlement:
    return settlement.buried(DeadReason.PERMANENT, code, {"message": "no"})


async def batch_of(app: Retoma, n: int, name: str = "monday") -> Batch:
    """A batch of the kind `work`, with no story: the test is its runner."""
    database = await app.database()

    def submit(tx: Any) -> int:
        batch, _ = store.open_batch(tx, name=name, key=name, kind="work")
        about = Submission(kind="work", version=1, queue="work", batch=batch)
        store.submit_jobs(tx, about, [str(place) for place in range(n)])
        return batch

    return await app.batches.get(await database.write(submit, verb="submit"))


async def run_all(app: Retoma, *ends: settlement.Settlement, me: str = "me") -> list[Claim]:
    """Claim as many jobs as there are ends, and end each in its own way."""
    database = await app.database()
    claims = await claim(database, me, slots=len(ends))
    for got, end in zip(claims, ends, strict=True):
        await settle(database, me, got.held, end)
    return claims


async def standing(app: Retoma, batch: Batch) -> list[tuple[int, State, int]]:
    jobs = await app.jobs(batch=batch.id, limit=200)
    return sorted((job.id, job.state, job.generation) for job in jobs)


async def whole(app: Retoma) -> None:
    """Counters equal jobs, and no timeline has a gap."""
    database = await app.database()
    assert ([], []) == (await rows(database, MISCOUNTED), await rows(database, GAPS))


# --- resume


async def test_resume_lets_parked_jobs_go_on_and_leaves_the_others_alone(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 5), await boot(await app.database())
        parked, _, buried, again = await run_all(app, PARKED, DONE, dead(), PARKED, me=me)

        assert 2 == await batch.resume(actor="ana")

        assert {State.WAITING: 3, State.DONE: 1, State.DEAD: 1} == await batch.counts()
        told = [event for event in await app.events(parked.job) if event.type == "unparked"]
        assert [("ana", None)] == [(event.actor, event.epoch) for event in told]
        assert 1 == (await app.get(again.job)).generation
        assert State.DEAD is (await app.get(buried.job)).state
        assert 0 == await batch.resume()
        await whole(app)


async def test_resume_ends_a_pause_too(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 3), await boot(database)
        await run_all(app, PARKED, me=me)
        await batch.pause(actor="ana")
        paused = (await batch.progress()).state

        assert 1 == await batch.resume(actor="rui")

        assert BatchState.PAUSED is paused
        assert BatchState.RUNNING is (await batch.progress()).state
        assert 3 == len(await claim(database, me, slots=9))
        told = "SELECT verb, actor, subject FROM audit WHERE verb LIKE 'batch.%' ORDER BY id"
        assert [
            ("batch.paused", "ana", str(batch.id)),
            ("batch.unpaused", "rui", str(batch.id)),
            ("batch.resumed", "rui", str(batch.id)),
        ] == await rows(database, told)


async def test_resume_of_a_finished_batch_says_so_and_changes_nothing(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 2), await boot(await app.database())
        await run_all(app, DONE, dead(), me=me)
        before = await standing(app, batch)

        with pytest.raises(IllegalMove, match=f"batch {batch.id} has finished, nothing in it"):
            await batch.resume()

        assert before == await standing(app, batch)


async def test_verbs_on_a_batch_that_is_gone_say_so(database_url):
    async with Retoma(database_url) as app:
        batch = await batch_of(app, 1)
        await change(await app.database(), "DELETE FROM batches")

        for verb in (
            batch.resume(),
            batch.retry_failed(),
            batch.cancel(),
            batch.again(),
            batch.skip("gone", codes="x"),
        ):
            with pytest.raises(NotFound, match=f"there is no batch {batch.id}"):
                await verb


# --- retry_failed, again


async def test_retry_failed_opens_the_next_generation_and_keeps_what_was_committed(
    database_url,
):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 2), await boot(database)
        first, _ = await claim(database, me, slots=2)
        step = StepId("paid")
        call = store.saves(me, [(first.held, step, store.step_fields(step, "42"))])
        await database.write(lambda tx: tx.finish(call), verb="save")
        await settle(database, me, first.held, dead())

        assert 1 == await batch.retry_failed(actor="ana")

        job = await app.get(first.job)
        assert (State.WAITING, 2, None, 0) == (
            job.state,
            job.generation,
            job.code,
            job.failures,
        )
        assert ["42"] == [each.value for each in await app.steps(first.job)]
        assert ("again", "ana") == [(e.type, e.actor) for e in await app.events(first.job)][-1]
        assert first.job in [each.job for each in await claim(database, me, slots=9)]
        await whole(app)


async def test_retry_failed_by_code_leaves_other_codes_dead(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 6), await boot(await app.database())
        codes = ["ERROR202", "ERROR404", "ERROR202", "ERROR500", "ERROR404", "ERROR202"]
        await run_all(app, *map(dead, codes), me=me)

        assert 3 == await batch.retry_failed("ERROR202")
        assert 1 == await batch.retry_failed(["ERROR500", "ERROR999"])
        assert 0 == await batch.retry_failed("ERROR999")

        assert {State.WAITING: 4, State.DEAD: 2} == await batch.counts()
        await whole(app)


async def test_e12_k_concurrent_retries_open_exactly_one_generation_of_each_job(
    database_url, monkeypatch
):
    """Eight people in eight processes' worth of connections press the same button."""
    monkeypatch.setattr(store.bulk, "BULK", 7)
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 100), await boot(await app.database())
        await run_all(app, *[dead()] * 100, me=me)
        others = [Retoma(database_url) for _ in range(8)]

        theirs = [await other.batches.get(batch.id) for other in others]
        moved = await asyncio.gather(*[each.retry_failed() for each in theirs])

        assert 100 == sum(moved)
        assert {(State.WAITING, 2)} == {(s, g) for _, s, g in await standing(app, batch)}
        again = "SELECT count(*) FROM events WHERE type = 'again'"
        assert [(100,)] == await rows(await app.database(), again)
        await whole(app)
        for other in others:
            await other.close()


async def test_e12_who_was_late_does_not_try_again_what_died_since_he_asked(database_url):
    """One press of the button is one generation, also where somebody else pressed it first."""
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 3), await boot(database)
        claims = await run_all(app, dead(), dead(), dead(), me=me)
        others: list[int] = []

        async def write(fn: Any, *, verb: str) -> Any:
            if not others:  # somebody else is quicker, and all of them run and die again
                others.append(await batch.retry_failed())
                await run_all(app, dead(), dead(), dead(), me=me)
            return await database.write(fn, verb=verb)

        late: Any = type("Late", (), {"write": staticmethod(write), "read": database.read})
        moved = await Batch(batch.id, "", "work", 0, 0, late, batch._clock).retry_failed()

        assert ([3], 0) == (others, moved)
        assert {2} == {(await app.get(each.job)).generation for each in claims}
        assert {State.DEAD: 3} == await batch.counts()


async def test_rows_that_somebody_holds_are_waited_for(postgres_url):
    """SKIP LOCKED passes over them; the verb is not over before they have been met."""
    async with Retoma(postgres_url) as app:
        batch, me = await batch_of(app, 4), await boot(await app.database())
        claims = await run_all(app, *[dead()] * 4, me=me)
        async with Retoma(postgres_url) as other:
            held, go = asyncio.Event(), asyncio.Event()
            second = claims[1].job
            loop = asyncio.get_running_loop()

            def hold(tx: Any) -> None:
                tx.all(adhoc("SELECT id FROM jobs WHERE id = :job FOR UPDATE"), job=second)
                loop.call_soon_threadsafe(held.set)
                asyncio.run_coroutine_threadsafe(go.wait(), loop).result()

            holder = asyncio.create_task((await other.database()).write(hold, verb="test"))
            await held.wait()
            verb = asyncio.create_task(batch.retry_failed())

            async def all_but_one() -> bool:
                return await batch.counts() == {State.WAITING: 3, State.DEAD: 1}

            await eventually(all_but_one)
            early = verb.done()
            go.set()
            await holder

            assert (False, 4) == (early, await verb)


async def test_a_bulk_retry_does_not_stand_before_everybody_else(database_url):
    """Tried again together they have turns like a submission: a small batch is not starved."""
    async with Retoma(database_url) as app:
        database = await app.database()
        big, me = await batch_of(app, 30, "big"), await boot(database)
        await run_all(app, *[dead()] * 30, me=me)
        await big.retry_failed()
        small = await batch_of(app, 3, "small")

        first = await claim(database, me, slots=8)

        assert 3 == sum(each.batch == small.id for each in first)


async def test_again_opens_every_ended_job_and_fresh_hides_its_steps(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 5), await boot(database)
        ends = [DONE, dead(), settlement.skipped("known"), PARKED]
        done, *_ = await run_all(app, *ends, me=me)
        await app.cancel((await app.jobs(state="waiting"))[0].id)

        assert 4 == await batch.again(fresh=True)
        assert 0 == await batch.again()

        assert {State.WAITING: 4, State.PARKED: 1} == await batch.counts()
        opened = "SELECT generation, fresh_from FROM jobs WHERE state = 'waiting'"
        assert [(2, 2)] * 4 == await rows(database, opened)
        assert 2 == (await app.get(done.job)).generation
        await whole(app)


async def test_a_running_job_cannot_be_tried_again(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 1), await boot(database)
        [got] = await claim(database, me)

        with pytest.raises(IllegalMove, match="is running: only a job that has ended"):
            await app.retry(got.job)
        assert (0, 0) == (await batch.retry_failed(), await batch.again())

        assert [(got.job, State.RUNNING, 1)] == await standing(app, batch)


async def test_what_a_verb_is_about_is_found_by_an_index(database_url):
    """A few dead among many: nobody reads the whole history for them, analysed or not."""
    plans: dict[str, list[str]] = defaultdict(list)
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 3_000), await boot(database)
        await run_all(app, *[dead()] * 20, *[PARKED] * 20, me=me)
        await change(database, "UPDATE jobs SET state = 'done' WHERE id > 200")
        moves = [
            (State.PARKED, partial(store.unpark_jobs, actor="ana")),
            *(
                (was, partial(store.cancel_jobs, was=was, actor="ana"))
                for was in (State.WAITING, State.RUNNING)
            ),
            (State.DEAD, partial(store.skip_jobs, was=State.DEAD, why="no", actor="ana")),
            (State.DONE, partial(store.again_jobs, was=State.DONE, actor="ana")),
        ]

        def look(tx: Transaction) -> None:
            explaining: Any = Explaining(tx, plans)
            for was, move in moves:
                which = store.Which(batch.id, was, store.now(tx))
                store.any_left(explaining, which)
                store.move_bite(
                    explaining, which, move, after=0, offset=0, actor="ana", told="batch.tried"
                )
            query.list_dead(explaining)

        await database.write(look, verb="explain")
        await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        await run_all(app, *[dead()] * 20, *[PARKED] * 20, me=me)
        await claim(database, me, slots=20)
        await database.write(look, verb="explain")

    by_key = "jobs_pkey" if app.url.startswith("postgres") else "INTEGER PRIMARY KEY"
    for verb, index in {
        "pick_stopped": "jobs_batch",
        "left_stopped": "jobs_batch",
        "pick_others": by_key,
        "left_others": by_key,
        **dict.fromkeys(
            ("again_jobs", "unpark_jobs", "cancel_jobs", "request_cancels", "skip_jobs"), by_key
        ),
        "tell_moves": by_key,
        "list_dead": "jobs_dead",
    }.items():
        plan = "\n".join(plans[verb])
        assert index in plan, f"{verb}: {plan}"
        assert not re.search(r"Seq Scan on jobs|SCAN (j|jobs)\b", plan), f"{verb}: {plan}"
        if index == by_key:
            assert not re.search("jobs_(ends|batch|held)", plan), f"{verb}: {plan}"


# --- skip


async def test_skip_ends_what_is_dead_parked_or_waiting_with_its_reason(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 4), await boot(await app.database())
        buried, parked = await run_all(app, dead(), PARKED, me=me)
        waiting = (await app.jobs(state="waiting"))[0].id

        moved = [
            await batch.skip("sold", job=job, actor="ana")
            for job in (buried.job, parked.job, waiting, waiting)
        ]

        assert [1, 1, 1, 0] == moved
        assert {State.SKIPPED: 3, State.WAITING: 1} == await batch.counts()
        told = [(e.type, e.actor, e.details) for e in await app.events(buried.job)][-2:]
        assert [("again", "ana", None), ("skipped", "ana", {"why": "sold"})] == told
        assert 2 == (await app.get(buried.job)).generation
        assert 1 == (await app.get(parked.job)).generation
        assert "done" not in {e.type for e in await app.events(waiting)}
        await whole(app)


async def test_skip_by_code_takes_all_that_failed_so(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 5), await boot(database)
        backing_off = settlement.failed(60.0, "ERROR404", {"message": "no"})
        await run_all(app, dead("ERROR404"), dead("ERROR500"), PARKED, backing_off, me=me)

        assert 2 == await batch.skip("no such page", codes="ERROR404")
        assert 1 == await batch.skip("nobody will set it", codes=["config"])

        assert {State.SKIPPED: 3, State.DEAD: 1, State.WAITING: 1} == await batch.counts()
        await whole(app)


async def test_what_cannot_be_skipped_says_why_and_stays(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 2), await boot(database)
        other = await batch_of(app, 1, "tuesday")
        [done] = await run_all(app, DONE, me=me)
        [running] = await claim(database, me)
        before = [await standing(app, each) for each in (batch, other)]

        with pytest.raises(IllegalMove, match="is running: only one that waits"):
            await batch.skip("no", job=running.job)
        with pytest.raises(IllegalMove, match="is done"):
            await app.skip(done.job, "no")
        with pytest.raises(NotFound, match=f"there is no job {done.job} in batch {other.id}"):
            await other.skip("no", job=done.job)
        for why in ("", "  ", "x" * 501, None, "a\0b"):
            with pytest.raises(BadInput, match="a reason is a text of 1 to 500"):
                await app.skip(done.job, why)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="say what to skip"):
            await batch.skip("no")
        for codes in ([], "", [7]):
            with pytest.raises(BadInput, match="codes are names"):
                await batch.skip("no", codes=codes)  # type: ignore[arg-type]

        assert before == [await standing(app, each) for each in (batch, other)]


# --- cancel


async def test_cancel_ends_all_that_is_open_and_asks_who_runs(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 6), await boot(database)
        await run_all(app, DONE, PARKED, dead(), me=me)
        [running] = await claim(database, me)

        assert 4 == await batch.cancel(actor="ana")
        assert 0 == await batch.cancel()

        counts = {State.RUNNING: 1, State.CANCELED: 3, State.DONE: 1, State.DEAD: 1}
        assert counts == await batch.counts()
        asked = (await app.events(running.job))[-1]
        assert ("cancel_requested", "ana", running.epoch) == (
            asked.type,
            asked.actor,
            asked.epoch,
        )
        retry = settlement.failed(0.0, "transient", {})
        assert State.CANCELED is await settle(database, me, running.held, retry)
        await whole(app)


async def test_concurrent_verbs_move_each_job_once(database_url, monkeypatch):
    """Retry, skip and cancel at once: every job takes one of the ways, and all adds up (E12)."""
    monkeypatch.setattr(store.bulk, "BULK", 3)
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 60), await boot(await app.database())
        await run_all(app, *[dead("ERROR404")] * 40, *[PARKED] * 10, me=me)
        others = [Retoma(database_url) for _ in range(4)]
        a, b, c, d = [await other.batches.get(batch.id) for other in others]

        await asyncio.gather(
            a.retry_failed(), b.skip("no page", codes="ERROR404"), c.cancel(), d.resume()
        )
        counts = Counter(await batch.counts())

        assert 60 == sum(counts.values())
        assert not counts[State.DEAD]
        assert not counts[State.PARKED]
        assert {1, 2} >= {generation for *_, generation in await standing(app, batch)}
        await whole(app)
        for other in others:
            await other.close()


# --- the dead


async def test_a_discarded_dead_letter_is_off_the_list_and_still_there(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 3), await boot(await app.database())
        a, b, _ = await run_all(app, dead(), dead("ERROR404"), DONE, me=me)

        job = await app.dead.discard(a.job, "known to be gone", actor="ana")
        await app.dead.discard(a.job)

        assert State.DEAD is job.state
        assert job.discarded_at is not None
        assert [b.job] == [each.id for each in await app.dead.list()]
        assert ([b.job], []) == (
            [
                each.id
                for each in await app.dead.list(code="ERROR404", batch=batch.id, kind="work")
            ],
            await app.dead.list(code="ERROR202"),
        )
        told = [(e.actor, e.details) for e in await app.events(a.job) if e.type == "discarded"]
        assert [("ana", {"why": "known to be gone"})] == told
        assert 1 == await batch.retry_failed()
        assert 1 == (await app.get(a.job)).generation
        assert BatchState.RUNNING is (await batch.progress()).state
        again = await app.retry(a.job)
        assert (2, None) == (again.generation, again.discarded_at)
        await whole(app)


async def test_only_a_dead_letter_can_be_discarded(database_url):
    async with Retoma(database_url) as app:
        batch = await batch_of(app, 1)
        [(job, *_)] = before = await standing(app, batch)

        with pytest.raises(IllegalMove, match="is waiting: only a dead letter"):
            await app.dead.discard(job)
        with pytest.raises(NotFound, match="there is no job 99"):
            await app.dead.discard(99)

        assert before == await standing(app, batch)
