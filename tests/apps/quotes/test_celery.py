"""Quotes over Celery and Redis, with the document's task and its worker settings: Show 3, E26."""

import pickle
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from celery.schedules import crontab

from retoma import Retoma
from retoma.apps.quotes import store
from retoma.apps.quotes.face import CheckpointManager, QuoteRequest, SessionMaker
from retoma.apps.quotes.sandbox import Odd, paid_twice
from retoma.apps.quotes.tasks import export_tasks
from retoma.db.rows import read_json
from retoma.dispatch.celery import CeleryDispatcher
from tests.apps.quotes import fleet
from tests.apps.quotes.aids import WHO, World, world
from tests.apps.workers import worker
from tests.databases import Rooms, migrate
from tests.engine.aids import eventually

STANDS = "SELECT status, count(*) FROM quote_requests GROUP BY status"
ENDS = "SELECT status, error_code, result FROM quote_requests ORDER BY id"


def wanted(there: World, n: int) -> list[store.NewQuote]:
    """Every sixth cannot be quoted, and ends in ERROR at once."""
    odd = {0: Odd.NO_RESULTS, 6: Odd.BLOCKED}
    return [
        store.NewQuote(there.catalogue.describe(each, odd.get(each % 12))) for each in range(n)
    ]


async def add(app: Retoma, what: list[store.NewQuote]) -> store.Added:
    return await app.write(lambda tx: store.add_lote(tx, what, actor=WHO, name="lote"))


def ends(rows: list[Any]) -> list[tuple[str, str | None, float | None]]:
    return [
        (status, code, (read_json(result) or {}).get("price")) for status, code, result in rows
    ]


@pytest.mark.timeout(300)
async def test_e26_a_lote_over_celery_ends_as_it_does_by_a_runner(
    postgres_url, redis_url, tmp_path, rooms
):
    """E26 Q1: on the document's own make; the soak below takes both, tests/dispatch the rest."""
    await compare(postgres_url, redis_url, tmp_path, rooms, quotes=12, concurrency=2)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_e26_500_quotes_over_celery_end_as_they_do_by_a_runner(
    database_url, redis_url, tmp_path, rooms
):
    await compare(database_url, redis_url, tmp_path, rooms, quotes=500, concurrency=8)


async def compare(
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    rooms: Rooms,
    *,
    quotes: int,
    concurrency: int,
) -> None:
    """Of the messages a quarter is doubled and a quarter never sent."""
    queue = f"quotes-{secrets.token_hex(4)}"
    async with world(database_url, tmp_path) as there:
        lote = await add(there.app, wanted(there, quotes))
        celery_app = fleet.make_celery(redis_url)
        dispatcher, process_quote_request = fleet.export(celery_app, there.app, queue)
        for quote in lote.quotes:
            for _ in range((1, 2, 1, 0)[quote % 4]):
                process_quote_request.delay(quote)
        process_quote_request.delay(10**9)  # nobody's
        port = urlsplit(there.settings.anthropic_url).port
        told = {"url": database_url, "port": port, "broker": redis_url, "queue": queue}

        async def ended() -> bool:
            stands = dict(map(tuple, await there.rows(STANDS)))
            return bool(stands.get("DONE", 0) + stands.get("ERROR", 0) == quotes)

        with worker(fleet, told, tmp_path, concurrency) as log:
            await eventually(ended, within=60 + 2 * quotes)
        dispatcher._disconnect()
        dispatcher._sender.close()
        by_celery = ends(await there.rows(ENDS))
        claims = await there.rows("SELECT count(*) FROM events WHERE type = 'claimed'")
        names = await there.rows("SELECT DISTINCT name FROM runners WHERE name LIKE '%@%'")
        twice = {
            name: paid_twice(there.services.log(name)) for name in ("anthropic", "serpapi")
        }
        assert "Traceback" not in log.read_text()

        url = f"sqlite:///{tmp_path / 'other.db'}"
        migrate(url, rooms)
        async with world(url, tmp_path) as other:
            await add(other.app, wanted(other, quotes))
            await other.drained()
            by_runner = ends(await other.rows(ENDS))

    print(f"{quotes} quotes over Celery, {claims[0][0]} claims: {by_celery[:2]} …")
    assert by_runner == by_celery
    assert 1 == len(names), "worker_id is what Celery calls its worker"
    assert quotes - len([n for n in range(quotes) if n % 6 == 0]) == sum(
        status == "DONE" for status, *_ in by_celery
    )
    assert {"anthropic": {}, "serpapi": {}} == twice


