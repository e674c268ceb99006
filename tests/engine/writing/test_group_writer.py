"""The group writer: five rules without which it hangs or pays twice (MECHANICS 1 and 17)."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from retoma import db
from retoma.db import (
    Away,
    BadRow,
    Busy,
    Full,
    Interrupted,
    ReplyLost,
    Transaction,
    adhoc,
    migrations,
)
from retoma.engine import query, store
from retoma.engine.ports import Clock
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Held, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import State
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.group_writer import INTERRUPTIONS, ROWS, Writer
from tests.engine import aids

DONE = settlement.done("1")


class Troubled:
    """A database that does what it is asked, but breaks before or after it as often as told."""

    def __init__(self, inner: db.Database) -> None:
        self.dialect = inner.dialect
        self.deaf: list[Exception] = []
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.refusing: tuple[str, Exception] | None = None
        self.groups: list[str] = []
        self.held_back = asyncio.Event()
        self.held_back.set()
        self._inner = inner

    async def write(self, fn: Callable[[Transaction], Any], *, verb: str, **how: Any) -> Any:
        await self.held_back.wait()
        self.groups.append(verb)
        if self.refusing and self.refusing[0] == verb:
            raise self.refusing[1]
        if self.before:
            raise self.before.pop(0)
        answer = await self._inner.write(fn, verb=verb, **how)
        if self.after:
            raise self.after.pop(0)
        return answer

    async def read(self, fn: Callable[[Transaction], Any], **how: Any) -> Any:
        if self.deaf:
            raise self.deaf.pop(0)
        return await self._inner.read(fn, **how)


class Impatient(Clock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))


@pytest.fixture
def database(database_url) -> Iterator[db.Database]:
    opened = db.open(database_url)
    yield opened
    opened.close()


class Desk:
    """A writer of the runner "me", which holds some jobs."""

    def __init__(self, database: db.Database) -> None:
        self.database = database
        self.troubled = Troubled(database)
        self.writer = Writer(self.troubled, "me", Impatient())  # type: ignore[arg-type]
        self.held: list[Held] = []

    async def sit_down(self, jobs: int) -> "Desk":
        await migrations.upgrade(self.database)
        await aids.boot(self.database)
        await aids.submit(self.database, jobs)
        claims = await aids.claim(self.database, "me", slots=jobs)
        self.held = [claim.held for claim in claims]
        return self

    def save(self, held: Held, name: str, value: str = "1") -> "asyncio.Future[Any]":
        return self.writer.save(held, "work", StepId(name), value)

    def settle(self, held: Held, result: str = "1") -> "asyncio.Future[Any]":
        return self.end(held, settlement.done(result))

    def end(self, held: Held, end: Settlement) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.writer.settle(held, "work", end, answer)
        return answer

    async def told(self, *answers: "asyncio.Future[Any]") -> list[Any]:
        # An answer cannot be cancelled, so a timeout around it would wait as well.
        _, waiting = await asyncio.wait(answers, timeout=10)
        assert not waiting, "somebody was left without an answer"
        return await asyncio.gather(*answers, return_exceptions=True)

    async def events(self, held: Held) -> list[EventType]:
        events = await self.database.read(lambda tx: query.job_events(tx, held.job))
        assert list(range(1, len(events) + 1)) == [event.seq for event in events]
        [[seq]] = await self.database.read(lambda tx: tx.all(SEQ, job=held.job))
        assert len(events) == seq, "the job's own number differs from its last event's"
        return [event.type for event in events]

    async def steps(self, held: Held) -> list[str]:
        steps = await self.database.read(lambda tx: query.job_steps(tx, held.job))
        return sorted(step.name for step in steps)

    async def state(self, held: Held) -> State:
        return (await self.database.read(lambda tx: store.get_job(tx, held.job))).state

    async def refuse_steps_called(self, name: str) -> None:
        """From now on the database itself rejects such a row."""
        await self.database.write(lambda tx: tx.run(REFUSE_STEP, name=name), verb="test")

    async def refuse_result(self) -> None:
        await self.database.write(lambda tx: tx.run(REFUSE_RESULT), verb="test")


SUBMITTED, CLAIMED, SAVED = EventType.SUBMITTED, EventType.CLAIMED, EventType.STEP_SAVED

SEQ = adhoc("SELECT seq FROM jobs WHERE id = :job")
REFUSE_STEP = adhoc(
    """CREATE TABLE refused (name text);

