"""Whether what happened was allowed: rules over a finished database and what others wrote beside it.

Three sources that do not know each other: the database (jobs, events, attempts, steps), the effect
ledger that stories keep outside of it, and what submitters were told. A rule reads them and names
what cannot be; each has a test that plants one violation and sees it turn red.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any

from retoma.codec import decode
from retoma.db import Database, Transaction, adhoc, moment
from retoma.engine import insights
from retoma.engine.events import LEADS_TO, End, EventType
from retoma.engine.job import RELEASES, REMOTE
from retoma.engine.retry import Retry
from retoma.engine.states import ENDED, MOVES, State

# Several instants of one transaction: a run_at and its event are not told at the same microsecond.
SLACK = timedelta(milliseconds=50)
# From a look at the lease to the first line of a step, on a machine that is busy.
LATE_START = timedelta(seconds=2)
NEVER = datetime.max.replace(tzinfo=UTC)

OPENS = frozenset({EventType.SUBMITTED, EventType.UNPARKED, EventType.AGAIN})
WELL_ENDED = frozenset({EventType.DONE, EventType.SKIPPED})
CANCEL_ENDS = WELL_ENDED | {EventType.CANCELED}
# How a claim may end that its own runner could not.
BY_OTHERS = frozenset(
    {EventType.LOST, EventType.RELEASED, EventType.BURIED, EventType.CANCELED}
)


@dataclass(frozen=True, slots=True)
class Job:
    """A row of jobs."""

    id: int
    kind: str
    batch: int | None
    generation: int
    state: State
    reason: str | None
    epoch: int
    seq: int
    failures: int
    lost: int
    payload: Any
    result: Any


@dataclass(frozen=True, slots=True)
class Event:
    """A row of events."""

    job: int
    seq: int
    epoch: int | None
    type: EventType
    at: datetime
    actor: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ends_claim(self) -> bool:
        moves = LEADS_TO[self.type] is not None
        return moves and self.epoch is not None and self.type is not EventType.CLAIMED


@dataclass(frozen=True, slots=True)
class Attempt:
    """A row of the attempts view."""

    job: int
    epoch: int
    runner: str
    claimed_at: datetime
    ended_at: datetime | None
    ended: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """A row of steps."""

    job: int
    name: str
    key: str
    epoch: int
    value: Any


@dataclass(frozen=True, slots=True)
class Effect:
    """A line of the effect ledger, written by the story itself."""

    job: int
    gen: int
    epoch: int
    step: str
    pid: int
    phase: str
    at: datetime
    value: Any = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A submission whose answer reached the submitter."""

    job: int
    payload: Any
    key: str | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that is known about one run."""

    jobs: Sequence[Job]
    events: Sequence[Event]
    attempts: Sequence[Attempt] = ()
    steps: Sequence[Step] = ()
    effects: Sequence[Effect] = ()
    accepted: Sequence[Accepted] = ()
    counts: Mapping[int, Mapping[State, int]] = field(default_factory=dict)
    retries: Mapping[str, Retry] = field(default_factory=dict)
    caps: Mapping[str, int] = field(
        default_factory=dict
    )  # how many may be inside of a key at once
    deaths: Mapping[int, datetime] = field(default_factory=dict)  # of processes, by pid
    finished: bool = True

    def timelines(self) -> dict[int, list[Event]]:
        """The events of each job, in the order of their numbers."""
        lines: dict[int, list[Event]] = {job.id: [] for job in self.jobs}
        for event in sorted(self.events, key=lambda e: (e.job, e.seq)):
            lines.setdefault(event.job, []).append(event)
        return lines


Rule = Callable[[History], Iterator[str]]


def problems(history: History) -> list[str]:
    """What cannot be, each with the promise it breaks; empty where all is well."""
    return [f"{name}: {text}" for name, rule in RULES.items() for text in rule(history)]


# --- states and events


def legal_moves(history: History) -> Iterator[str]:
    """E1: every pair of moves that follow each other is an edge of the published table."""
    for job, events in history.timelines().items():
        moves = [(e, to) for e in events if (to := LEADS_TO[e.type]) is not None]
        if not moves or moves[0][0].type is not EventType.SUBMITTED:
            yield f"job {job} does not begin with its submission"
        for (_, was), (event, to) in pairwise(moves):
            if to not in MOVES[was]:
                yield f"job {job} went {was} → {to} by its event {event.seq} ({event.type})"


def folds_to_state(history: History) -> Iterator[str]:
    """E11: the events of a job, folded, are its state."""
    timelines = history.timelines()
    for job in history.jobs:
        state = None
        for event in timelines[job.id]:
            state = LEADS_TO[event.type] or state
        if state is not job.state:
            yield f"job {job.id} is {job.state}, its events say {state}"


def gapless(history: History) -> Iterator[str]:
    """E11: events are numbered 1..n, and the job knows n."""
    known = {job.id: job.seq for job in history.jobs}
    for job, events in history.timelines().items():
        numbers = [event.seq for event in events]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"job {job} has the events {numbers}"
        if job in known and known[job] != len(numbers):
            yield f"job {job} counts {known[job]} events, there are {len(numbers)}"


# --- claims


def epochs_add_one(history: History) -> Iterator[str]:
    """E4: each claim adds one to the epoch, and the job knows the last."""
    timelines = history.timelines()
    for job in history.jobs:
        epochs = [e.epoch for e in timelines[job.id] if e.type is EventType.CLAIMED]
        if epochs != list(range(1, len(epochs) + 1)):
            yield f"job {job.id} was claimed under the epochs {epochs}"
        if job.epoch != len(epochs):
            yield f"job {job.id} is at epoch {job.epoch} after {len(epochs)} claims"


def one_holder(history: History) -> Iterator[str]:
    """E2: the attempts of a job never overlap in the database's time."""
    by_job: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in history.attempts:
        by_job[attempt.job].append(attempt)
    for job, attempts in by_job.items():
        attempts.sort(key=lambda a: (a.claimed_at, a.epoch))
        for first, then in pairwise(attempts):
            if first.ended_at is None or then.claimed_at < first.ended_at:
                yield f"job {job}: epoch {then.epoch} began before epoch {first.epoch} ended"


