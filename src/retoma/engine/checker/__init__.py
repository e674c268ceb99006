"""The checker: reads a database, its event log and perhaps a ledger of effects, and names what cannot be.

`check(tx)` is a pure function over one read transaction. It reads jobs in pages by their ids, so that a
database of a million jobs needs no more memory than one of ten thousand.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar, cast

from retoma.codec import decode
from retoma.db import Row, Transaction, moment, statement
from retoma.engine.checker.effect_ledger import Ledger
from retoma.engine.checker.holds import Holds
from retoma.engine.checker.rows import NO_DETAILS, Account, Case, Event, Job, Step
from retoma.engine.checker.timelines import RULES, WITH_LEDGER, problems
from retoma.engine.checker.totals import TOTALS
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State, StepState
from retoma.words import Said, say

__all__ = ["PAGE", "Violation", "check", "open_jobs", "violations"]

T = TypeVar("T")

PAGE = 5_000  # jobs read at a time
MOST = 100  # violations of one rule that are told apart
FIRST_ID = -(2**62)  # before every job

JOBS = statement("retoma.engine.checker.sql", "check_jobs")
EVENTS = statement("retoma.engine.checker.sql", "check_events")
STEPS = statement("retoma.engine.checker.sql", "check_steps")
JOB_COSTS = statement("retoma.engine.checker.sql", "check_job_costs")
OPEN = statement("retoma.engine.checker.sql", "check_open")

TYPES = {str(each): each for each in EventType}
STATES = {str(each): each for each in State}


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that cannot be, if the engine keeps its promises."""

    rule: str
    subject: str  # the object, such as `job 42` or `limit site:a`
    found: Said
    todo: Said


def check(
    tx: Transaction, ledger: Ledger | None = None, *, most: int = MOST, page: int = PAGE
) -> list[Violation]:
    """Check all jobs and all totals. `most`: of each rule, so many violations are reported."""
    told: Counter[str] = Counter()
    kept = []
    for each in violations(tx, ledger, most=most, page=page):
        told[each.rule] += 1
        if told[each.rule] <= most:
            kept.append(each)
    return kept


def violations(
    tx: Transaction, ledger: Ledger | None = None, *, most: int = MOST, page: int = PAGE
) -> Iterator[Violation]:
    """Check as `check` does and yield each violation as it is found."""
    rules = [*RULES.items(), *(WITH_LEDGER.items() if ledger is not None else ())]
    holds = Holds()
    seen: set[int] = set()
    for case in _cases(tx, ledger, page):
        holds.add(case)
        if case.accepted:
            seen.add(case.job.id)
        for name, found in problems(case, rules):
            yield Violation(name, f"job {case.job.id}", found, _todo_of_job(case.job.id))
    for (pool, item), found in holds.overlaps():
        yield Violation("holds", f"pool item {pool}/{item}", found, TODO_TOTAL)
    for name, total in TOTALS.items():
        for subject, found in total(tx, most):
            yield Violation(name, subject, found, TODO_TOTAL)
    yield from _missing(ledger, seen)


def open_jobs(tx: Transaction, *, most: int = MOST) -> list[Violation]:
    """Name jobs that have not ended, for a caller who knows that all of them should have."""
    return [
        Violation(
            "open jobs",
            f"job {job}",
            say("it is still {state}", state=state),
            _todo_of_job(job),
        )
        for job, state in tx.all(OPEN, most=most)
    ]


TODO_TOTAL = say(
    "keep a copy of the database (`retoma backup`) and report it with this line: rows and totals"
    " are written together"
)


def _todo_of_job(job: int) -> Said:
    return say(
        "look at its timeline (`retoma jobs show {job}`), keep a copy (`retoma backup`) and report it",
        job=job,
    )


def _missing(ledger: Ledger | None, seen: set[int]) -> Iterator[Violation]:
    """E7, E8: what was accepted is there; one key is one job."""
    if ledger is None:
        return
    by_key: dict[str, int] = {}
    for job, accepted in sorted(ledger.accepted.items()):
        if job not in seen:
            found = say("it was accepted and is not there")
            yield Violation("submissions", f"job {job}", found, _todo_of_job(job))
        for each in accepted:
            if each.key is not None and by_key.setdefault(each.key, job) != job:
                found = say(
                    "the key {key} gave job {job} too", key=each.key, job=by_key[each.key]
                )
                yield Violation("submissions", f"job {job}", found, _todo_of_job(job))


# — reading —


def _cases(tx: Transaction, ledger: Ledger | None, page: int) -> Iterator[Case]:
    after = FIRST_ID
    compared = int(ledger is not None)
    while jobs := [_job(row) for row in tx.all(JOBS, after=after, page=page, whole=compared)]:
        between = {"after": after, "until": jobs[-1].id}
        after = jobs[-1].id
        events = _by_job(_event(row) for row in tx.all(EVENTS, **between))
        steps = _by_job(_step(row) for row in tx.all(STEPS, **between, whole=compared))
        costly = compared or any(each.cost for kept in steps.values() for each in kept)
        spent = _spent(tx, between) if costly else {}
        for job in jobs:
            yield Case(
                job,
                events.get(job.id, ()),
                steps.get(job.id, ()),
                effects=() if ledger is None else ledger.effects.get(job.id, ()),
                accepted=() if ledger is None else ledger.accepted.get(job.id, ()),
                spent=spent.get(job.id, {}),
            )


def _by_job(rows: Iterable[T]) -> dict[int, list[T]]:
    """Rows come in the order of their jobs."""
    return {job: [*each] for job, each in groupby(rows, key=attrgetter("job"))}


def _spent(tx: Transaction, between: Mapping[str, int]) -> dict[int, dict[Account, int]]:
    found: dict[int, dict[Account, int]] = {}
    for job, provider, model, unit, amount in tx.all(JOB_COSTS, **between):
        found.setdefault(job, {})[provider, model, unit] = int(amount)
    return found


def _job(row: Row) -> Job:
    *plain, state, turn, run_at, runner, ended_at, payload = row
    id_, kind, batch, generation, fresh_from, reason, epoch, seq, failures = plain
    return Job(
        *(id_, kind, batch, generation, STATES[state], reason, epoch, seq, failures),
        fresh_from=fresh_from,
        turn=turn,
        run_at=moment(run_at),
        runner=runner,
        ended_at=moment(ended_at),
        payload=_value(payload),
    )


def _event(row: Row) -> Event:
    job, seq, epoch, kind, at, actor, details = row
    known = json.loads(details) if details else NO_DETAILS
    return Event(job, seq, epoch, TYPES[kind], _at(at), actor, known)


def _step(row: Row) -> Step:
    job, name, version, key, generation, epoch, state, cost, value = row
    return Step(
        *(job, name, key, epoch, _value(value)),
        version=version,
        generation=generation,
        state=StepState(state),
        cost=cost,
    )


def _value(text: str | None) -> Any:
    return None if text is None else decode(text)


def _at(value: Any) -> datetime:
    return cast("datetime", moment(value))