INSERT INTO refused VALUES (:name);

CREATE TRIGGER refuse_step BEFORE INSERT ON steps
WHEN NEW.name IN (SELECT name FROM refused) BEGIN SELECT RAISE(ABORT, 'refused'); END;""",
    """CREATE TABLE refused (name text);

INSERT INTO refused VALUES (:name);

CREATE FUNCTION refuse_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name IN (SELECT name FROM refused) THEN RAISE SQLSTATE '22000'; END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER refuse_step BEFORE INSERT ON steps
FOR EACH ROW EXECUTE FUNCTION refuse_step();""",
)
REFUSE_UNKNOWN = adhoc(
    """DROP TRIGGER refuse_step;

CREATE TRIGGER refuse_step BEFORE INSERT ON steps
WHEN NEW.name IN (SELECT name FROM refused) BEGIN SELECT json('no json'); END;""",
    """CREATE OR REPLACE FUNCTION refuse_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name IN (SELECT name FROM refused) THEN RAISE SQLSTATE 'XX123'; END IF;
    RETURN NEW;
END $$;""",
)
REFUSE_RESULT = adhoc(
    """CREATE TRIGGER refuse_result BEFORE UPDATE ON jobs
WHEN NEW.result = '"bad"' BEGIN SELECT RAISE(ABORT, 'refused'); END;""",
    """CREATE FUNCTION refuse_result() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF CAST(NEW.result AS text) = '"bad"' THEN RAISE SQLSTATE '22000'; END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER refuse_result BEFORE UPDATE ON jobs