def no_stale_write(history: History) -> Iterator[str]:
    """E3, E4: whatever carries an epoch lies inside that claim, and is its holder's."""
    for job, events in history.timelines().items():
        holder: tuple[int, str | None] | None = None
        for event in events:
            if event.type is EventType.CLAIMED and event.epoch is not None:
                holder = (event.epoch, event.actor)
            elif event.epoch is not None:
                if holder is None or holder[0] != event.epoch:
                    yield f"job {job}: {event.type} of epoch {event.epoch} outside its claim"
                elif _is_the_holders(event) and event.actor != holder[1]:
                    yield f"job {job}: {event.type} of epoch {event.epoch} by another runner"
                if event.ends_claim:
                    holder = None


def _is_the_holders(event: Event) -> bool:
    if event.type is EventType.PARKED and event.details.get("reason") == "unknown_remote":
        return False  # by whoever took it back for the third time
    return event.type not in BY_OTHERS | {EventType.CANCEL_REQUESTED}


def one_end(history: History) -> Iterator[str]:
    """E9: each claim ends in exactly one way, and the budgets hold."""
    for job, events in history.timelines().items():
        claims = {e.epoch for e in events if e.type is EventType.CLAIMED}
        ends = Counter(e.epoch for e in events if e.ends_claim)
        for epoch in claims:
            if ends[epoch] > 1 or (history.finished and not ends[epoch]):
                yield f"job {job}: the claim of epoch {epoch} ended {ends[epoch]} times"
    for attempt in history.attempts:
        if attempt.ended is not None and attempt.ended not in set(End):
            yield f"job {attempt.job}: a claim cannot end as {attempt.ended}"


