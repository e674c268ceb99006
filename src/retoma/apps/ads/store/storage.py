"""What the storing of a mission's ads writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from retoma import db
from retoma.apps.ads.model import Event
from retoma.apps.ads.store.failures import in_portuguese, tell_of_failure
from retoma.apps.ads.store.missions import get_mission, look_up_mission
from retoma.apps.ads.store.rows import SQL, STORAGE, lasted, milliseconds, tell
from retoma.codec import encode
from retoma.db import Json
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import breaker
from retoma.words import say

AWAY_REST: Final = (
    30.0  # seconds between two looks whether a writer that was away is there again
)
MOST_ITEMS: Final = 200  # refused ads that are kept of a mission


@dataclass(frozen=True, slots=True)
class StorageSeen:
    """What the ads of a mission are stored with."""

    url: str
    writer: str | None  # which has them, or is about to
    parks: int
    wanted: bool
    resends: int


def look_at_storage(tx: db.Transaction, mission: str) -> StorageSeen:
    found = tx.one(SQL.look_at_storage, into=StorageSeen, mission=mission)
    if found is None or found.url is None:
        raise NotFound(say("there are no ads of {mission}", mission=mission))
    return found


def choose_writer(tx: db.Transaction) -> tuple[str, bool] | None:
    """The one that is there, healthy and has least to do (§3.1.1), and whether it was away."""
    row = tx.one(SQL.choose_writer)
    if row is None:
        return None
    writer, was_away = row
    return str(writer), bool(was_away)


def give_writer(tx: Transaction, mission: str, writer: str) -> str | None:
    """From here on the mission is this writer's, until what it was sent has failed."""
    given = tx.one(SQL.give_writer, mission=mission, writer=writer)
    return None if given is None else writer


def breaker_of(writer: str) -> str:
    return f"ads.writer.{writer}"


def writer_away(tx: Transaction, writer: str, reason: str) -> None:
    """Nobody sends to it any more until its `/health` answers."""
    name = breaker_of(writer)
    breaker.put_breaker(tx, name, 1, AWAY_REST, actor=STORAGE)
    breaker.open_by_hand(tx, name, reason[:200], actor=STORAGE)


def writer_silent(tx: Transaction, mission: str, code: str, message: str) -> None:
    """Its writer does not answer: told where that is new."""
    found = look_up_mission(tx, mission)
    if found is not None and found.error_code != code:
        told = {"writer_job_id": found.writer_job_id, "error": in_portuguese(message)}
        tell_of_failure(tx, mission, code, message, Event.WRITER_FAILED, told)


def write_started(tx: Transaction, mission: str, job_id: str, url: str) -> None:
    if tx.one(SQL.name_write, mission=mission, job_id=job_id) is None:
        return
    told = {"writer_job_id": job_id, "data_url": url}
    tell(tx, Event.WRITER_STARTED, told, mission=mission)


def leave_writer(tx: Transaction, mission: str) -> None:
    """What it was sent is over, or never was: the next try may go to another."""
    tx.run(SQL.give_writer, mission=mission, writer=None)


def writer_job(tx: db.Transaction, mission: str) -> str | None:
    return tx.one(SQL.writer_job, into=str, mission=mission)


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer made of the ads of a mission."""

    job_id: str
    total: int
    success: int
    failed: int
    items: Sequence[Any] = ()


def written(tx: Transaction, mission: str, job: int, done: Written) -> str:
    """The mission is done (§3.3), unless it was canceled meanwhile; its status."""
    took = lasted(tx, mission, Event.WRITER_STARTED)
    success, lost = done.success, done.failed
    told = {"writer_job_id": done.job_id, "success_count": success, "failed_count": lost}
    tell(tx, Event.WRITER_COMPLETED, {**told, "duration_ms": took}, mission=mission)
    row = tx.one(SQL.finish_mission, mission=mission, job=job, success=success, failed=lost)
    if row is None:
        return "gone"
    status, ads, queued, finished = row
    if status == "completed":
        ended = {"total_duration_ms": milliseconds(queued, finished), "ads_count": ads}
        ended |= {"success_count": success, "failed_count": lost}
        tell(tx, Event.MISSION_COMPLETED, ended, mission=mission)
    keep_failed_items(tx, mission, done.items)
    return str(status)


def keep_counts(tx: Transaction, mission: str, job: int, done: Written) -> None:
    """Of ads that a person has to look at: the mission goes on with them later."""
    tx.run(SQL.keep_counts, mission=mission, job=job, success=done.success, failed=done.failed)
    keep_failed_items(tx, mission, done.items)


def keep_failed_items(tx: Transaction, mission: str, items: Sequence[Any]) -> None:
    """Instead of those of the time before."""
    tx.run(SQL.forget_failed_items, mission=mission)
    rows = [_failed_item(place, each) for place, each in enumerate(items[:MOST_ITEMS])]
    if rows:
        tx.run(SQL.keep_failed_items, mission=mission, rows=encode(rows))


def _failed_item(place: int, item: Any) -> dict[str, Any]:
    told = item if isinstance(item, dict) else {"data": item}
    return {"place": place, "data": told.get("data"), "error": str(told.get("error", ""))[:500]}


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An ad that a writer refused, and why."""

    index: int
    data: Json
    error: str


def list_failed_items(tx: db.Transaction, mission: str, n: int) -> list[FailedItem]:
    """The first of the mission's ads that a writer refused, in their order."""
    return tx.all(SQL.list_failed_items, into=FailedItem, mission=mission, after=-1, n=n)


def resend_failed(tx: Transaction, mission: str, *, actor: str) -> None:
    """All its ads go to a writer once more: those it has are only written again."""
    before = look_up_mission(tx, mission)
    row = tx.one(SQL.resend_mission, mission=mission)
    if row is None:
        status = get_mission(tx, mission).status
        raise IllegalMove(
            say(
                "{mission} is {status}: there are no refused ads to send again",
                mission=mission,
                status=status,
            )
        )
    resends, generation = row
    key = f"{mission}/{generation}/again/{resends}"
    storage = tx.submit(STORAGE, mission, key=key, actor=actor)
    tx.run(SQL.set_storage, mission=mission, job=storage.id)
    told = {"attempt": resends, "error_code": before and before.error_code, "phase": "writer"}
    tell(tx, Event.RETRY_TRIGGERED, told, mission=mission)
    tx.tell("ads.resent", mission, actor=actor)
