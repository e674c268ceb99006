"""The store and the reference side by side: whatever is asked of both, both end in the same state."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from retoma.db import Database, Statement, Transaction, adhoc
from retoma.db.statements import Text
from retoma.engine import query, store
from retoma.engine.ports import Process
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import IdempotencyMismatch, IllegalMove
from retoma.engine.rules.job import Claim, Held, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, ParkReason
from retoma.engine.store import Boot, NewJob, Spot, Submission
from tests.model.reference import ENDED, LEASE, End, Illegal, Model

T = TypeVar("T")

# Every wait is ten seconds beside every hop: the time the test itself takes decides nothing.
HOP = 20
WAITS = (0, 10, 30, 90)
MANY = 100
ABOUT = {"kind": "work", "version": 1, "queue": "work"}
KEYS = ("a", "b")
STEPS = ("read", "label")
MOST_RUNNERS = 5  # no more are declared lost at once

ENDS: dict[str, tuple[Callable[[int], Settlement], End]] = {
    "done": (lambda _: settlement.done("1"), End("done", "done")),
    "skipped": (lambda _: settlement.skipped("seen"), End("skipped", "skipped")),
    "failed": (lambda s: settlement.failed(s, "x", {}), End("failed", "waiting")),
    "buried": (
        lambda _: settlement.buried(DeadReason.PERMANENT, "x", {}),
        End("buried", "dead", "permanent"),
    ),
    "snoozed": (settlement.snoozed, End("snoozed", "waiting")),
    "parked": (
        lambda _: settlement.parked("look", ParkReason.OPERATOR),
        End("parked", "parked", "operator"),
    ),
    "released": (lambda _: settlement.RELEASED, End("released", "waiting")),
    "canceled": (lambda _: settlement.CANCELED, End("canceled", "canceled")),
}
WRITES = (*STEPS, "progress", "evidence", *sorted(ENDS))
WAITING_ENDS = ("failed", "snoozed")

ROWS = adhoc(
    "SELECT id, state, reason, epoch, generation, failures, lost, released, runner, seq"
    " FROM jobs ORDER BY id"
)
EVENTS = adhoc("SELECT job, type, epoch FROM events ORDER BY job, seq")
TABLES = (
    *("jobs", "events", "steps", "tallies", "counts", "pace", "runners", "batches", "audit"),
)


class Machine(RuleBasedStateMachine):
    """One example: a few runners, a few jobs, anything in any order."""

    database: ClassVar[Database]
    clock: ClassVar["Hand"]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.boots = 0
        # Every claim there ever was, so that what it could write may be tried again much later.
        self.held: list[tuple[str, Held]] = []

    def do(self, fn: Callable[[Transaction], T]) -> T:
        return self.database.write_now(fn, verb="model")

    @initialize()
    def begin(self) -> None:
        self.clock.hop(-self.clock.now)
        self.do(empty)
        self.boot()
        # Hypothesis leaves whole rules out of an example: something must always be there to hold.
        for payload in range(3):
            self.submit(payload=payload, key=None, delay=0)

    def pick(self, n: int, among: Any) -> Any:
        """One of them; the same one in the same example on both databases."""
        listed = list(among)
        return listed[n % len(listed)]

    # — anybody —

    @rule(
        payload=st.integers(0, 1),
        key=st.sampled_from((None, *KEYS)),
        delay=st.sampled_from(WAITS),
    )
    def submit(self, payload: int, key: str | None, delay: int) -> None:
        about = Submission(**ABOUT, delay=delay or None)  # type: ignore[arg-type]
        new = NewJob(str(payload), key, None if key is None else f"hash of {payload}")
        there = None if key is None else self.model.by_key(key)
        try:
            job = self.do(lambda tx: store.submit_job(tx, about, new))
        except IdempotencyMismatch:
            assert there is not None
            assert there.payload != payload
        else:
            if there is None:
                self.model.submit(job.id, payload, key, delay)
            else:
                assert (there.id, there.payload) == (job.id, payload)
        self.compare()

    @precondition(lambda self: self.model.jobs)
    @rule(n=st.integers(0, 9))
    def cancel(self, n: int) -> None:
        id_ = self.pick(n, self.model.jobs)
        self.both(
            lambda tx: str(store.cancel_job(tx, id_, actor="test")),
            lambda: self.model.cancel(id_),
        )

    @precondition(lambda self: self.model.jobs)
    @rule(n=st.integers(0, 9), fresh=st.booleans())
    def again(self, n: int, *, fresh: bool) -> None:
        ended = [j.id for j in self.model.jobs.values() if j.state in ENDED]
        id_ = self.pick(n, ended if ended and n % 4 else self.model.jobs)
        self.both(
            lambda tx: store.again(tx, id_, actor="test", fresh=fresh).state.value,
            lambda: self.model.again(id_, fresh=fresh),
        )

    @precondition(lambda self: self.model.jobs)
    @rule(n=st.integers(0, 9))
    def unpark(self, n: int) -> None:
        parked = [j.id for j in self.model.jobs.values() if j.state == "parked"]
        id_ = self.pick(n, parked if parked and n % 4 else self.model.jobs)
        self.both(
            lambda tx: store.unpark(tx, id_, actor="test").state.value,
            lambda: self.model.unpark(id_),
        )

    @rule(hops=st.integers(1, 4))
    def advance(self, hops: int) -> None:
        self.clock.hop(hops * HOP)
        self.model.now += hops * HOP

    # — runners —

    @precondition(lambda self: len(self.living()) < MOST_RUNNERS)
    @rule()
    def boot(self) -> None:
        self.boots += 1
        name = f"boot {self.boots}"
        me = Boot(
            id=name,
            name=name,
            process=Process("host", 1, ""),
            version="",
            slots=MANY,
            knows=("work@1",),
        )
        self.do(lambda tx: store.boot_runner(tx, me, LEASE))
        self.model.boot(name)

    def living(self) -> list[str]:
        return [
            boot
            for boot, each in self.model.runners.items()
            if each.state in ("alive", "leaving")
        ]

    @rule(n=st.integers(0, 9))
    def beat(self, n: int) -> None:
        boot = self.pick(n, self.model.runners)
        assert self.model.beat(boot) == bool(
            self.do(lambda tx: store.beat_runner(tx, boot, LEASE, reconnected=False))
        )

    @rule(n=st.integers(0, 9), to=st.sampled_from(("leaving", "gone", "lost", "lost")))
    def retire(self, n: int, to: str) -> None:
        boot = self.pick(n, self.living() or self.model.runners)
        assert self.model.move(boot, to) == self.do(
            lambda tx: store.move_runner(tx, boot, to, actor="test")
        )

    @rule(n=st.integers(0, 9))
    def lose(self, n: int) -> None:
        me = self.pick(n, self.model.runners)
        assert self.model.lose(me) == set(self.do(lambda tx: store.lose_runners(tx, me, LEASE)))

    @rule()
    def take_back(self) -> None:
        back = self.do(lambda tx: store.take_back(tx, "watchdog"))
        assert self.model.take_back() == {held.job for held, _ in back}
        self.compare()

    @rule(n=st.integers(0, 9), slots=st.sampled_from((1, MANY, MANY)))
    def claim(self, n: int, slots: int) -> None:
        if not self.living():
            self.boot()
        self.take(self.pick(n, self.living() if n else self.model.runners), slots)

    def take(self, boot: str, slots: int) -> None:
        plain = self.model.claimable(boot, suspects=False)
        suspects = self.model.claimable(boot, suspects=True)
        found = self.do(
            lambda tx: store.claim_jobs(
                tx, boot, [Spot("work")], ["work@1"], slots=slots, suspects=1, promote=True
            )
        ).claims
        taken = {claim.job for claim in found}
        assert taken <= plain | suspects
        assert len(taken & suspects) <= 1
        assert len(taken & plain) <= slots
        if slots == MANY:
            assert plain <= taken
            assert len(taken & suspects) == min(1, len(suspects))
        assert bool(taken) == bool(plain | suspects)
        for claim in sorted(found):
            assert self.model.readable(claim.job) == self.readable(claim)
            assert (claim.job, claim.epoch) == self.model.claim(boot, claim.job)
            self.held.append((boot, claim.held))
        self.compare()

    def readable(self, claim: Claim) -> dict[str, int]:
        memory = self.do(lambda tx: store.load_steps(tx, [claim])).get(claim.job)
        steps = [] if memory is None else memory.steps
        return {step.id.name: int(step.value or "") for step in steps}

    # — what a runner writes; most often on what it holds, sometimes on what it held long ago —

    def live(self) -> list[tuple[str, Held]]:
        return [(boot, held) for boot, held in self.held if self.model.holds(boot, *held)]

    @precondition(lambda self: self.live())
    @rule(n=st.integers(0, 99), name=st.sampled_from(STEPS))
    def step(self, n: int, name: str) -> None:
        boot, held = self.pick(n, self.live())
        self.save(boot, held, name, n)

    @precondition(lambda self: self.live())
    @rule(n=st.integers(0, 99), how=st.sampled_from(sorted(ENDS)), after=st.sampled_from(WAITS))
    def settle(self, n: int, how: str, after: int) -> None:
        boot, held = self.pick(n, self.live())
        self.end(boot, held, how, after)

    @precondition(lambda self: self.held)
    @rule(
        n=st.integers(0, 99),
        how=st.sampled_from(WRITES),
    )
    def replay(self, n: int, how: str) -> None:
        """E3: any earlier write again. Accepted only where the claim is still the one that counts."""
        stale = [each for each in self.held if not self.model.holds(each[0], *each[1])]
        # Most telling where another holds the job now.
        taken = [each for each in stale if self.model.jobs[each[1].job].state == "running"]
        stale = taken if taken and n % 3 else stale
        if not stale:
            return
        boot, held = self.pick(n, stale)
        self.try_again(boot, held, how, n)

    @precondition(lambda self: self.live())
    @rule(n=st.integers(0, 99), how=st.sampled_from(WRITES))
    def talk_on(self, n: int, how: str) -> None:
        """E3: a story that goes on after its job was given back and taken up by the same runner."""
        boot, held = self.pick(n, self.live())
        self.end(boot, held, "released", 0)
        self.take(boot, MANY)
        self.try_again(boot, held, how, n)

    def try_again(self, boot: str, held: Held, how: str, n: int) -> None:
        if how in STEPS:
            self.save(boot, held, how, n)
        elif how in ENDS:
            self.end(boot, held, how, 0)
        else:
            assert not self.do(lambda tx: offered(tx, boot, held, how))
            self.compare()

    def save(self, boot: str, held: Held, name: str, value: int) -> None:
        step = StepId(name)
        call = store.saves(boot, [(held, step, store.step_fields(step, str(value)))])
        [rows] = self.do(lambda tx: tx.finish(call))
        assert self.model.save(boot, *held, name, value) == bool(rows)
        self.compare()

    def end(self, boot: str, held: Held, how: str, after: int) -> None:
        made, end = ENDS[how]
        sender, sent = self.sent(boot, held)
        end = End(end.event, end.state, end.reason, after if how in WAITING_ENDS else 0)
        call = store.settles(sender, [store.settle_row(sent, made(after))])
        [rows] = self.do(lambda tx: tx.finish(call))
        assert self.model.settle(boot, *held, end) == bool(rows)
        self.compare()

    def sent(self, boot: str, held: Held) -> tuple[str, Held]:
        """What a settling carries."""
        return boot, held

    # — the judge —

    def both(self, ours: Callable[[Transaction], Any], theirs: Callable[[], Any]) -> None:
        try:
            expected = theirs()
        except Illegal:
            expected = "refused"
        try:
            answer = self.do(ours)
        except IllegalMove:
            answer = "refused"
        assert expected == answer
        self.compare()

    def compare(self) -> None:
        """Every row and every timeline, as the reference has them."""
        rows, events = self.do(lambda tx: (tx.all(ROWS), tx.all(EVENTS)))
        assert [job.row() for job in self.model.jobs.values()] == rows
        assert list(timeline(self.model)) == events

    def teardown(self) -> None:
        """E19: the counters are what the moves add up to, before they are folded and after."""
        expected: dict[str, int] = {}
        for job in self.model.jobs.values():
            expected[job.state] = expected.get(job.state, 0) + 1
        before = self.do(counts)
        self.do(store.fold_tallies)
        assert expected == before == self.do(counts)


class Hand:
    """The hand on the database's clock."""

    def __init__(self) -> None:
        self.now = 0

    def hop(self, seconds: int) -> None:
        self.now += seconds

    def moved(self) -> int:
        return self.now * 1_000_000


def timeline(model: Model) -> Iterator[tuple[int, str, int | None]]:
    for job in model.jobs.values():
        for event, epoch in job.events:
            yield job.id, event, epoch


def offered(tx: Transaction, boot: str, held: Held, how: str) -> bool:
    if how == "evidence":
        page = store.pack(store.Evidence("page", "text/plain", b"x"))
        return store.attach(tx, boot, held, page)
    [rows] = tx.finish(store.reports(boot, [store.report_row(held, 0.5, "half")]))
    return bool(rows)


def counts(tx: Transaction) -> dict[str, int]:
    return {str(state): n for state, n in query.count_jobs(tx).items()}


def empty(tx: Transaction) -> None:
    """As good as new, and quicker than a new one."""
    if tx.dialect == "postgres":  # which would walk over the dead rows of a thousand examples
        truncate = Text(f"TRUNCATE {', '.join(TABLES)}", answers=False)
        tx.run(Statement("empty", (), (truncate,)))
        return
    for table in TABLES:
        tx.run(adhoc(f"DELETE FROM {table}"))  # noqa: S608 — names of ours