def within_budget(history: History) -> Iterator[str]:
    """E9: per generation no more failures than attempts, and 20 releases at most."""
    kinds = {job.id: job.kind for job in history.jobs}
    for job, events in history.timelines().items():
        for generation in _generations(events):
            ends = Counter(_end(event) for event in generation if event.ends_claim)
            retry = history.retries.get(kinds.get(job, ""))
            if retry is not None and ends[End.FAILED] > retry.attempts:
                yield f"job {job} failed {ends[End.FAILED]} times of {retry.attempts}"
            if ends[End.RELEASED] > RELEASES:
                yield f"job {job} was released {ends[End.RELEASED]} times"


def failures_counted(history: History) -> Iterator[str]:
    """E9: a job counts the failures of its generation, and the claim that is still open."""
    timelines = history.timelines()
    for job in history.jobs:
        *_, current = _generations(timelines[job.id])
        failed = sum(e.ends_claim and _end(e) is End.FAILED for e in current)
        if job.failures != failed + (job.state is State.RUNNING):
            yield f"job {job.id} counts {job.failures} failures, its events tell of {failed}"


def _generations(events: Iterable[Event]) -> Iterator[list[Event]]:
    current: list[Event] = []
    for event in events:
        if event.type is EventType.AGAIN:
            yield current
            current = []
        current.append(event)
    yield current


def _end(event: Event) -> End:
    if event.type is EventType.BURIED:
        return End.LOST if event.details.get("reason") == "poison" else End.FAILED
    return End(event.type)


def all_ended(history: History) -> Iterator[str]:
    """E18: after the faults nothing is left hanging."""
    for job in history.jobs if history.finished else ():
        if job.state not in ENDED:
            yield f"job {job.id} is still {job.state}"


def poison_was_earned(history: History) -> Iterator[str]:
    """E10: only three lost runners in a row without progress bury a job as poison."""
    for job, events in history.timelines().items():
        losses = 0
        for event in events:
            if event.type is EventType.BURIED and event.details.get("reason") == "poison":
                if losses < 2:
                    yield f"job {job} was buried as poison after {losses + 1} losses in a row"
            elif event.type is EventType.LOST:
                losses += 1
            elif event.ends_claim or event.type in OPENS | {EventType.STEP_SAVED}:
                losses = 0


# --- time


def not_before_due(history: History) -> Iterator[str]:
    """E15: no claim before what the last end, or the submitter, said."""
    delays = {each.job: each.delay for each in history.accepted}
    for job, events in history.timelines().items():
        due: datetime | None = None
        for event in events:
            if event.type is EventType.CLAIMED and due is not None:
                if event.at < due - SLACK:
                    yield f"job {job} was claimed {due - event.at} early at epoch {event.epoch}"
                due = None
            elif event.type is EventType.SUBMITTED:
                due = event.at + timedelta(seconds=delays.get(job, 0.0))
            elif event.type in (EventType.FAILED, EventType.SNOOZED):
                due = event.at + timedelta(seconds=event.details["after"])


def backoff_in_bounds(history: History) -> Iterator[str]:
    """E15: the n-th failure waits within [base · factorⁿ⁻¹ · (1 - jitter), cap]."""
    kinds = {job.id: job.kind for job in history.jobs}
    for job, events in history.timelines().items():
        retry = history.retries.get(kinds.get(job, ""))
        failures = 0
        for event in events if retry is not None else ():
            assert retry is not None
            failures = 0 if event.type is EventType.AGAIN else failures
            if event.type is EventType.FAILED:
                failures += 1
                least = retry.base * retry.factor ** (failures - 1) * (1 - retry.jitter)
                if not min(least, retry.cap) <= event.details["after"] <= retry.cap:
                    yield f"job {job}: failure {failures} waits {event.details['after']} s"


# --- steps and effects


