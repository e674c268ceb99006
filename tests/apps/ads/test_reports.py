"""The four audit reports (§10.3): their values, on a history that is known line by line."""

from datetime import UTC, datetime, timedelta
from typing import Any

from retoma.apps.ads.pages.reports import BARS, bars, stretches
from retoma.apps.ads.store import reports
from retoma.apps.ads.store.reports import Failure, Happened
from tests.apps.ads.aids import World
from tests.apps.ads.test_document import BAD_PROXIES, BY_WORKER, FAILURES, spoken
from tests.apps.ads.test_pages import site_of, text_of
from tests.apps.people import EN, PT
from tests.web.aids import code_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = 3600.0
FORMULA = "=HYPERLINK(evil)"
# Each: seconds ago, mission or session, event, details.
HISTORY: tuple[tuple[float, str | int, str, str], ...] = (
    (9 * HOUR, "MIS-000001", "mission_queued", '{"queued_by": "ana"}'),
    (8 * HOUR, "MIS-000001", "mission_assigned", '{"worker_id": "WRK-1"}'),
    (
        7 * HOUR,
        "MIS-000001",
        "scrape_failed",
        '{"worker_id": "WRK-1", "error_code": "ERROR200"}',
    ),
    (6 * HOUR, "MIS-000001", "mission_assigned", '{"worker_id": "WRK-2"}'),
    (5 * HOUR, "MIS-000001", "scrape_completed", '{"duration_ms": 3000, "ads_count": 10}'),
    (4 * HOUR, "MIS-000001", "mission_completed", '{"ads_count": 10}'),
    (30 * HOUR, "MIS-000002", "mission_failed", '{"error_code": "ERROR304", "retry_count": 1}'),
    (3 * HOUR, "MIS-000002", "mission_assigned", '{"worker_id": "WRK-2"}'),
    (3 * HOUR, "MIS-000002", "scrape_completed", '{"duration_ms": 1000, "ads_count": 5}'),
    (
        *(2 * HOUR, "MIS-000002", "mission_failed"),
        f'{{"error_code": "ERROR203", "error_message": "{FORMULA}", "retry_count": 2}}',
    ),
    (2 * HOUR, 1, "session_failed", '{"proxy_name": "p1", "error_code": "ERROR101"}'),
    (
        1 * HOUR,
        2,
        "proxy_rotated",
        '{"proxy_name": "p1", "old_proxy": "p1", "new_proxy": "p2"}',
    ),
    (200 * HOUR, 1, "session_failed", '{"proxy_name": "p2", "error_code": "ERROR101"}'),
)


async def write_history(house: World) -> None:
    """Two workers, two proxies, a mission that changed hands, one that failed and was deleted."""
    for n in (1, 2):
        await house.change(
            "INSERT INTO ads_workers (id, name, url, created_at, updated_at) VALUES"  # noqa: S608
            f" ('WRK-{n}', 'worker {n}', 'http://w{n}', (SELECT clock()), (SELECT clock()))"
        )
        await house.change(
            "INSERT INTO ads_proxies (id, name, host, created_at) VALUES"  # noqa: S608
            f" ('PRX-{n}', 'p{n}', 'h{n}', (SELECT clock()))"
        )
    await house.add(2)
    await house.change("UPDATE ads_missions SET worker_id = 'WRK-2', status = 'failed'")
    for session, mission in ((1, "MIS-000002"), (2, "MIS-000002")):
        await house.change(
            f"INSERT INTO ads_served (session, mission) VALUES ({session}, '{mission}')"  # noqa: S608
        )
    for ago, whose, event, details in HISTORY:
        where = ("NULL", whose) if isinstance(whose, int) else (f"'{whose}'", "NULL")
        await house.change(
            "INSERT INTO ads_logs (mission, session, event, details, at) VALUES"  # noqa: S608
            f" ({where[0]}, {where[1]}, '{event}', '{details}', clock_in(-{ago}))"
        )


