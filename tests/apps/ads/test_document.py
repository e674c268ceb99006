"""The document's own tables and its own queries, on rows that a mission has left behind."""

import asyncio
from typing import Any

import pytest

from retoma.apps.ads import store
from tests.apps.ads.aids import World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.engine.aids import eventually

# §3.2 to §3.6, with current_proxy_id of §3.1.
COLUMNS = {
    "missions": "id date_start date_end media_type languages status checkpoint worker_id"
    " worker_job_id worker_data_url proxy_used writer_job_id ads_count error_code error_message"
    " retry_count created_at queued_at started_at finished_at",
    "workers": "id name url api_key storage_domain status session_count current_mission_id"
    " current_proxy_id active last_test_at last_test_ok created_at updated_at",
    "proxies": "id name host port username password active in_use_by_worker_id fail_count"
    " last_used_at last_test_at last_test_ok created_at",
    "writers": "id name url api_key active last_test_at last_test_ok created_at updated_at",
    "mission_logs": "id mission_id event details timestamp",
}
INDICES = (
    *("idx_missions_status", "idx_missions_checkpoint", "idx_missions_dates"),
    *("idx_missions_worker", "idx_missions_queued", "idx_workers_active"),
    *("idx_workers_status", "idx_mission_logs_mission", "idx_mission_logs_event"),
    "idx_mission_logs_timestamp",
)

# §6.5 to §6.8, as written.
FREE_WORKERS = """
SELECT
  w.*,
  p.name as current_proxy_name
FROM workers w
LEFT JOIN proxies p ON p.in_use_by_worker_id = w.id
WHERE w.active = true
  AND w.status IN ('idle', 'ready')
  AND w.current_mission_id IS NULL
"""
AT_THE_WRITER = """
SELECT *
FROM missions
WHERE status = 'running'
  AND checkpoint = 'armazenamento'
"""
LEFT_TO_DO = """
SELECT
  COUNT(*) FILTER (WHERE status = 'queued') as queued_count,
  COUNT(*) FILTER (WHERE status = 'running') as running_count
FROM missions
"""
FOR_THE_LOG = """
SELECT
  m.*,
  w.name as worker_name,
  w.url as worker_url,
  m.proxy_used as proxy_name
FROM missions m
LEFT JOIN workers w ON m.worker_id = w.id
WHERE m.id = :mission_id
"""
# §10.3; SQLite says the same of times and JSON in words of its own.
TIMELINE = """
SELECT
  ml.timestamp,
  ml.event,
  ml.details
FROM mission_logs ml
WHERE ml.mission_id = :mission_id
ORDER BY ml.timestamp ASC
"""
FAILURES = """
SELECT
  m.id,
  m.status,
  m.error_code,
  m.error_message,
  m.retry_count,
  ml.timestamp as failed_at,
  ml.details
FROM missions m
JOIN mission_logs ml ON ml.mission_id = m.id
WHERE ml.event = 'mission_failed'
  AND ml.timestamp > now() - interval '24 hours'
ORDER BY ml.timestamp DESC
"""
BY_WORKER = """
SELECT
  w.name as worker_name,
  COUNT(*) FILTER (WHERE ml.event = 'scrape_completed') as completed_count,
  COUNT(*) FILTER (WHERE ml.event = 'scrape_failed') as failed_count,
  AVG((ml.details->>'duration_ms')::int)
    FILTER (WHERE ml.event = 'scrape_completed') as avg_duration_ms
FROM workers w
JOIN missions m ON m.worker_id = w.id
JOIN mission_logs ml ON ml.mission_id = m.id
WHERE ml.event IN ('scrape_completed', 'scrape_failed')
  AND ml.timestamp > now() - interval '7 days'
GROUP BY w.id, w.name
"""
BAD_PROXIES = """
SELECT
  p.name,
  p.host,
  p.fail_count,
  p.active,
  COUNT(*) FILTER (WHERE ml.event = 'session_failed') as session_failures,
  COUNT(*) FILTER (WHERE ml.event = 'proxy_rotated') as rotations
FROM proxies p
LEFT JOIN mission_logs ml ON ml.details->>'proxy_name' = p.name
  AND ml.event IN ('session_failed', 'proxy_rotated')
  AND ml.timestamp > now() - interval '7 days'
GROUP BY p.id, p.name, p.host, p.fail_count, p.active
ORDER BY p.fail_count DESC
"""


def spoken(sql: str, url: str) -> str:
    """In SQLite's dialect, on SQLite."""
    if not url.startswith("sqlite"):
        return sql
    for hours in ("24 hours", "7 days"):
        sql = sql.replace(f"now() - interval '{hours}'", f"datetime('now', '-{hours}')")
    return sql.replace("(ml.details->>'duration_ms')::int", "(ml.details->>'duration_ms')")


