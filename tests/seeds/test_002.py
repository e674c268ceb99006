"""What the document of embeddings says and no other test shows: the columns of a lock, and its numbers."""

from datetime import timedelta
from typing import Any

import pytest

from retoma import db
from retoma.apps.embeddings.face import QueueClaim
from retoma.db import adhoc
from retoma.db.migrations import ENGINE, Room
from retoma.settings import Settings
from tests.databases import Rooms
from tests.seeds.table import read_table

LOCK = ("lockedBy", "lockedAt", "lockExpiresAt", "lastHeartbeatAt", "processingStartedAt")


@pytest.fixture
def rooms() -> Rooms:
    return (ENGINE, Room("embeddings", "retoma.apps.embeddings.migrations"))


async def test_the_lock_is_seen_in_the_documents_table_while_a_job_is_held(
    database_url, test_clock
):
    """By SQL, under the document's names: there while a worker holds the job, and gone when it has ended."""
    test_clock.jump(0)
    queue, database = QueueClaim(database_url), db.open(database_url)
    names = ", ".join(f'"{name}"' for name in (*LOCK, "processedAt"))

    async def shown() -> dict[str, Any]:
        asked = adhoc(f"SELECT status, attempts, {names} FROM queue_jobs")  # noqa: S608 — names of ours
        [row] = await database.read(lambda tx: tx.all(asked))
        return dict(zip(("status", "attempts", *LOCK, "processedAt"), row, strict=True))

    try:
        made = queue.create_embedding_job("livros", "a.txt", "um texto")
        before = await shown()
        [job] = queue.claim_pending_jobs("worker-1")
        held = await shown()
        test_clock.jump(30)
        queue.update_heartbeat(job)
        beaten = await shown()
        queue.finalize_job(job)
        after = await shown()
    finally:
        queue.close()
        database.close()

    assert made.id == job.id
    assert {"status": "pending", "attempts": 0} == _there(before)
    assert ("processing", 1, "worker-1") == (
        *(held["status"], held["attempts"], held["lockedBy"]),
    )
    assert {*LOCK} <= _there(held).keys()
    for name in ("lockExpiresAt", "lastHeartbeatAt"):
        assert held[name] < beaten[name], name
    for name in ("lockedAt", "processingStartedAt"):
        assert held[name] == beaten[name], name
    assert {"status", "attempts", "processingStartedAt", "processedAt"} == _there(after).keys()
    assert ("completed", 1) == (after["status"], after["attempts"])


def _there(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if value is not None}


def test_the_documents_numbers_are_those_of_a_runner_that_is_told_nothing(monkeypatch):
    """Its two lines for `.env`, taken from its own text, change nothing; other numbers do."""
    [told] = [each.quote for each in read_table("002").rows if each.first == 288]
    given = dict(line.split("#")[0].strip().split("=") for line in told.splitlines())
    for name in (*given, "RETOMA_LEASE", "RETOMA_BEAT"):
        monkeypatch.delenv(name, raising=False)
    plain = Settings()
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    as_told = Settings()
    monkeypatch.setenv("JOB_LOCK_TTL_MS", "90000")
    monkeypatch.setenv("JOB_HEARTBEAT_INTERVAL_MS", "5000")
    other = Settings()

    assert {"JOB_LOCK_TTL_MS": "60000", "JOB_HEARTBEAT_INTERVAL_MS": "10000"} == given
    assert (timedelta(seconds=60), timedelta(seconds=10)) == _times(plain) == _times(as_told)
    assert (timedelta(seconds=90), timedelta(seconds=5)) == _times(other)


def _times(settings: Settings) -> tuple[timedelta, timedelta]:
    return timedelta(seconds=settings.lease), timedelta(seconds=settings.beat)