async def test_the_reports_tell_what_the_history_says(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        await write_history(site.house)
        ask = site.viewer.get

        [failure] = (await ask("/api/ads/reports/failures")).json()
        both = (await ask("/api/ads/reports/failures?hours=48")).json()
        only = (await ask("/api/ads/reports/failures?hours=48&code=ERROR304")).json()
        workers = (await ask("/api/ads/reports/workers")).json()
        proxies = (await ask("/api/ads/reports/proxies")).json()
        longer = (await ask("/api/ads/reports/proxies?days=30")).json()

        assert ("MIS-000002", "failed", "ERROR203", FORMULA, 2) == tuple(
            failure[name]
            for name in ("id", "status", "error_code", "error_message", "retry_count")
        )
        assert ["ERROR203", "ERROR304"] == [each["error_code"] for each in both]
        assert ["ERROR304"] == [each["error_code"] for each in only]
        # H-69: the failure is credited to the worker that had the mission then.
        assert [("worker 1", 0, 1, None, 0), ("worker 2", 2, 0, 2000.0, 15)] == [
            (
                *(each["worker_name"], each["completed_count"], each["failed_count"]),
                *(each["avg_duration_ms"], each["ads_count"]),
            )
            for each in workers
        ]
        assert [("p1", 1, 1), ("p2", 0, 0)] == [_trouble(each) for each in proxies]
        assert ("p2", 1, 0) == _trouble(longer[1])

        table = await ask("/api/ads/reports/failures.csv")
        assert f"'{FORMULA}" in table.text
        assert "attachment" in table.headers["content-disposition"]
        for name in ("workers", "proxies"):
            assert (await ask(f"/api/ads/reports/{name}.csv")).status_code == 200
        rows = (await ask("/api/missions/MIS-000001/timeline.csv")).text.splitlines()
        assert [each[2] for each in HISTORY[:6]] == [row.split(",")[1] for row in rows[1:]]


def _trouble(told: dict[str, Any]) -> tuple[str, int, int]:
    return told["name"], told["session_failures"], told["rotations"]


async def test_the_documents_own_queries_tell_the_same(database_url, tmp_path):
    """But for whom they credit with a scrape (H-69): by the worker that has the mission now."""
    async with site_of(database_url, tmp_path, proxies=0) as site:
        await write_history(site.house)

        async def ask(sql: str) -> Any:
            return await site.house.rows(spoken(sql, database_url))

        assert [("MIS-000002", "failed")] == [row[:2] for row in await ask(FAILURES)]
        assert [("worker 2", 2, 1, 2000)] == [tuple(row) for row in await ask(BY_WORKER)]
        found = {row[0]: tuple(row[4:]) for row in await ask(BAD_PROXIES)}
        assert {"p1": (1, 1), "p2": (0, 0)} == found


async def test_bad_questions_are_refused(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        for query in ("failures?hours=0", "failures?hours=x", "workers?days=91", "proxies?n=1"):
            refused = await site.viewer.get(f"/api/ads/reports/{query}")
            assert (422, "bad_input") == code_of(refused), query
        nobody = await site.viewer.get("/api/missions/MIS-999999/timeline.csv")
        assert (404, "not_found") == code_of(nobody)


async def test_the_page_shows_all_four_with_charts(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        await write_history(site.house)

        page = await site.viewer.get("/ads/reports?mission=MIS-000001", headers=PT)
        text = text_of(page)
        for words in (
            *("Auditoria de missões", "Missões com falhas", "Performance por worker"),
            *("Proxies problemáticos", "Timeline de MIS-000001", "extracao 2 h"),
        ):
            assert words in text, words
        drawn = page.text.partition("<main")[2]
        assert drawn.count("<svg") == 6  # a timeline, failures, two workers, two proxies
        assert '<svg class="bar"' in page.text
        assert "Problem proxies" in text_of(await site.viewer.get("/ads/reports", headers=EN))
        unknown = await site.viewer.get("/ads/reports?mission=nobody", headers=PT)
        assert 404 == unknown.status_code


def failed(hours: float) -> Failure:
    return Failure(
        id="m",
        status="failed",
        error_code=None,
        error_message=None,
        retry_count=0,
        failed_at=NOON - timedelta(hours=hours),
        worker_id=None,
        proxy_used=None,
    )


def test_a_bar_for_every_part_of_the_time_the_oldest_at_the_left():
    drawn = bars([failed(0.5), failed(0.6), failed(23.5), failed(99)], NOON, 24)

    assert [1, *[0] * (BARS - 2), 2] == [each.n for each in drawn]
    assert (50.0, 100.0) == (drawn[0].height, drawn[-1].height)


def test_only_the_last_life_of_a_mission_is_drawn():
    told = [
        Happened(NOON + timedelta(minutes=at), event, {})
        for at, event in (
            *((0, "mission_queued"), (1, "mission_failed"), (10, "mission_queued")),
            *((12, "session_ready"), (14, "mission_assigned"), (20, "scrape_completed")),
        )
    ]

    drawn = stretches(told)

    assert [("atribuido", 240), ("extracao", 360), ("armazenamento", 0)] == [
        (each.checkpoint, each.lasted.total_seconds()) for each in drawn
    ]
    assert [] == stretches([])
    assert reports.DAY == 24 * reports.HOUR
