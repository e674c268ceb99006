"""Whether what happened was allowed: rules over a finished database and what others wrote beside it.

Three sources that do not know each other: the database (jobs, events, attempts, steps), the effect
ledger that stories keep outside of it, and what submitters were told. A rule reads them and names
what cannot be; each has a test that plants one violation and sees it turn red.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any

from retoma.codec import decode
from retoma.db import Database, Transaction, adhoc, moment
from retoma.engine import query
from retoma.engine.checker import timelines
from retoma.engine.checker.effect_ledger import Accepted, Effect
from retoma.engine.checker.rows import Case, Event, Job, Step
from retoma.engine.rules.events import End, EventType
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import ENDED, State

__all__ = ["Accepted", "Attempt", "Effect", "Event", "History", "Job", "Step", "problems"]

# Several instants of one transaction: a run_at and its event are not told at the same microsecond.
SLACK = timedelta(milliseconds=50)
# From a look at the lease to the first line of a step, on a machine that is busy.
LATE_START = timedelta(seconds=2)
NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A row of the attempts view."""

    job: int
    epoch: int
    runner: str
    claimed_at: datetime
    ended_at: datetime | None
    ended: str | None


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

    def cases(self) -> Iterator[Case]:
        """Each job with all that belongs to it."""
        events = self.timelines()
        steps, effects = _by_job(self.steps), _by_job(self.effects)
        for job in self.jobs:
            yield Case(job, events[job.id], steps[job.id], effects[job.id])


def _by_job(rows: Sequence[Any]) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.job].append(row)
    return found


Rule = Callable[[History], Iterator[str]]


def problems(history: History) -> list[str]:
    """What cannot be, each with the promise it breaks; empty where all is well."""
    return [f"{name}: {text}" for name, rule in RULES.items() for text in rule(history)]


def each_job(rule: timelines.Rule) -> Rule:
    """A rule of the engine's own checker over every job of a history."""

    def over(history: History) -> Iterator[str]:
        for case in history.cases():
            yield from (f"job {case.job.id}: {found}" for found in rule(case))

    return over


# --- claims


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
    """E9: per generation no more failures than attempts."""
    for case in history.cases():
        retry = history.retries.get(case.job.kind)
        if retry is None:
            continue
        for generation in case.generations():
            ends = Counter(
                timelines.claim_end(event) for event in generation if event.ends_claim
            )
            if ends[End.FAILED] > retry.attempts:
                yield f"job {case.job.id} failed {ends[End.FAILED]} times of {retry.attempts}"


def all_ended(history: History) -> Iterator[str]:
    """E18: after the faults nothing is left hanging."""
    for job in history.jobs if history.finished else ():
        if job.state not in ENDED:
            yield f"job {job.id} is still {job.state}"


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


def caps_hold(history: History) -> Iterator[str]:
    """E16: at no instant are more stories inside of a key than its cap."""
    for key, most in most_inside(history).items():
        if most > history.caps[key]:
            yield f"{key}: {most} inside at once, at most {history.caps[key]} may be"


def most_inside(history: History) -> dict[str, int]:
    """Of each key, by what the handlers told. Who did not tell that it left did so when its process died,
    or when its claim ended: it failed, or it was lost and may not have heard of that yet."""
    left = {(e.job, e.epoch, e.step): e.at for e in history.effects if e.phase == "leave"}
    ended = {(e.job, e.epoch): e.at for e in history.events if e.ends_claim}
    turns: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for effect in history.effects:
        if effect.phase == "enter" and effect.step in history.caps:
            until = left.get((effect.job, effect.epoch, effect.step)) or min(
                ended.get((effect.job, effect.epoch), NEVER),
                history.deaths.get(effect.pid, NEVER),
            )
            turns[effect.step].append((effect.at, 1))
            turns[effect.step].append((until, -1))
    return {
        key: max(accumulate(change for _, change in sorted(line)))
        for key, line in turns.items()
    }


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


def counts_add_up(history: History) -> Iterator[str]:
    """Q4: the totals of a batch are its jobs, counted by state."""
    for batch, told in history.counts.items():
        counted = Counter(job.state for job in history.jobs if job.batch == batch)
        if {state: n for state, n in told.items() if n} != dict(counted):
            yield f"batch {batch} tells {dict(told)}, counted are {dict(counted)}"


RULES: dict[str, Rule] = {
    "E1 legal moves": each_job(timelines.legal_moves),
    "E2 one holder": one_holder,
    "E3 no stale write": each_job(timelines.no_stale_write),
    "E4 epochs add one": each_job(timelines.epochs_add_one),
    "E4 held when run": each_job(timelines.held_when_run),
    "E5 never run again": each_job(timelines.never_run_again),
    "E5 step kept once": each_job(timelines.step_kept_once),
    "E5 value as made": each_job(timelines.value_is_the_one_made),
    "E5 no late start": no_late_start,
    "E6 intents end": each_job(timelines.intents_end),
    "E7 nothing lost": nothing_lost,
    "E8 one job per key": one_job_per_key,
    "E9 one end": one_end,
    "E9 within budget": within_budget,
    "E9 releases": each_job(timelines.released_within_bounds),
    "E9 failures counted": each_job(timelines.failures_counted),
    "E10 poison was earned": each_job(timelines.poison_was_earned),
    "E11 folds to state": each_job(timelines.folds_to_state),
    "E11 gapless": each_job(timelines.gapless),
    "E13 cancel is final": each_job(timelines.cancel_is_final),
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
        counts={batch: query.count_jobs(tx, batch) for batch in batches},
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
    at: datetime = moment(value)
    return at


JOBS = adhoc(
    "SELECT id, kind, batch, generation, state, reason, epoch, seq, failures, lost, payload,"
    " result FROM jobs"
)
EVENTS = adhoc("SELECT job, seq, epoch, type, at, actor, details FROM events")
ATTEMPTS = adhoc("SELECT job, epoch, runner, claimed_at, ended_at, ended FROM attempts")
STEPS = adhoc("SELECT job, name, key, epoch, value FROM steps WHERE state = 'saved'")