async def after_three_missions(house: World) -> list[str]:
    """The first done, the second failed, the third still waiting."""
    worker = house.workers["WRK-000001"]
    missions = await house.add(3)
    await house.queue(missions[0])
    await house.start()
    await house.drain()
    worker.scrape = ["failed"]
    await house.queue(missions[1])
    await house.drain()
    await house.stop()
    await house.queue(missions[2])
    return missions


@pytest.mark.parametrize("view", COLUMNS)
async def test_every_table_has_the_columns_of_the_document(database_url, tmp_path, view):
    async with world(database_url, tmp_path) as house:
        assert await house.columns(view) == COLUMNS[view].split()


async def test_the_indices_of_the_document_are_there(database_url, tmp_path):
    async with world(database_url, tmp_path) as house:
        assert set(INDICES) <= await house.indices()


async def test_the_documents_queries_tell_what_happened(database_url, tmp_path):
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as house:
        done, failed, waiting = await after_three_missions(house)

        async def ask(sql: str, **params: Any) -> Any:
            return await house.rows(spoken(sql, database_url), **params)

        [free] = await ask(FREE_WORKERS)
        assert free[0] == "WRK-000001"
        assert await ask(AT_THE_WRITER) == []
        assert await ask(LEFT_TO_DO) == [(1, 0)]
        [shown] = await ask(FOR_THE_LOG, mission_id=done)
        assert (shown[0], shown[-3], shown[-1]) == (done, "W1", "proxy-br-1")
        assert [event for _, event, _ in await ask(TIMELINE, mission_id=done)][-1] == (
            "mission_completed"
        )
        [gone] = await ask(FAILURES)
        assert gone[:3] == (failed, "failed", "ERROR203")
        assert gone[4] == 2
        [(name, completed, broken, took)] = await ask(BY_WORKER)
        assert (name, completed, broken) == ("W1", 1, 3)
        assert took is not None
        [(proxy, _, fails, active, *_)] = await ask(BAD_PROXIES)
        assert (proxy, fails, bool(active)) == ("proxy-br-1", 0, True)
        assert waiting


async def test_no_column_of_the_document_is_nothing_for_ever(database_url, tmp_path):
    """Looked at while a mission is at work, and after one was done, one has failed, all were tested."""
    worker = FakeWorker()
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        held: dict[str, set[str]] = {view: set() for view in COLUMNS}

        async def look() -> None:
            for view, names in COLUMNS.items():
                for row in await house.rows(f"SELECT * FROM {view}"):  # noqa: S608
                    told = zip(names.split(), row, strict=True)
                    held[view] |= {name for name, value in told if value is not None}

        await after_three_missions(house)
        await house.app.knobs.set("ads.proxy_test_url", "http://127.0.0.1:1/", actor="test")
        await house.app.write(lambda tx: store.ask_tests(tx, None, actor="test"))
        await house.drain()
        await look()
        worker.scrape = [{"status": "running"}]
        await house.app.knobs.set("ads.timeout_job", 86_400, actor="test")
        await house.start()
        working = asyncio.create_task(house.drain())
        await eventually(lambda: house.rows("SELECT 1 FROM workers WHERE status = 'scraping'"))
        await look()
        worker.scrape = ["completed"]
        await working
        missing = {view: set(names.split()) - held[view] for view, names in COLUMNS.items()}
        assert missing == {view: set() for view in COLUMNS}


# What two indices of the document are for: a proxy's state is a row of a pool, who uses it a session.
EQUIVALENT = {
    "pool_items_free": "SELECT id FROM pool_items WHERE pool = 'ads.proxies' AND job IS NULL"
    " AND state = 'on' ORDER BY used_at LIMIT 1",  # idx_proxies_available
    "ads_sessions_proxy": "SELECT worker FROM ads_sessions WHERE proxy = 'PRX-000001'"
    " AND ended_at IS NULL AND proxy IS NOT NULL",  # idx_proxies_in_use
}


@pytest.mark.parametrize("index", EQUIVALENT)
async def test_what_two_indices_of_the_document_are_for_is_found_by_ours(
    database_url, tmp_path, index
):
    async with world(database_url, tmp_path) as house:
        assert index in await house.indices()
        if database_url.startswith(
            "sqlite"
        ):  # PostgreSQL reads a table of one row from end to end
            assert index in str(await house.rows(f"EXPLAIN QUERY PLAN {EQUIVALENT[index]}"))
