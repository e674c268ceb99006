"""Schedules and their ticks: each tick is a row, written with the job it submits or not at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, cast

from retoma.db import Row, Transaction, moment, seconds_until
from retoma.engine.log import get_logger
from retoma.engine.rules.cron import Cron
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.rules.job import Job
from retoma.engine.store.rows import now, tell
from retoma.engine.store.submit import NewJob, Submission, submit_job
from retoma.engine.store.verb import SQL
from retoma.words import say

# Two leases: whoever held the duty has then died, been missed and been followed by another.
LATE = timedelta(seconds=120)
AT_A_TIME = 20  # schedules in one transaction

log = get_logger("retoma.schedule")


class Missed(StrEnum):
    """What becomes of ticks that nobody could do in time."""

    ONE = "one"  # one run for all of them
    SKIP = "skip"  # none


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A schedule as the code declares it; `payload` is JSON text already."""

    name: str
    kind: str
    version: int
    queue: str
    priority: int
    cron: str
    timezone: str
    payload: str
    missed: Missed
    limits: str = "{}"  # JSON: by key, how many may run; whoever ticks need not know the kind

    def submission(self, at: datetime) -> Submission:
        return Submission(
            kind=self.kind,
            version=self.version,
            queue=self.queue,
            priority=self.priority,
            correlation=f"{self.name} {at.isoformat()}",
            actor=f"schedule {self.name}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule as it stands in the database."""

    plan: Plan
    paused_at: datetime | None
    next_at: datetime
    last_at: datetime | None
    last_job: int | None

    @property
    def name(self) -> str:
        return self.plan.name


def declare_schedules(tx: Transaction, plans: Sequence[Plan], *, actor: str) -> int:
    """Write down those that are new or have changed; how many that was."""
    known = {each.name: each.plan for each in list_schedules(tx)}
    changed = [plan for plan in plans if known.get(plan.name) != plan]
    for plan in changed:
        next_at = Cron(plan.cron, plan.timezone).after(now(tx))
        tx.run(SQL.declare_schedule, next_at=next_at, **_columns(plan))
        tell(tx, actor=actor, verb="schedule.declared", subject=plan.name)
    return len(changed)


def list_schedules(tx: Transaction, name: str | None = None) -> list[Schedule]:
    return [_schedule(row) for row in tx.all(SQL.list_schedules, name=name)]


def get_schedule(tx: Transaction, name: str) -> Schedule:
    found = list_schedules(tx, name)
    if not found:
        raise NotFound(say("there is no schedule {name!r}", name=name))
    return found[0]


def pause_schedule(tx: Transaction, name: str, *, actor: str) -> Schedule:
    """It ticks no more until it is unpaused; asked again it stays as it is."""
    if tx.one(SQL.pause_schedule, name=name) is not None:
        tell(tx, actor=actor, verb="schedule.paused", subject=name)
    return get_schedule(tx, name)


def unpause_schedule(tx: Transaction, name: str, *, actor: str) -> Schedule:
    """It goes on with its next tick; those of the pause were not missed, they were paused."""
    plan = get_schedule(tx, name).plan
    next_at = Cron(plan.cron, plan.timezone).after(now(tx))
    if tx.one(SQL.unpause_schedule, name=name, next_at=next_at) is not None:
        tell(tx, actor=actor, verb="schedule.unpaused", subject=name)
    return get_schedule(tx, name)


def remove_schedule(tx: Transaction, name: str, *, actor: str) -> None:
    if tx.one(SQL.remove_schedule, name=name) is None:
        raise NotFound(say("there is no schedule {name!r}", name=name))
    tell(tx, actor=actor, verb="schedule.removed", subject=name)


def run_schedule(tx: Transaction, name: str, *, actor: str) -> Job:
    """One run now, beside its ticks; also of one that is paused."""
    plan = get_schedule(tx, name).plan
    tell(tx, actor=actor, verb="schedule.run", subject=name)
    return cast("Job", _submit_tick(tx, plan, now(tx)))


def tick_schedules(tx: Transaction) -> int:
    """Submit what is due, every tick once; how many jobs that made."""
    at, made = now(tx), 0
    for *columns, next_at in tx.all(SQL.due_schedules, limit=AT_A_TIME):
        plan, was = _plan(columns), moment(next_at)
        try:
            made += _tick(tx, plan, was, at)
        except BadInput as error:
            # Written down by a retoma that knows more zones than this one: the others go on.
            log.error("schedule.unreadable", schedule=plan.name, error=str(error))  # noqa: TRY400
    return made


def seconds_to_next_tick(tx: Transaction) -> float | None:
    [(at, now)] = tx.all(SQL.next_tick)
    return seconds_until(at, now)


def _tick(tx: Transaction, plan: Plan, was: datetime, now: datetime) -> int:
    cron = Cron(plan.cron, plan.timezone)
    moved = tx.one(
        SQL.advance_schedule,
        name=plan.name,
        was=was,
        cron=plan.cron,
        timezone=plan.timezone,
        next_at=cron.after(now),
    )
    if moved is None:
        return 0
    ticks = _to_do(tx, plan, cron, was, now)
    return sum(_submit_tick(tx, plan, at) is not None for at in ticks)


def _to_do(
    tx: Transaction, plan: Plan, cron: Cron, was: datetime, now: datetime
) -> list[datetime]:
    """The ticks that are in time, each; before them, of all that were missed, one or none."""
    late = now - LATE
    if was > late:
        return [was, *cron.between(was, now)]
    tell(tx, actor="schedule", verb="schedule.missed", subject=f"{plan.name} {plan.missed}")
    last_missed = max(cron.until(late), was)
    once = [last_missed] if plan.missed is Missed.ONE else []
    return [*once, *cron.between(last_missed, now)]


def _submit_tick(tx: Transaction, plan: Plan, at: datetime) -> Job | None:
    """The job of this tick; None where the tick has been submitted already."""
    if tx.one(SQL.keep_tick, schedule=plan.name, at=at) is None:
        return None
    job = submit_job(
        tx, plan.submission(at), NewJob(plan.payload, limits=json.loads(plan.limits))
    )
    tx.run(SQL.name_tick, schedule=plan.name, at=at, job=job.id)
    return job


def _columns(plan: Plan) -> dict[str, str | int]:
    return {name: getattr(plan, name) for name in Plan.__dataclass_fields__}


def _plan(row: Sequence[object]) -> Plan:
    columns: dict[str, Any] = dict(zip(Plan.__dataclass_fields__, row, strict=True))
    return Plan(**columns | {"missed": Missed(columns["missed"])})


def _schedule(row: Row) -> Schedule:
    *columns, paused_at, next_at, last_at, last_job = row
    return Schedule(
        plan=_plan(columns),
        paused_at=moment(paused_at),
        next_at=moment(next_at),
        last_at=moment(last_at),
        last_job=last_job,
    )
