"""Generate missions by a rule, at once or at every tick of a schedule."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from retoma.apps.ads.generator import generate
from retoma.apps.ads.service.connections import read
from retoma.apps.ads.service.inputs import Generate, Recur
from retoma.apps.ads.store.onboarding import unknown_missions
from retoma.apps.ads.store.recurrence import RECURRENCE, add_generated
from retoma.codec import decode, encode
from retoma.engine import store as engine
from retoma.engine.ops.schedules import plan
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Schedule
from retoma.library import Retoma
from retoma.words import say

SOME_DAY: Final = date(2000, 1, 1)
PREFIX: Final = "ads "  # of the names of the schedules


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Which missions were added, or in a dry run how many would be."""

    dry_run: bool
    wanted: int
    new: int
    ids: list[str]

    @property
    def duplicate(self) -> int:
        return self.wanted - self.new


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A schedule that adds missions."""

    name: str
    cron: str
    timezone: str
    languages: list[str]
    media_types: list[str]
    days: int
    back: int
    queue: bool
    paused: bool
    next_at: datetime
    last_at: datetime | None


async def generate_missions(retoma: Retoma, rule: Generate, *, actor: str) -> Generated:
    """Add the missions of a rule that are not there yet; in a dry run only count them."""
    days = (rule.date_start, rule.date_end)
    if rule.dry_run:
        wanted = generate(*days, rule.pattern)
        new = await read(retoma, lambda tx: unknown_missions(tx, wanted))
        return Generated(dry_run=True, wanted=len(wanted), new=len(new), ids=[])
    total, ids = await retoma.write(
        lambda tx: add_generated(tx, *days, rule.pattern, queue=rule.queue, actor=actor)
    )
    return Generated(dry_run=False, wanted=total, new=len(ids), ids=ids)


async def list_recurrences(retoma: Retoma) -> list[Recurrence]:
    return [
        _recurrence(each)
        for each in await retoma.schedules.list()
        if each.plan.kind == RECURRENCE
    ]


async def add_recurrence(retoma: Retoma, rule: Recur, *, actor: str) -> Recurrence:
    """Add a schedule; refuse a name that is taken, and a rule of too many missions at one tick."""
    generate(SOME_DAY, SOME_DAY + timedelta(days=rule.back - 1), rule.pattern)
    payload = {**rule.model_dump(mode="json"), "timezone": retoma.timezone}
    made = plan(
        PREFIX + rule.name,
        retoma.kinds.of(RECURRENCE),
        cron=rule.cron,
        payload=encode(payload),
        timezone=retoma.timezone,
        missed="one",
    )

    def declare(tx: Transaction) -> Schedule:
        if engine.list_schedules(tx, made.name):
            raise IllegalMove(say("there is already a schedule {name}", name=rule.name))
        engine.declare_schedules(tx, [made], actor=actor)
        [schedule] = engine.list_schedules(tx, made.name)
        return schedule

    return _recurrence(await retoma.write(declare))


async def remove_recurrence(retoma: Retoma, name: str, *, actor: str) -> None:
    """Remove a schedule; the missions that it added stay."""
    if name not in [each.name for each in await list_recurrences(retoma)]:
        raise NotFound(say("there is no schedule {name!r}", name=name))
    await retoma.schedules.remove(PREFIX + name, actor=actor)


def _recurrence(schedule: Schedule) -> Recurrence:
    payload: dict[str, Any] = decode(schedule.plan.payload)
    names = ("name", "languages", "media_types", "days", "back", "queue")
    return Recurrence(
        **{name: payload[name] for name in names},
        cron=schedule.plan.cron,
        timezone=schedule.plan.timezone,
        paused=schedule.paused_at is not None,
        next_at=schedule.next_at,
        last_at=schedule.last_at,
    )
