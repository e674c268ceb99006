"""Every write on a job: what it does, and what it refuses."""

import re
from datetime import timedelta
from typing import cast

import pytest

from retoma import IdempotencyMismatch, IllegalMove, NotFound, Retoma, State
from retoma.codec import digest
from retoma.db import Transaction
from retoma.engine import query, store
from retoma.engine.rules import settlement
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Claim, Held, StepId
from retoma.engine.rules.states import DeadReason, ParkReason, StepState
from retoma.engine.store import Evidence, NewJob
from tests.engine.aids import about, boot, change, claim, look, rows, settle, submit
from tests.house.sections import text_of

DONE = settlement.done("1")


async def save(database, me, held: Held, name: str = "step", value: str = "1"):
    step = StepId(name)
    call = store.saves(me, [(held, step, store.step_fields(step, value))])
    [answer] = await database.write(lambda tx: tx.finish(call), verb="save")
    return answer


async def report(database, me, held: Held):
    call = store.reports(me, [store.report_row(held, 0.5, "half")])
    [answer] = await database.write(lambda tx: tx.finish(call), verb="save")
    return answer


async def attach(database, me, held: Held):
    page = store.pack(Evidence("page", "text/html", b"<p>"))
    return await database.write(lambda tx: store.attach(tx, me, held, page), verb="attach")


async def failed_and_due(database, me, held: Held):
    return await settle(database, me, held, settlement.failed(0.0, "transient", {}))


# --- submitting


async def test_a_submission_too_heavy_for_one_statement_goes_in_several(database_url):
    """Ten jobs of a megabyte each are one submission, in order, however they travelled."""
    heavy = [f'"{n}{"x" * 1_000_000}"' for n in range(10)]
    keyed = [NewJob(text, f"k{n}", digest(text)) for n, text in enumerate(heavy)]
    async with Retoma(database_url) as app:
        database = await app.database()

        plain = await database.write(
            lambda tx: store.submit_jobs(tx, about(), heavy), verb="submit"
        )
        named = await database.write(
            lambda tx: store.submit_keyed_jobs(tx, about("other"), keyed), verb="submit"
        )

        assert (10, (10, 0)) == (plain, named)
        by_turn = await rows(
            database,
            "SELECT kind, substr(CAST(payload AS text), 2, 1) FROM jobs ORDER BY kind, turn",
        )
        assert [(kind, str(n)) for kind in ("other", "work") for n in range(10)] == by_turn


