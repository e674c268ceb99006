"""Schedules: what is submitted by the clock, and how to hold it."""

from dataclasses import dataclass
from datetime import datetime

from retoma.engine.rules.job import Job
from retoma.engine.store import Schedule
from retoma.library import Retoma

__all__ = ["Schedule", "ScheduleSeen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSeen:
    """One schedule as it stands."""

    name: str
    kind: str
    cron: str
    timezone: str
    missed: str
    paused_at: datetime | None
    next_at: datetime
    last_at: datetime | None
    last_job: int | None


async def list_schedules(app: Retoma) -> list[ScheduleSeen]:
    """Every schedule: when it ticks, its last job, whether it is paused."""
    return [_seen(each) for each in await app.schedules.list()]


async def pause_schedule(app: Retoma, schedule: str, *, actor: str) -> ScheduleSeen:
    """It ticks no more until it is unpaused."""
    return _seen(await app.schedules.pause(schedule, actor=actor))


async def unpause_schedule(app: Retoma, schedule: str, *, actor: str) -> ScheduleSeen:
    """It goes on with its next tick; those of the pause are not made up for."""
    return _seen(await app.schedules.unpause(schedule, actor=actor))


async def run_schedule(app: Retoma, schedule: str, *, actor: str) -> Job:
    """One run now, beside its ticks."""
    return await app.schedules.run(schedule, actor=actor)


def _seen(schedule: Schedule) -> ScheduleSeen:
    plan = schedule.plan
    return ScheduleSeen(
        name=plan.name,
        kind=plan.kind,
        cron=plan.cron,
        timezone=plan.timezone,
        missed=plan.missed,
        paused_at=schedule.paused_at,
        next_at=schedule.next_at,
        last_at=schedule.last_at,
        last_job=schedule.last_job,
    )