def step_kept_once(history: History) -> Iterator[str]:
    """E5: a step is committed once in a generation, by the epoch its row names.

    The row of remote work is written again when the work has ended.
    """
    kept: dict[tuple[int, str], list[int | None]] = defaultdict(list)
    for job, events in history.timelines().items():
        for event in events:
            if event.type is EventType.STEP_SAVED:
                kept[job, _step_name(event)].append(event.epoch)
    rows = {(step.job, _joined(step.name, step.key)): step for step in history.steps}
    for (job, name), epochs in kept.items():
        row = rows.get((job, name))
        if len(epochs) > 1:
            yield f"job {job}: step {name} was committed {len(epochs)} times ({epochs})"
        elif name.startswith(REMOTE):
            continue
        elif row is None or row.epoch != epochs[0]:
            yield f"job {job}: step {name} of epoch {epochs[0]} is not the one that is kept"
    for job, name in rows.keys() - kept.keys():
        yield f"job {job}: step {name} is kept, and no event tells of it"


INTENT_ENDS = frozenset({EventType.STEP_SAVED, EventType.STEP_FAILED, EventType.STEP_ENDED})


def intents_end(history: History) -> Iterator[str]:
    """E6: what was begun was seen to end, or a person may still say what became of it.

    Remote work has ended when that is told, not when its handle is kept. A step of our own that
    nobody saw end waits on the list of the dead too; work elsewhere would run on unseen.
    """
    states = {job.id: job.state for job in history.jobs}
    for job, events in history.timelines().items():
        unseen: set[str] = set()
        parked = False
        for event in events:
            if event.type is EventType.STEP_BEGUN:
                unseen.add(_step_name(event))
            elif event.type in INTENT_ENDS and not _handle_kept(event):
                unseen.discard(_step_name(event))
            if event.type in (EventType.PARKED, EventType.CLAIMED):
                parked = event.type is EventType.PARKED
        for name in sorted(unseen):
            if states.get(job) in (State.DONE, State.SKIPPED):
                yield f"job {job} is {states[job]}, and nobody saw {name} end"
            elif name.startswith(REMOTE) and states.get(job) in ENDED and not parked:
                yield f"job {job} is {states[job]} and left {name} behind"


def _handle_kept(event: Event) -> bool:
    return event.type is EventType.STEP_SAVED and _step_name(event).startswith(REMOTE)


def never_run_again(history: History) -> Iterator[str]:
    """E5: a committed step is not started by a later claim."""
    committed = {
        (event.job, _step_name(event)): event.epoch
        for event in history.events
        if event.type is EventType.STEP_SAVED
    }
    for effect in history.effects:
        epoch = committed.get((effect.job, effect.step))
        if effect.phase == "start" and epoch is not None and effect.epoch > epoch:
            yield (
                f"job {effect.job}: step {effect.step}, committed at epoch {epoch},"
                f" was started again at {effect.epoch}"
            )


def value_is_the_one_made(history: History) -> Iterator[str]:
    """E5: what is kept of a step is what its function gave under that epoch."""
    made = {
        (effect.job, effect.step, effect.epoch): effect.value
        for effect in history.effects
        if effect.phase == "end"
    }
    for step in history.steps if history.effects else ():
        name = _joined(step.name, step.key)
        if made.get((step.job, name, step.epoch)) != step.value:
            yield f"job {step.job}: step {name} holds {step.value!r}, nobody made that"


def no_late_start(history: History) -> Iterator[str]:
    """E5: whoever lost a job starts nothing of it once the next claim was made."""
    claimed = {
        (event.job, event.epoch): event.at
        for event in history.events
        if event.type is EventType.CLAIMED
    }
    for effect in history.effects:
        taken = claimed.get((effect.job, effect.epoch + 1))
        if effect.phase == "start" and taken is not None and effect.at > taken + LATE_START:
            yield f"job {effect.job}: epoch {effect.epoch} started {effect.step} after it was lost"