FOR EACH ROW EXECUTE FUNCTION refuse_result();""",
)


# — many rows, one commit —


async def test_many_steps_of_one_job_in_one_group_are_all_kept(database):
    """MECHANICS 1, E11: an UPDATE … FROM touches its target once, whatever number of rows match."""
    desk = await Desk(database).sit_down(2)
    one, other = desk.held

    told = await desk.told(
        *(desk.save(one, f"step {n:02}") for n in range(20)), desk.save(other, "alone")
    )

    assert [False] * 21 == told
    assert ["save"] == desk.troubled.groups
    assert [f"step {n:02}" for n in range(20)] == await desk.steps(one)
    assert [SUBMITTED, CLAIMED, *[SAVED] * 20] == await desk.events(one)
    assert [SUBMITTED, CLAIMED, SAVED] == await desk.events(other)


async def test_steps_are_numbered_in_the_order_they_were_asked_for(database):
    desk = await Desk(database).sit_down(1)
    names = ["c", "a", "d", "b"]

    await desk.told(*(desk.save(desk.held[0], name) for name in names))

    events = await database.read(lambda tx: query.job_events(tx, desk.held[0].job))
    assert names == [event.details["step"] for event in events[2:]]


async def test_answers_are_matched_by_job_and_epoch(database):
    """E3: one runner may hold a zombie and the new attempt of the same job."""
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    zombie = Held(held.job, held.epoch - 1)

    stale, good, stale_too = await desk.told(
        desk.save(zombie, "late"), desk.save(held, "now"), desk.settle(zombie)
    )

    assert (LeaseLost, False, LeaseLost) == (type(stale), good, type(stale_too))
    assert ["now"] == await desk.steps(held)
    assert State.RUNNING is await desk.state(held)
    await desk.writer.flush()
    assert 2 == desk.writer.refused == await database.read(query.refused_writes)


async def test_what_waits_while_a_commit_is_under_way_goes_out_together(database):
    desk = await Desk(database).sit_down(10)
    desk.troubled.held_back.clear()
    first = desk.save(desk.held[0], "first")
    await asyncio.sleep(0)
    others = [desk.save(held, "other") for held in desk.held[1:]]

    desk.troubled.held_back.set()
    await desk.told(first, *others)

    assert ["save", "save"] == desk.troubled.groups


async def test_of_several_reports_in_a_group_the_last_is_written_and_all_are_answered(database):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held

    told = await desk.told(
        *(desk.writer.report(held, "work", n / 10, f"{n} of 10") for n in range(1, 4))
    )

    job = await database.read(lambda tx: store.get_job(tx, held.job))
    assert [False] * 3 == told
    assert (0.3, "3 of 10") == (job.progress, job.note)
    assert [SUBMITTED, CLAIMED] == await desk.events(held)


async def test_whoever_saves_learns_that_somebody_wants_it_canceled(database):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    await database.write(
        lambda tx: store.cancel_job(tx, held.job, actor="somebody"), verb="cancel"
    )

    assert [True] == await desk.told(desk.save(held, "step"))


# — rule one: nobody is left without an answer —


async def test_an_unforeseen_error_is_everybodys_answer_and_not_the_end(database):
    desk = await Desk(database).sit_down(3)
    desk.troubled.before = [RuntimeError("nobody thought of this")] * 5  # of halves too

    told = await desk.told(*(desk.save(held, "step") for held in desk.held))

    assert [RuntimeError] * 3 == [type(each) for each in told]
    assert [False] == await desk.told(desk.save(desk.held[0], "step"))


async def test_when_its_boot_is_over_everybody_who_waits_is_told(database):
    desk = await Desk(database).sit_down(3)
    desk.troubled.held_back.clear()
    sent = desk.save(desk.held[0], "sent")
    await asyncio.sleep(0)
    waiting = desk.settle(desk.held[1])

    desk.writer.give_up()
    desk.troubled.held_back.set()

    told = await desk.told(sent, waiting, desk.save(desk.held[2], "after"))
    assert (LeaseLost, LeaseLost) == (type(told[1]), type(told[2]))


@pytest.mark.parametrize(
    "trouble", [ReplyLost("lost"), Full("full"), RuntimeError("anything")], ids=str
)
async def test_a_count_of_refusals_that_fails_leaves_nobody_waiting(database, trouble):
    desk = await Desk(database).sit_down(2)
    zombie = Held(desk.held[0].job, 0)
    late = desk.save(zombie, "late")
    await asyncio.sleep(0)
    waiting = desk.save(desk.held[1], "good")
    desk.troubled.refusing = ("count_refused", trouble)

    told = await desk.told(late, waiting)

    assert (LeaseLost, False) == (type(told[0]), told[1])
    assert [False] == await desk.told(desk.save(desk.held[1], "next"))
    await desk.writer.flush()


# — rule two: a bad row is found by halving and fails alone —


@pytest.mark.parametrize("place", [0, 3, 6])
async def test_a_row_the_database_refuses_fails_alone(database, place):
    desk = await Desk(database).sit_down(7)
    await desk.refuse_steps_called("bad")

    told = await desk.told(
        *(desk.save(held, "bad" if n == place else "good") for n, held in enumerate(desk.held))
    )

    assert [BadRow if n == place else bool for n in range(7)] == [type(each) for each in told]
    for n, held in enumerate(desk.held):
        assert ([] if n == place else ["good"]) == await desk.steps(held)
        await desk.events(held)


async def test_a_row_refused_for_a_reason_nobody_knows_fails_alone(database):
    """A state of SQL that no list has, and an error of SQLite that says nothing but "error"."""
    desk = await Desk(database).sit_down(7)
    await desk.refuse_steps_called("bad")
    await database.write(lambda tx: tx.run(REFUSE_UNKNOWN), verb="test")

    told = await desk.told(
        *(desk.save(held, "bad" if n == 3 else "good") for n, held in enumerate(desk.held))
    )

    assert [BadRow if n == 3 else bool for n in range(7)] == [type(each) for each in told]
    assert [False] == await desk.told(desk.save(desk.held[3], "good"))
    for held in desk.held:
        assert ["good"] == await desk.steps(held)
        await desk.events(held)


async def test_a_group_that_is_interrupted_is_sent_again_and_then_in_halves(database):
    desk = await Desk(database).sit_down(4)
    desk.troubled.before = [Interrupted("canceling statement")] * (INTERRUPTIONS + 1)

    told = await desk.told(*(desk.save(held, "step") for held in desk.held))

    assert [False] * 4 == told
    assert INTERRUPTIONS + 1 + 2 == len(desk.troubled.groups)
    for held in desk.held:
        assert [SUBMITTED, CLAIMED, SAVED] == await desk.events(held)


class Hurried(Impatient):
    """Every look at it is a minute after the one before."""

    def __init__(self) -> None:
        self._minutes = 0

    def now(self) -> float:
        self._minutes += 1
        return 60.0 * self._minutes


async def test_a_database_that_stays_busy_is_in_trouble_and_the_rows_are_kept(database):
    desk = await Desk(database).sit_down(1)
    troubles: list[str | None] = []
    trouble = Trouble("me", troubles.append)
    desk.writer = Writer(desk.troubled, "me", Hurried(), trouble)  # type: ignore[arg-type]
    desk.troubled.before = [Interrupted("its time was over")] * 20

    assert [False] == await desk.told(desk.save(desk.held[0], "step"))
    assert ["its time was over", None] == troubles


async def test_a_bad_step_of_a_job_does_not_take_its_other_steps_along(database):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    await desk.refuse_steps_called("bad")

    told = await desk.told(*(desk.save(held, name) for name in ("a", "bad", "c", "d")))

    assert [bool, BadRow, bool, bool] == [type(each) for each in told]
    assert ["a", "c", "d"] == await desk.steps(held)
    assert [SUBMITTED, CLAIMED, SAVED, SAVED, SAVED] == await desk.events(held)


async def test_a_bad_result_fails_alone_among_saves_reports_and_settles(database):
    desk = await Desk(database).sit_down(4)
    await desk.refuse_result()

    told = await desk.told(
        desk.settle(desk.held[0], '"bad"'),
        desk.settle(desk.held[1], '"good"'),
        desk.save(desk.held[2], "step"),
        desk.writer.report(desk.held[3], "work", 0.5, None),
    )

    assert [BadRow, State, bool, bool] == [type(each) for each in told]
    assert State.RUNNING is await desk.state(desk.held[0])
    assert State.DONE is await desk.state(desk.held[1])
    assert [SUBMITTED, CLAIMED] == await desk.events(desk.held[0])
    assert [SUBMITTED, CLAIMED, SAVED] == await desk.events(desk.held[2])


# — rule three: what got no answer is sent again, and repeats are recognised —


@pytest.mark.parametrize("trouble", [Away, Busy, Full, ReplyLost])
async def test_a_group_that_changed_nothing_is_sent_again(database, trouble):
    desk = await Desk(database).sit_down(2)
    desk.troubled.before = [trouble("no"), trouble("no")]

    told = await desk.told(desk.save(desk.held[0], "step"), desk.settle(desk.held[1]))

    assert [False, State.DONE] == told
    assert [SUBMITTED, CLAIMED, SAVED] == await desk.events(desk.held[0])
    assert [SUBMITTED, CLAIMED, EventType.DONE] == await desk.events(desk.held[1])


async def test_a_group_whose_answer_was_lost_is_not_written_twice(database):
    """E5, E11: no second event, no gap, and everybody gets the answer that was lost."""
    asyncio.get_running_loop().set_debug(True)  # an answer from a wrong thread is an error
    desk = await Desk(database).sit_down(3)
    desk.troubled.after = [ReplyLost("lost")]

    told = await desk.told(
        *(desk.save(desk.held[0], name) for name in ("a", "b", "c")),
        desk.settle(desk.held[1]),
        desk.save(desk.held[2], "last"),
        desk.settle(desk.held[2]),
    )

    assert [False, False, False, State.DONE, False, State.DONE] == told
    assert [SUBMITTED, CLAIMED, SAVED, SAVED, SAVED] == await desk.events(desk.held[0])
    assert [SUBMITTED, CLAIMED, EventType.DONE] == await desk.events(desk.held[1])
    assert [SUBMITTED, CLAIMED, SAVED, EventType.DONE] == await desk.events(desk.held[2])
    assert 0 == desk.writer.refused


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (DONE, State.DONE),
        (settlement.skipped("not needed"), State.SKIPPED),
        (settlement.snoozed(60), State.WAITING),
        (settlement.failed(60, "exception", {"message": "no"}), State.WAITING),
        (settlement.CANCELED, State.CANCELED),
        (settlement.RELEASED, State.WAITING),
    ],
    ids=lambda value: str(getattr(value, "event", value)),
)
async def test_every_end_is_recognised_when_its_answer_was_lost(database, end, state):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    desk.troubled.after = [ReplyLost("lost")]

    assert [state] == await desk.told(desk.end(held, end))

    assert [SUBMITTED, CLAIMED, end.event] == await desk.events(held)


async def test_a_lost_answer_is_asked_after_however_long_the_database_is_away(database):
    """E5: a network that went away with the answer and stays away costs nobody what he has done."""
    desk = await Desk(database).sit_down(2)
    desk.troubled.after = [ReplyLost("lost")]
    desk.troubled.deaf = [Away("no")] * 3

    told = await desk.told(desk.save(desk.held[0], "step"), desk.settle(desk.held[1]))

    assert [False, State.DONE] == told
    assert [SUBMITTED, CLAIMED, SAVED] == await desk.events(desk.held[0])
    assert 0 == desk.writer.refused


async def test_a_question_after_a_lost_answer_that_goes_wrong_is_everybodys_answer(database):
    desk = await Desk(database).sit_down(1)
    desk.troubled.after = [ReplyLost("lost")]
    desk.troubled.deaf = [RuntimeError("nobody thought of this")]

    assert [RuntimeError] == [type(e) for e in await desk.told(desk.save(desk.held[0], "step"))]


async def test_the_lost_answer_to_a_report_is_asked_for_again(database):
    desk = await Desk(database).sit_down(1)
    desk.troubled.after = [ReplyLost("lost")]

    assert [False] == await desk.told(desk.writer.report(desk.held[0], "work", 0.5, "half"))


async def test_a_boot_that_ends_while_the_database_is_away_answers_everybody(database):
    desk = await Desk(database).sit_down(1)
    desk.troubled.before = [Away("no")] * 1_000
    answer = desk.save(desk.held[0], "step")
    await asyncio.sleep(0.01)

    desk.writer.give_up()

    assert [LeaseLost] == [type(each) for each in await desk.told(answer)]


# — rule four: save, progress, settle —


async def test_a_job_may_save_report_and_end_in_one_group_in_any_order_of_asking(database):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    desk.troubled.held_back.clear()

    answers = [
        desk.settle(held),
        desk.writer.report(held, "work", 1.0, "all"),
        desk.save(held, "last"),
    ]
    desk.troubled.held_back.set()

    assert [State.DONE, False, False] == await desk.told(*answers)
    assert ["save_and_settle"] == desk.troubled.groups
    assert [SUBMITTED, CLAIMED, SAVED, EventType.DONE] == await desk.events(held)


# — rule five: a save, once asked for, is waited for even by the cancelled —


async def test_a_cancelled_task_waits_for_its_save(database):
    """E5: a paid answer is never thrown away."""
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    desk.troubled.held_back.clear()

    async def story() -> None:
        await desk.save(held, "paid")

    task = asyncio.create_task(story())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()

    desk.troubled.held_back.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["paid"] == await desk.steps(held)


async def test_a_timeout_around_a_save_waits_for_it_too(database):
    desk = await Desk(database).sit_down(1)
    [held] = desk.held
    desk.troubled.held_back.clear()
    asyncio.get_running_loop().call_later(0.1, desk.troubled.held_back.set)

    async def in_time() -> None:
        async with asyncio.timeout(0.01):
            await desk.save(held, "paid")

    with pytest.raises(TimeoutError):
        await in_time()

    assert ["paid"] == await desk.steps(held)


async def test_flush_returns_when_everything_is_written(database):
    desk = await Desk(database).sit_down(5)
    answers = [desk.save(held, "step") for held in desk.held]

    await desk.writer.flush()

    assert all(answer.done() for answer in answers)


async def test_a_thousand_rows_take_few_commits(database):
    desk = await Desk(database).sit_down(100)

    await desk.told(*(desk.save(held, f"step {n}") for held in desk.held for n in range(15)))

    assert ["save"] * (1_500 // ROWS) == desk.troubled.groups
