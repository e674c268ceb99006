"""Missions by the clock: at each tick of a schedule those of the days before it, each once."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from retoma.apps.ads.generator import Pattern, generate
from retoma.apps.ads.model import MediaType
from retoma.apps.ads.store.missions import add_missions, queue_missions
from retoma.apps.ads.store.onboarding import unknown_missions
from retoma.apps.ads.store.rows import SQL
from retoma.engine.run.transaction import Transaction

RECURRENCE: Final = "ads.recurrence"


def add_generated(
    tx: Transaction, first: date, last: date, pattern: Pattern, *, queue: bool, actor: str
) -> tuple[int, list[str]]:
    """Those of a rule that are not there yet; how many there are in all, and which are new."""
    wanted = generate(first, last, pattern)
    new = unknown_missions(tx, wanted)
    ids = add_missions(tx, new, actor=actor) if new else []
    if ids and queue:
        queue_missions(tx, ids, actor=actor)
    return len(wanted), ids


def recur(tx: Transaction, job: int, wanted: Mapping[str, Any]) -> list[str]:
    """What a tick asks for. By the tick's own day: who comes late brings the same days home."""
    at = tx.one(SQL.tick_of, into=datetime, job=job)
    if at is None:
        return []
    first, last = days_before(at, wanted["timezone"], wanted["back"])
    pattern = Pattern(
        languages=tuple(wanted["languages"]),
        media_types=tuple(MediaType(each) for each in wanted["media_types"]),
        days=wanted["days"],
    )
    actor = f"schedule {wanted['name']}"
    return add_generated(tx, first, last, pattern, queue=wanted["queue"], actor=actor)[1]


def days_before(at: datetime, timezone: str, back: int) -> tuple[date, date]:
    """The so many days that ended before the day of an instant: one is yesterday."""
    today = at.astimezone(ZoneInfo(timezone)).date()
    return today - timedelta(days=back), today - timedelta(days=1)
