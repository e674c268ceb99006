"""What the document of quotes says and no other test shows: its columns, its ten minutes, its tasks, its endpoints."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from retoma.apps.quotes import APP
from retoma.apps.quotes.face import (
    CheckpointManager,
    ProcessingCheckpoint,
    QuoteRequest,
    QuoteStatus,
    SessionMaker,
)
from retoma.db.migrations import ENGINE, Room
from tests.apps.people import people
from tests.apps.quotes.aids import world
from tests.apps.quotes.quote_tasks import TEXT
from tests.apps.quotes.test_api import HELD, left_by_a_dead_runner
from tests.databases import Rooms
from tests.engine.aids import change
from tests.seeds.table import read_table

FIELDS = (
    "processing_checkpoint, last_heartbeat, worker_id, resume_data, started_at, completed_at"
)
NAMES = FIELDS.split(", ")


@pytest.fixture
def rooms() -> Rooms:
    return (ENGINE, Room("quotes", "retoma.apps.quotes.migrations"))


def test_the_example_that_is_run_is_the_documents_to_the_letter():
    """`tests/apps/quotes` runs it from this very text."""
    [example] = [each.quote for each in read_table("000").rows if each.first == 218]

    assert example.strip() == TEXT.read_text().strip()


async def test_the_fields_of_a_checkpoint_are_columns_of_the_documents_table(
    database_url, test_clock, tmp_path
):
    """§1: before, during and after the work, by SQL, under the names of the document."""
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        sessions = SessionMaker(database_url)

        async def fields() -> dict[str, Any]:
            asked = f"SELECT status, {FIELDS} FROM quote_requests WHERE id = :id"  # noqa: S608
            [row] = await there.rows(asked, id=number)
            return dict(zip(("status", *NAMES), row, strict=True))

        before = await fields()
        with sessions() as db:
            quote = db.query(QuoteRequest).get(number)
            assert quote is not None
            manager = CheckpointManager(db, worker_id="worker-1")
            manager.start_processing(quote)
            begun = await fields()
            test_clock.jump(100)
            manager.save_checkpoint(
                quote,
                ProcessingCheckpoint.AI_ANALYSIS_DONE,
                30,
                {"tested_products": [{"url": "a"}]},
            )
            saved = await fields()
            manager.complete_processing(quote, QuoteStatus.DONE)
        ended = await fields()
        sessions.close()

        assert {"status": "PENDING"} == {k: v for k, v in before.items() if v is not None}
        assert ("PROCESSING", "INIT", "worker-1", None) == (
            *(begun["status"], begun["processing_checkpoint"], begun["worker_id"]),
            begun["completed_at"],
        )
        beats = [at(each["last_heartbeat"]) for each in (begun, saved)]
        assert beats[1] - beats[0] >= timedelta(seconds=100), "a checkpoint is a sign of life"
        assert ("AI_ANALYSIS_DONE", begun["started_at"]) == (
            *(saved["processing_checkpoint"], saved["started_at"]),
        )
        assert "tested_products" in str(saved["resume_data"])
        assert ("DONE", "COMPLETED", None) == (
            *(ended["status"], ended["processing_checkpoint"], ended["worker_id"]),
        )
        assert at(ended["completed_at"]) >= beats[1]


def at(told: str | datetime) -> datetime:
    """A time as the table shows it; SQLite has no type for it."""
    return datetime.fromisoformat(told) if isinstance(told, str) else told


async def test_a_quote_is_stuck_after_ten_minutes_and_not_before(
    database_url, tmp_path, test_clock
):
    """§3: PROCESSING, and nothing heard of it for ten minutes; one whose runner lives is listed, and left alone."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        quote = await left_by_a_dead_runner(there, 2)
        database = await there.app.database()
        await change(database, "UPDATE runners SET lease_until = clock_in(7200)")
        moved = "progress_at = (SELECT clock())"
        await change(database, f"{HELD}, {moved} WHERE kind = 'quotes.quote'")

        async def stuck() -> list[int]:
            told = (await who["viewer"].get("/api/system/stuck-quotes")).json()
            stats = (await who["viewer"].get("/api/system/processing-stats")).json()
            assert stats["stuck_count"] == len(told)
            return [each["id"] for each in told]

        test_clock.jump(590)
        assert [] == await stuck()
        test_clock.jump(11)
        assert [quote] == await stuck()
        recovered = (await who["operator"].post("/api/system/recover-stuck")).json()
        assert {"recovered": 0, "stuck_count": 1} == recovered
        assert "PROCESSING" == (await there.seen(quote))["status"]


async def test_the_two_tasks_are_scheduled_and_run_without_a_beat(database_url, tmp_path):
    """§4: every five minutes, daily at 04:00, by runners alone; each of them is a job by the document's name."""
    async with world(database_url, tmp_path) as there:
        await there.app.jobs()  # whoever opens a database says what is planned
        planned = {each.name: each for each in await there.app.schedules.list()}
        assert {
            "recover_stuck_quotes": "*/5 * * * *",
            "cleanup_old_processing": "0 4 * * *",
        } == {name: each.plan.cron for name, each in planned.items()}
        for name in planned:
            await there.app.submit(name)
        await there.drained()
        ends = await there.rows(
            "SELECT kind, state FROM jobs WHERE kind IN ('recover_stuck_quotes',"
            " 'cleanup_old_processing') ORDER BY kind"
        )
        assert [("cleanup_old_processing", "done"), ("recover_stuck_quotes", "done")] == [
            tuple(each) for each in ends
        ]


async def test_each_endpoint_of_the_document_answers(database_url, tmp_path):
    """`GET` to whoever looks, `POST` to who operates; under the paths to the letter."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        quote = await left_by_a_dead_runner(there, 4)
        added = await there.lote(range(2, 4))
        assert added.lote is not None
        await (await there.app.batches.get(added.lote)).pause()
        asked = {
            "/api/system/health": {"status"},
            "/api/system/processing-stats": {
                "total_processing",
                "stuck_count",
                "by_checkpoint",
            },
            "/api/system/batch-status/{id}": {"total", "by_status", "by_checkpoint", "errors"},
        }
        for path, keys in asked.items():
            answer = await who["viewer"].get(path.format(id=added.lote))
            assert 200 == answer.status_code, (path, answer.text)
            assert keys <= answer.json().keys()
        [stuck] = (await who["viewer"].get("/api/system/stuck-quotes")).json()
        assert quote == stuck["id"]

        done = {
            "/api/system/recover-quote/{id}": quote,
            "/api/system/resume-batch/{id}": added.lote,
            "/api/system/recover-stuck": None,
            "/api/system/cleanup-old": None,
        }
        for path, number in done.items():
            assert 403 == (await who["viewer"].post(path.format(id=number))).status_code
        answers = {
            path: await who["operator"].post(path.format(id=number))
            for path, number in done.items()
        }
        assert {200} == {each.status_code for each in answers.values()}, {
            path: each.text for path, each in answers.items()
        }
        assert [] == (await who["viewer"].get("/api/system/stuck-quotes")).json()
        shown = answers["/api/system/recover-quote/{id}"].json()
        assert (quote, "PROCESSING", None) == (
            *(shown["id"], shown["status"], shown["worker_id"]),
        )
        await there.drained()
        assert "DONE" == (await there.seen(quote))["status"]