def held_when_run(history: History) -> Iterator[str]:
    """E4: nothing runs under an epoch that was never given out."""
    claimed = {(e.job, e.epoch) for e in history.events if e.type is EventType.CLAIMED}
    for effect in history.effects:
        if (effect.job, effect.epoch) not in claimed:
            yield f"job {effect.job} ran under epoch {effect.epoch}, which nobody claimed"
    pids: dict[tuple[int, int], int] = {}
    for effect in history.effects:
        if pids.setdefault((effect.job, effect.epoch), effect.pid) != effect.pid:
            yield f"job {effect.job} ran under epoch {effect.epoch} in two processes"


def caps_hold(history: History) -> Iterator[str]:
    """E16: at no instant are more stories inside of a key than its cap."""
    for key, most in most_inside(history).items():
        if most > history.caps[key]:
            yield f"{key}: {most} inside at once, at most {history.caps[key]} may be"


def most_inside(history: History) -> dict[str, int]:
    """Of each key, by what the stories told. Who did not tell that it left did so when its process
    died, or never."""
    left = {(e.job, e.epoch, e.step): e.at for e in history.effects if e.phase == "leave"}
    turns: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for effect in history.effects:
        if effect.phase == "enter" and effect.step in history.caps:
            until = left.get((effect.job, effect.epoch, effect.step))
            turns[effect.step].append((effect.at, 1))
            turns[effect.step].append((until or history.deaths.get(effect.pid, NEVER), -1))
    return {
        key: max(accumulate(change for _, change in sorted(line)))
        for key, line in turns.items()
    }


def _step_name(event: Event) -> str:
    return _joined(event.details["step"], event.details.get("key", ""))


def _joined(name: str, key: str) -> str:
    return f"{name}/{key}" if key else name


# --- submitters and operators


def nothing_lost(history: History) -> Iterator[str]:
    """E7: every submission that was answered for is there, with its payload."""
    jobs = {job.id: job for job in history.jobs}
    for each in history.accepted:
        if each.job not in jobs:
            yield f"job {each.job} was accepted and is not there"
        elif jobs[each.job].payload != each.payload:
            yield f"job {each.job} was accepted with another payload"


def one_job_per_key(history: History) -> Iterator[str]:
    """E8: the same key and payload are the same job; another payload is none."""
    by_key: dict[str, Accepted] = {}
    for each in history.accepted:
        if each.key is None:
            continue
        first = by_key.setdefault(each.key, each)
        if first.job != each.job:
            yield f"the key {each.key} gave the jobs {first.job} and {each.job}"
        elif first.payload != each.payload:
            yield f"the key {each.key} was accepted with two payloads"


def cancel_is_final(history: History) -> Iterator[str]:
    """E13: after a cancel no new try: it ends canceled, or done and too late.

    Unless work of it is at another machine: it is taken up, as often as needed, to stop that.
    """
    for job, events in history.timelines().items():
        asked = canceled = False
        elsewhere: set[str] = set()
        for event in events:
            if event.type in INTENT_ENDS | {EventType.STEP_BEGUN}:
                _follow(elsewhere, event)
            if event.type is EventType.AGAIN:
                asked = canceled = False
            elif canceled:
                yield f"job {job}: {event.type} after it was canceled"
            elif asked and elsewhere and event.type is not EventType.DONE:
                pass
            elif asked and event.type is EventType.CLAIMED:
                yield f"job {job} was tried again although its cancel was asked for"
            elif asked and event.type in WELL_ENDED and not event.details.get("too_late"):
                yield f"job {job} ended {event.type} after a cancel and does not say too late"
            elif asked and event.ends_claim and event.type not in CANCEL_ENDS:
                yield f"job {job}: {event.type} after its cancel was asked for"
            asked = asked or event.type is EventType.CANCEL_REQUESTED
            canceled = canceled or event.type is EventType.CANCELED


def _follow(elsewhere: set[str], event: Event) -> None:
    name = _step_name(event)
    if event.type in (EventType.STEP_FAILED, EventType.STEP_ENDED):
        elsewhere.discard(name)
    elif name.startswith(REMOTE):
        elsewhere.add(name)