async def test_e8_the_same_key_and_payload_is_the_same_job(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        new = NewJob('{"a":1}', "k", digest('{"a":1}'))

        first = await database.write(
            lambda tx: store.submit_job(tx, about(), new), verb="submit"
        )
        again = await database.write(
            lambda tx: store.submit_job(tx, about(), new), verb="submit"
        )

        assert first.id == again.id
        assert [(1,)] == await rows(database, "SELECT count(*) FROM jobs")
        assert [(1,)] == await rows(database, "SELECT count(*) FROM events")


async def test_e8_a_key_stands_for_one_payload_in_each_kind(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        one, other = NewJob("1", "k", digest("1")), NewJob("2", "k", digest("2"))
        await database.write(lambda tx: store.submit_job(tx, about(), one), verb="submit")

        with pytest.raises(IdempotencyMismatch, match="under the same key: k; nothing was"):
            await database.write(lambda tx: store.submit_job(tx, about(), other), verb="submit")
        elsewhere = await database.write(
            lambda tx: store.submit_job(tx, about("other"), other), verb="submit"
        )

        assert "other" == elsewhere.kind
        assert [(2,)] == await rows(database, "SELECT count(*) FROM jobs")


async def test_e8_a_bulk_with_other_payloads_submits_nothing_and_names_ten_keys(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        keys = [f"k{n:02}" for n in range(12)]
        old = [NewJob("1", key, digest("1")) for key in keys]
        new = [NewJob("0", "fresh", digest("0"))]
        new += [NewJob("2", key, digest("2")) for key in keys]
        await database.write(
            lambda tx: store.submit_keyed_jobs(tx, about(), old), verb="submit"
        )

        with pytest.raises(IdempotencyMismatch) as refused:
            await database.write(
                lambda tx: store.submit_keyed_jobs(tx, about(), new), verb="submit"
            )

        assert ", ".join(keys[:10]) + " …" in str(refused.value)
        assert "k10" not in str(refused.value)
        assert [(12,)] == await rows(database, "SELECT count(*) FROM jobs")


async def test_a_bulk_counts_what_is_new_and_what_was_there(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        jobs = [NewJob("1", f"k{n}", digest("1")) for n in range(5)]
        await database.write(
            lambda tx: store.submit_keyed_jobs(tx, about(), jobs[:2]), verb="submit"
        )

        counted = await database.write(
            lambda tx: store.submit_keyed_jobs(tx, about(), jobs), verb="submit"
        )

        assert (3, 2) == counted


# --- claiming: turns, priorities, times


async def test_e4_every_claim_is_the_next_epoch(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        me = await boot(database)

        epochs = []
        for _ in range(3):
            [got] = await claim(database, me)
            epochs.append(got.epoch)
            await settle(database, me, got.held, settlement.snoozed(0.0))

        assert [1, 2, 3] == epochs
        [[n, distinct]] = await rows(
            database,
            "SELECT count(*), count(DISTINCT epoch) FROM events WHERE type = 'claimed'",
        )
        assert (3, 3) == (n, distinct)


async def test_a_claim_takes_no_more_than_there_are_slots(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 5)
        me = await boot(database)

        taken = [len(await claim(database, me, slots=3)) for _ in range(3)]

        assert [3, 2, 0] == taken


async def test_a_smaller_priority_goes_first(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 2, priority=0)
        await submit(database, 1, priority=5)
        await submit(database, 1, priority=-5)
        me = await boot(database)

        priorities = [(await claim(database, me))[0].priority for _ in range(4)]

        assert [-5, 0, 0, 5] == priorities


async def test_e28_a_small_batch_is_through_while_big_ones_still_wait(database_url):
    """Four batches of 2,000 wait; ten claims are taken; a later batch of 10 needs < 100 more."""
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        for batch in range(1, 5):
            await submit(database, 2_000, batch=batch)
        for _ in range(10):
            await claim(database, me)

        await submit(database, 10, batch=5)
        seen = [(await claim(database, me))[0].batch for _ in range(100)]

        assert 10 == seen.count(5)
        assert {1, 2, 3, 4} < set(seen)


async def test_a_retry_goes_to_the_front_of_its_priority(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 50)
        await submit(database, 1, priority=-1)
        [first] = await claim(database, me)
        [second] = await claim(database, me)

        await failed_and_due(database, me, second.held)
        [nearest] = await claim(database, me)

        assert -1 == first.priority
        assert second.job == nearest.job
        assert 2 == nearest.failures


async def test_e15_attempt_n_plus_1_does_not_begin_before_run_at(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)

        await settle(database, me, got.held, settlement.failed(100.0, "transient", {}))
        early = await look(database, me)
        test_clock.jump(99)
        still_early = await look(database, me)
        test_clock.jump(2)
        [again] = await claim(database, me)

        assert [] == early.claims == still_early.claims
        assert early.next_due is not None
        assert 95 < early.next_due <= 100
        assert (got.job, got.epoch + 1) == again.held
        job = await app.get(got.job)
        first, second = await app.attempts(got.job)
        assert first.ended_at is not None
        assert job.run_at is not None
        assert job.run_at - first.ended_at >= timedelta(seconds=99.9)
        assert second.claimed_at >= job.run_at


async def test_a_scheduled_job_is_not_claimed_before_it_is_due(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        me = await boot(database)
        await submit(database, delay=3600.0)

        early = await look(database, me)
        test_clock.jump(3601)
        late = await look(database, me)

        assert [] == early.claims
        assert early.next_due is not None
        assert 3590 < early.next_due <= 3600
        assert 1 == len(late.claims)
        assert late.next_due is None


async def test_what_becomes_due_waits_no_longer_than_what_was_there_before(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 20, batch=1)
        await submit(database, 1, delay=0.0, batch=2)

        batches = [(await claim(database, me))[0].batch for _ in range(2)]

        assert 2 in batches


@pytest.mark.parametrize("knows", [("other@1",), ("work@2",), ()])
async def test_a_runner_that_does_not_know_a_kind_or_version_is_not_given_it(
    database_url, knows
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        me = await boot(database, knows=knows)

        assert [] == await claim(database, me, knows=knows)
        assert 1 == len(await claim(database, me))


@pytest.mark.parametrize("state", ["leaving", "gone", "lost"])
async def test_a_runner_that_is_not_alive_is_given_nothing(database_url, state):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        me = await boot(database)
        await database.write(lambda tx: store.move_runner(tx, me, state, actor=me), verb="move")

        assert [] == await claim(database, me)
        assert [] == await claim(database, "a boot nobody knows")


async def test_a_start_hint_is_only_where_to_look_first(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 4)
        first, second, *_ = await claim(database, me, slots=2)
        after = (second.priority, second.turn, second.job)

        rest = await claim(database, me, slots=9, after=after)

        assert 2 == len(rest)
        assert not {first.job, second.job} & {each.job for each in rest}


async def test_e10_a_claim_gives_one_suspect_beside_any_number_of_others(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 6)
        await change(database, "UPDATE jobs SET lost = 2 WHERE id <= 3")

        first = await claim(database, me, slots=9, suspects=1)
        second = await claim(database, me, slots=9, suspects=0)

        assert [False, False, False, True] == sorted(each.suspect for each in first)
        assert [] == second


# --- writing under a claim


async def test_e3_a_stale_epoch_can_write_nothing(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [old] = await claim(database, me)
        await settle(database, me, old.held, settlement.RELEASED)
        [new] = await claim(database, me)
        before = await rows(database, "SELECT seq, state, epoch, progress FROM jobs")

        accepted = [
            await save(database, me, old.held),
            await report(database, me, old.held),
            await attach(database, me, old.held),
            await settle(database, me, old.held, DONE),
        ]

        assert [[], [], False, None] == accepted
        assert before == await rows(database, "SELECT seq, state, epoch, progress FROM jobs")
        assert [(0,)] == await rows(database, "SELECT count(*) FROM steps")
        assert State.DONE is await settle(database, me, new.held, DONE)


@pytest.mark.parametrize("who", ["lost", "gone", "another", "nobody"])
async def test_e4_a_runner_that_is_over_can_write_nothing(database_url, who):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await boot(database, "another")
        await submit(database)
        [got] = await claim(database, me)
        if who in ("lost", "gone"):
            await database.write(
                lambda tx: store.move_runner(tx, me, who, actor="another"), verb="move"
            )
        writer = me if who in ("lost", "gone") else who

        accepted = [
            await save(database, writer, got.held),
            await report(database, writer, got.held),
            await attach(database, writer, got.held),
            await settle(database, writer, got.held, DONE),
        ]

        assert [[], [], False, None] == accepted
        assert State.RUNNING is (await app.get(got.job)).state


async def test_a_leaving_runner_may_finish_what_it_holds(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        await database.write(
            lambda tx: store.move_runner(tx, me, "leaving", actor=me), verb="move"
        )

        assert [] != await save(database, me, got.held)
        assert State.DONE is await settle(database, me, got.held, DONE)


async def test_e9_only_a_failure_counts_as_one(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        ends = [settlement.RELEASED, settlement.snoozed(0.0)]
        counted = []

        for end in [*ends, settlement.failed(0.0, "transient", {}), *ends]:
            [got] = await claim(database, me)
            await settle(database, me, got.held, end)
            counted.append((await app.get(got.job)).failures)

        assert [0, 0, 1, 1, 1] == counted
        ended = [each.ended for each in await app.attempts(got.job)]
        assert ["released", "snoozed", "failed", "released", "snoozed"] == ended


@pytest.mark.parametrize(
    "end",
    [
        settlement.failed(0.0, "transient", {}),
        settlement.buried(DeadReason.EXHAUSTED, "transient", {}),
        settlement.snoozed(5.0),
        settlement.RELEASED,
        settlement.parked("why", ParkReason.OPERATOR),
    ],
)
async def test_e13_a_job_to_be_canceled_ends_so_and_is_never_tried_again(database_url, end):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        asked = await app.cancel(got.job)

        state = await settle(database, me, got.held, end)

        job = await app.get(got.job)
        last = (await app.events(got.job))[-1]
        assert (State.RUNNING, State.CANCELED) == (asked, state)
        assert (State.CANCELED, 0, None, None) == (
            job.state,
            job.failures,
            job.reason,
            job.code,
        )
        assert EventType.CANCELED is last.type
        assert job.ended_at is not None
        assert {State.CANCELED: 1} == await app.insights.counts()


class Moving:
    """A transaction in which the job is now here, now there: no statement that cancels met it."""

    def __init__(self, tx, missed: int) -> None:
        self._tx = tx
        self._missed = missed

    def one(self, statement, /, **values):
        if self._missed:
            self._missed -= 1
            return None
        return self._tx.one(statement, **values)

    def __getattr__(self, name: str):
        return getattr(self._tx, name)


@pytest.mark.parametrize("state", [State.WAITING, State.RUNNING])
async def test_e13_a_job_that_moves_while_it_is_canceled_is_canceled_all_the_same(
    database_url, state
):
    """As between two attempts on PostgreSQL: waiting, claimed again, and no statement saw it."""
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [job] = await app.jobs()
        if state is State.RUNNING:
            await claim(database, me)

        told = await database.write(
            lambda tx: store.cancel_job(
                cast("Transaction", Moving(tx, 4)), job.id, actor="ana"
            ),
            verb="cancel",
        )

        assert (State.CANCELED if state is State.WAITING else State.RUNNING) is told
        assert (await app.get(job.id)).cancel_at is not None


async def test_e13_a_job_that_was_done_before_it_heard_is_not_canceled_by_asking_again(
    database_url,
):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        asked = [await app.cancel(got.held.job) for _ in range(2)]
        await settle(database, me, got.held, DONE)

        with pytest.raises(IllegalMove, match="is done and cannot be canceled any more"):
            await app.cancel(got.held.job)

        assert [State.RUNNING] * 2 == asked


@pytest.mark.parametrize(
    ("stands", "expected"),
    [(StepState.SAVED, State.WAITING), (StepState.ENDED, State.CANCELED)],
)
async def test_e13_only_remote_work_that_lives_keeps_a_job_from_being_canceled(
    database_url, stands, expected
):
    """Its runner may not have heard that the end of that work was saved: the steps know."""
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        await save(database, me, got.held, "remote:scrape")
        if stands is StepState.ENDED:
            step = StepId("remote:scrape")
            over = store.saves(me, [(got.held, step, store.step_fields(step, "1", stands))])
            await database.write(lambda tx: tx.finish(over), verb="save")
        await app.cancel(got.job)

        end = settlement.failed(0.0, "transient", {})._replace(stopping=True)

        assert expected is await settle(database, me, got.held, end)


@pytest.mark.parametrize("end", [DONE, settlement.skipped("seen")])
async def test_e13_a_story_that_got_through_first_says_that_the_cancel_was_too_late(
    database_url, end
):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        await app.cancel(got.job)

        assert end.state is await settle(database, me, got.held, end)

        assert (await app.events(got.job))[-1].details["too_late"] is True


async def test_e5_a_saved_step_is_not_overwritten_within_its_generation(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)

        await save(database, me, got.held, value='"paid"')
        await save(database, me, got.held, value='"paid again"')

        [step] = await app.steps(got.job)
        assert '"paid"' == step.value


async def test_several_steps_of_one_job_in_one_group_are_all_kept_and_numbered(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 2)
        one, two = await claim(database, me, slots=2)
        sent = [
            (held, StepId("loop", key=key), store.step_fields(StepId("loop", key=key), "1"))
            for key in "abcd"
            for held in (one.held, two.held)
        ]

        [accepted] = await database.write(
            lambda tx: tx.finish(store.saves(me, sent)), verb="save"
        )

        assert {one.held, two.held} == {Held(job, epoch) for job, epoch, _ in accepted}
        for each in (one, two):
            events = await app.events(each.job)
            assert [*"abcd"] == [e.details["key"] for e in events if e.type == "step_saved"]
            assert [1, 2, 3, 4, 5, 6] == [e.seq for e in events]
            assert [*"abcd"] == sorted(step.key for step in await app.steps(each.job))


async def test_what_a_lost_answer_did_after_all_can_be_asked(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database)
        [got] = await claim(database, me)
        step = StepId("step")

        def known(tx):
            return store.saved_already(
                tx, got.held, step, StepState.SAVED
            ), store.ended_already(tx, got.held)

        before = await database.read(known)
        await save(database, me, got.held)
        saved = await database.read(known)
        await settle(database, me, got.held, DONE)
        ended = await database.read(known)

        assert [(False, None), (True, None), (True, State.DONE)] == [before, saved, ended]


async def test_a_boot_can_ask_what_it_holds(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        me = await boot(database)
        await submit(database, 2)
        claims = await claim(database, me, slots=2)

        held = await database.read(lambda tx: store.recall_jobs(tx, me))

        assert claims == sorted(held, key=lambda each: each.turn)
        assert all(isinstance(each, Claim) for each in held)


# --- an operator


async def ended(app, database, end) -> int:
    me = await boot(database)
    await submit(database)
    [got] = await claim(database, me)
    await settle(database, me, got.held, end)
    return got.job


async def test_e12_an_ended_job_is_moved_only_by_again(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        job = await ended(app, database, DONE)

        with pytest.raises(IllegalMove, match="is done and cannot be canceled any more"):
            await app.cancel(job)
        with pytest.raises(IllegalMove, match="is done, not parked"):
            await app.resume(job)
        again = await app.retry(job)

        assert (State.WAITING, 2, 0) == (again.state, again.generation, again.failures)
        with pytest.raises(IllegalMove, match="only a job that has ended"):
            await app.retry(job)


async def test_a_canceled_parked_job_stays_canceled(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        parked = settlement.parked("look", ParkReason.CONFIG)
        job = await ended(app, database, parked)

        first, second = await app.cancel(job), await app.cancel(job)

        assert (State.CANCELED, State.CANCELED) == (first, second)
        assert [] == await claim(database, "me")


async def test_a_job_nobody_knows_is_not_found(database_url):
    async with Retoma(database_url) as app:
        for verb in (app.get, app.cancel, app.retry, app.resume, app.explain):
            with pytest.raises(NotFound, match="there is no job 42"):
                await verb(42)


async def test_e11_every_move_of_an_operator_has_its_event(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        parked = settlement.parked("look", ParkReason.OPERATOR)
        job = await ended(app, database, parked)

        await app.resume(job, actor="ana")
        await app.cancel(job, actor="rui")
        await app.retry(job, actor="eva")

        events = await app.events(job)
        assert [("unparked", "ana"), ("canceled", "rui"), ("again", "eva")] == [
            (event.type, event.actor) for event in events[-3:]
        ]
        assert list(range(1, len(events) + 1)) == [event.seq for event in events]
        assert {State.WAITING: 1} == await database.read(query.count_jobs)


@pytest.mark.parametrize("verb", ["save_steps", "settle_jobs", "report_progress"])
def test_no_index_of_held_jobs_can_serve_a_hot_fence(verb):
    """docs/decisions/0006: it would be read from end to end for every group."""
    sqlite = text_of(verb, "sqlite")
    postgres = text_of(verb, "postgres")

    assert re.search(r"\+(j|jobs)\.runner = :boot", sqlite)
    assert "runner IS NOT DISTINCT FROM :boot" in postgres
    assert not re.search(r"(?<!\+j)(?<!\+jobs)\.runner = :boot", sqlite + postgres)