class Asked:
    """Keeps what an application adds to a dispatcher."""

    def __init__(self) -> None:
        self.exported: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}

    def export(self, name: str, find: Any) -> None:
        self.exported[name] = find

    def extend_task(self, duty: str, do: Any) -> None:
        self.beside[duty] = do


async def test_beat_asks_for_what_the_document_schedules(database_url, tmp_path):
    """Every five minutes, and daily at four; a number that is nobody's is no hint."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(2)
        planned = CeleryDispatcher(fleet.make_celery("memory://"), there.app)
        task = export_tasks(planned, there.app)
        asked = Asked()
        export_tasks(asked, there.app)
        database = await there.app.database()
        find = asked.exported["process_quote_request"]
        job = (await there.seen(quote))["job"]

        assert "process_quote_request" == task.name
        every = planned.beat_schedule
        assert crontab(minute="*/5") == every["recover_stuck_quotes"]["schedule"]
        assert crontab(hour="4", minute="0") == every["cleanup_old_processing"]["schedule"]
        assert ("quotes.quote", job) == await database.read(lambda tx: find(tx, quote))
        assert await database.read(lambda tx: find(tx, 10**9)) is None


@pytest.mark.parametrize(
    ("zone", "at"), [("America/Sao_Paulo", 7), ("UTC", 4), ("Asia/Tokyo", 19)]
)
def test_beat_cleans_up_at_four_in_the_zone_that_is_configured(sqlite_url, zone, at):
    """Whatever zone the Celery app has; a schedule that Beat has written down says the same."""
    celery_app = fleet.make_celery("memory://")
    planned = CeleryDispatcher(celery_app, Retoma(sqlite_url, timezone=zone))
    schedule = planned.beat_schedule["cleanup_old_processing"]["schedule"]
    kept = pickle.loads(pickle.dumps(schedule))  # noqa: S301 — as Beat keeps its own
    for each in (schedule, kept):
        each.app = celery_app
        each.nowfun = lambda: datetime(2026, 11, 19, 20, 0, tzinfo=UTC)
        last = datetime(2026, 11, 19, at, 0, 1, tzinfo=UTC)
        due = each.now() + each.remaining_estimate(last)
        assert at == due.astimezone(UTC).hour
        assert 0 == due.astimezone(UTC).minute


async def test_cleanup_by_beat_ends_what_was_begun_a_day_ago(
    database_url, test_clock, tmp_path
):
    """Never what somebody holds: that one is only quiet."""
    async with world(database_url, tmp_path) as there:
        left, held = await there.quote(2), await there.quote(3)
        asked = Asked()
        export_tasks(asked, there.app)
        sessions = SessionMaker(database_url)
        first, second = sessions(), sessions()
        for db, number in ((first, left), (second, held)):
            quote = db.query(QuoteRequest).get(number)
            CheckpointManager(db).start_processing(quote)
        first.close()  # begun, and given back
        test_clock.jump(25 * 3600)
        clean = asked.beside["cleanup_old_processing"]
        assert 1 == await clean()
        assert 0 == await clean()
        sessions.close()
        await there.drained()

        assert "ERROR" == (await there.seen(left))["status"]
        assert "deadline" == (await there.seen(left))["error_code"]
