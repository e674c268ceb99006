"""Schedules: declared in code, kept in the database, ticked by whoever has the duty."""

from typing import Any, cast

from retoma.codec import encode
from retoma.engine import store
from retoma.engine.handlers.kinds import Kind
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import NEVER, Fence
from retoma.engine.rules.cron import Cron
from retoma.engine.rules.errors import BadInput
from retoma.engine.store import Missed, Plan
from retoma.words import say

TIMEZONE = "America/Sao_Paulo"
NAME_LENGTH = 100
UNREADABLE = 5.0  # seconds until what cannot be read here is looked at again

log = get_logger("retoma.schedule")


def plan(
    name: str, kind: Kind, *, cron: str, payload: str, timezone: str, missed: Missed | str
) -> Plan:
    """A schedule that makes sense; else BadInput, and nothing was changed."""
    called = cast("object", name)
    if (
        not isinstance(called, str)
        or not 0 < len(called) <= NAME_LENGTH
        or not called.isprintable()
    ):
        raise BadInput(
            say(
                "a schedule has a printable name of 1 to {most} characters: {name!r}",
                most=NAME_LENGTH,
                name=name,
            )
        )
    try:
        Cron(cron, timezone)
    except BadInput as error:
        raise BadInput(say("schedule {name}: {error}", name=name, error=error)) from error
    return Plan(
        name=name,
        kind=kind.name,
        version=kind.version,
        queue=kind.queue,
        priority=kind.priority,
        cron=" ".join(cron.split()),
        timezone=timezone,
        payload=payload,
        missed=_missed(name, missed),
        limits=encode(kind.keys_on(payload)),
    )


async def tick(fence: Fence) -> float:
    """Submit what is due; the seconds until the next tick."""
    made = await fence.write(store.tick_schedules, verb="schedule")
    if made:
        log.info("schedule.ticked", jobs=made)
    left = await fence.read(store.seconds_to_next_tick)
    if left is None:
        return NEVER
    return UNREADABLE if left == 0 and not made else left


def _missed(name: str, missed: Any) -> Missed:
    try:
        return Missed(missed)
    except ValueError:
        raise BadInput(
            say(
                "schedule {name}: missed ticks are run once ('one') or not at all"
                " ('skip'), not {missed!r}",
                name=name,
                missed=missed,
            )
        ) from None