def counts_add_up(history: History) -> Iterator[str]:
    """Q4: the totals of a batch are its jobs, counted by state."""
    for batch, told in history.counts.items():
        counted = Counter(job.state for job in history.jobs if job.batch == batch)
        if {state: n for state, n in told.items() if n} != dict(counted):
            yield f"batch {batch} tells {dict(told)}, counted are {dict(counted)}"


RULES: dict[str, Rule] = {
    "E1 legal moves": legal_moves,
    "E2 one holder": one_holder,
    "E3 no stale write": no_stale_write,
    "E4 epochs add one": epochs_add_one,
    "E4 held when run": held_when_run,
    "E5 never run again": never_run_again,
    "E5 step kept once": step_kept_once,
    "E5 value as made": value_is_the_one_made,
    "E5 no late start": no_late_start,
    "E6 intents end": intents_end,
    "E7 nothing lost": nothing_lost,
    "E8 one job per key": one_job_per_key,
    "E9 one end": one_end,
    "E9 within budget": within_budget,
    "E9 failures counted": failures_counted,
    "E10 poison was earned": poison_was_earned,
    "E11 folds to state": folds_to_state,
    "E11 gapless": gapless,
    "E13 cancel is final": cancel_is_final,
    "E15 not before due": not_before_due,
    "E15 backoff in bounds": backoff_in_bounds,
    "E16 caps hold": caps_hold,
    "E18 all ended": all_ended,
    "Q4 counts add up": counts_add_up,
}


# --- reading a database


@dataclass(frozen=True, slots=True)
class Rows:
    """What the database itself has to say."""

    jobs: list[Job]
    events: list[Event]
    attempts: list[Attempt]
    steps: list[Step]
    counts: dict[int, dict[State, int]]


async def read_rows(database: Database) -> Rows:
    """All of it in one snapshot."""
    return await database.read(_rows)


def _rows(tx: Transaction) -> Rows:
    jobs = [_job(row) for row in tx.all(JOBS)]
    batches = {job.batch for job in jobs if job.batch is not None}
    return Rows(
        jobs=jobs,
        events=[_event(row) for row in tx.all(EVENTS)],
        attempts=[_attempt(row) for row in tx.all(ATTEMPTS)],
        steps=[
            Step(job, name, key, epoch, _value(text))
            for job, name, key, epoch, text in tx.all(STEPS)
        ],
        counts={batch: insights.count_jobs(tx, batch) for batch in batches},
    )


def _job(row: tuple[Any, ...]) -> Job:
    id_, kind, batch, generation, state, reason, epoch, seq, failures, lost, payload, result = (
        row
    )
    return Job(
        *(id_, kind, batch, generation, State(state), reason, epoch, seq, failures, lost),
        payload=_value(payload),
        result=_value(result),
    )


def _event(row: tuple[Any, ...]) -> Event:
    job, seq, epoch, kind, at, actor, details = row
    return Event(job, seq, epoch, EventType(kind), _at(at), actor, _value(details) or {})


def _attempt(row: tuple[Any, ...]) -> Attempt:
    job, epoch, runner, claimed, ended_at, ended = row
    return Attempt(job, epoch, runner, _at(claimed), moment(ended_at), ended)


def _value(text: str | None) -> Any:
    return None if text is None else decode(text)


def _at(value: Any) -> datetime:
    at = moment(value)
    assert at is not None
    return at


JOBS = adhoc(
    "SELECT id, kind, batch, generation, state, reason, epoch, seq, failures, lost, payload,"
    " result FROM jobs"
)
EVENTS = adhoc("SELECT job, seq, epoch, type, at, actor, details FROM events")
ATTEMPTS = adhoc("SELECT job, epoch, runner, claimed_at, ended_at, ended FROM attempts")
STEPS = adhoc("SELECT job, name, key, epoch, value FROM steps WHERE state = 'saved'")
