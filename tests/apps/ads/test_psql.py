"""The document's SQL, pasted into a plain psql: each of its queries has an answer, and which (§5, §6, §10.3)."""

import re
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from retoma import Retoma, db
from retoma.apps.ads import APP
from retoma.db import adhoc, migrations
from retoma.db.migrations import ENGINE, PublicViews, Room
from retoma.library import room_of
from retoma.manifest import application_of
from tests.apps.ads import test_document as document
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.apps.ads.test_true_codes import ByProxy
from tests.conftest import database_address, postgres_address
from tests.seeds.table import PLACES
from tests.services.postgres import find_psql

VIEWS = ("missions", "workers", "proxies", "writers", "mission_logs")
ADS = Room("ads", "retoma.apps.ads.migrations", VIEWS)

TAKE_PROXY = """
WITH selected_proxy AS (
  SELECT id, name, host, port, username, password
  FROM proxies
  WHERE active = true
    AND in_use_by_worker_id IS NULL
  ORDER BY RANDOM()
  LIMIT 1
  FOR UPDATE SKIP LOCKED
)
UPDATE proxies p
SET in_use_by_worker_id = :worker_id,
    last_used_at = now()
FROM selected_proxy sp
WHERE p.id = sp.id
RETURNING p.*;
"""
FREE_PROXY = """
UPDATE proxies
SET in_use_by_worker_id = NULL
WHERE in_use_by_worker_id = :worker_id;
"""
COUNT_FAILURE = """
UPDATE proxies
SET fail_count = fail_count + 1,
    active = CASE WHEN fail_count + 1 >= 3 THEN false ELSE active END
WHERE id = :proxy_id
RETURNING *;
"""
TAKE_MISSION = """
WITH next_mission AS (
  SELECT id
  FROM missions
  WHERE status = 'queued'
  ORDER BY queued_at ASC
  LIMIT 1
  FOR UPDATE SKIP LOCKED
)
UPDATE missions m
SET status = 'running',
    checkpoint = 'extracao',
    worker_id = :worker_id,
    proxy_used = :proxy_name,
    started_at = now()
FROM next_mission nm
WHERE m.id = nm.id
RETURNING m.*;
"""
QUEUED = "SELECT COUNT(*) FROM missions WHERE status = 'queued'"
WRITER = "SELECT * FROM writers WHERE active = true LIMIT 1"
ORPHANS = """
SELECT m.*, w.status as worker_status
FROM missions m
LEFT JOIN workers w ON m.worker_id = w.id
WHERE m.status = 'running'
"""
# Whose answer is a refusal: only the orchestrator reserves, frees and allocates, under its fences.
REFUSED = "is a view: use the API"
QUERIES = {
    "2.3.1": (QUEUED, " 1"),
    "3.1.1": (WRITER, "WRT-000001"),
    "5.6.1": (ORPHANS, "(0 rows)"),
    "6.1": (TAKE_PROXY, REFUSED),
    "6.2": (FREE_PROXY, "UPDATE 0"),
    "6.3": (COUNT_FAILURE, REFUSED),
    "6.4": (TAKE_MISSION, REFUSED),
    "6.5": (document.FREE_WORKERS, "WRK-000001"),
    "6.6": (document.AT_THE_WRITER, "(0 rows)"),
    "6.7": (document.LEFT_TO_DO, "0"),
    "6.8": (document.FOR_THE_LOG, "W1"),
    "10.3 timeline": (document.TIMELINE, "mission_completed"),
    "10.3 falhas": (document.FAILURES, "ERROR203"),
    "10.3 workers": (document.BY_WORKER, "W1"),
    "10.3 proxies": (document.BAD_PROXIES, "proxy-br-1"),
}


@contextmanager
def bare() -> Iterator[str]:
    """A database in which there is nothing."""
    name = f"retoma_psql_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_address(), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield database_address(name)
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@asynccontextmanager
async def orchestrated(folder: Path) -> AsyncIterator[tuple[str, World]]:
    """A database that a plain `retoma db upgrade` made, after three missions."""
    with bare() as url:
        opened = db.open(url)
        for room in (ENGINE, ADS):
            await migrations.upgrade(opened, room=room)
        opened.close()
        async with world(
            url, folder, workers=[FakeWorker()], writers=[FakeWriter()], proxies=2
        ) as house:
            yield url, house


def psql(url: str, query: str, **named: str) -> str:
    """What it prints, errors included; nothing is set but what the document leaves open."""
    sets = "".join(f"\\set {name} '''{value}'''\n" for name, value in named.items())
    said = subprocess.run(
        [find_psql(), "--no-psqlrc", "-d", url],
        input=f"{sets}{query.strip().removesuffix(';')};\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return said.stdout + said.stderr


async def test_all_fifteen_queries_are_pasted_into_psql_and_answered(tmp_path):
    async with orchestrated(tmp_path) as (url, house):
        done, failed, waiting = await document.after_three_missions(house)
        named = {"worker_id": "WRK-000001", "proxy_id": "PRX-000001", "mission_id": done}
        named["proxy_name"] = "proxy-br-1"
        for place, (query, wanted) in QUERIES.items():
            answer = psql(url, query, **named)
            print(f"— §{place}\n{answer}")
            assert wanted in answer, place
            assert ("ERROR" in answer) == (wanted == REFUSED or "ERROR203" in answer), place
        assert "POST /api/workers/{id}/relocate" in psql(url, TAKE_PROXY, **named)
        assert failed in psql(url, document.FAILURES)
        assert waiting in psql(url, "SELECT id FROM missions WHERE status = 'queued'")


def test_these_are_the_fifteen_queries_of_the_document():
    places = [each / "004-scraping-orchestrator.md" for each in PLACES]
    found = [each.read_text() for each in places if each.is_file()]
    if not found:
        assert len(QUERIES) == 15
        return
    plain = re.sub(r"[│\s]+", " ", found[0])
    for place, (query, _) in QUERIES.items():
        assert re.sub(r"\s+", " ", query).strip().removesuffix(";") in plain, place


async def test_problem_proxies_have_true_figures(database_url, tmp_path):
    """A session that failed before it had a mission counts; a proxy that was left counts once, however
    many missions the next session had."""
    worker = ByProxy()
    async with world(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=2
    ) as house:
        await house.app.knobs.set("ads.max_proxy_failures", 50, actor=WHO)
        await house.change("UPDATE pool_items SET failures = 1 WHERE name = 'PRX-000002'")
        missions = await house.add(4)
        await house.queue(*missions)
        await house.start()
        await house.drain()

        shown = await house.rows(document.spoken(document.BAD_PROXIES, database_url))
        found = {row[0]: row[4:] for row in shown}
        [(failures,)] = await house.rows(
            "SELECT count(*) FROM ads_logs WHERE event = 'session_failed'"
        )
        [(left,)] = await house.rows(
            "SELECT count(*) FROM ads_logs WHERE event = 'proxy_rotated'"
        )
        assert failures >= 1
        assert left >= 1
        assert sum(row[0] for row in found.values()) == failures
        assert sum(row[1] for row in found.values()) == left
        assert found["proxy-br-1"][0] == failures


async def test_the_end_of_every_session_is_in_mission_logs(database_url, tmp_path):
    """Also of one that ends after its missions, and of one that never had any."""
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as house:
        await document.after_three_missions(house)
        ended = "SELECT count(*) FROM {} WHERE event = 'session_terminated'"
        [(told,)] = await house.rows(ended.format("ads_logs"))
        assert told >= 2
        assert await house.rows(ended.format("mission_logs")) == [(told,)]
        lines = await house.rows("SELECT count(*), count(DISTINCT id) FROM mission_logs")
        assert len({*lines[0]}) == 1, "no line is there twice under one id"


# — whether `public` shows them —


async def shown(url: str) -> list[str]:
    opened = db.open(url)
    rows = await opened.read(
        lambda tx: tx.all(
            adhoc(
                "SELECT 1",
                "SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
            )
        )
    )
    opened.close()
    return [name for (name,) in rows]


async def upgraded(url: str, public: PublicViews) -> list[str]:
    opened = db.open(url)
    room = Room(ADS.name, ADS.package, VIEWS, public)
    for each in (ENGINE, room):
        await migrations.upgrade(opened, room=each)
    opened.close()
    return await shown(url)


async def run(url: str, change: str) -> None:
    opened = db.open(url)
    await opened.write(lambda tx: tx.run(adhoc("SELECT 1", change)), verb="test")
    opened.close()


async def test_an_empty_public_shows_them_and_one_with_tables_is_left_alone():
    with bare() as url:
        assert await upgraded(url, PublicViews.AUTO) == sorted(VIEWS)
        await run(url, "CREATE TABLE public.ads (id text)")
        assert await upgraded(url, PublicViews.AUTO) == sorted(VIEWS), "they stay"
        assert await upgraded(url, PublicViews.OFF) == []
        assert await upgraded(url, PublicViews.AUTO) == [], "somebody else is there by now"
        await run(url, "CREATE TABLE public.workers (id text)")
        assert await upgraded(url, PublicViews.ON) == sorted({*VIEWS} - {"workers"})


async def test_what_public_shows_stands_in_no_migrations_way():
    with bare() as url:
        assert await upgraded(url, PublicViews.AUTO) == sorted(VIEWS)
        opened = db.open(url)
        await migrations.downgrade(opened, to=3, room=ADS)
        assert await shown(url) == sorted(VIEWS)
        await migrations.downgrade(opened, to=0, room=ADS)
        assert await shown(url) == []
        opened.close()
        assert await upgraded(url, PublicViews.AUTO) == sorted(VIEWS)


# Which application keeps the tables of a document, and what the document calls them.
TABLES = {
    "quotes": ("quote_requests",),
    "documents": ("execucoes_classificacao", "resultados_classificacao"),
    "embeddings": ("queue_jobs",),
    "matches": ("scrape_jobs", "scrape_tasks", "partidas"),
    "ads": VIEWS,
}


async def test_the_tables_of_every_document_are_seen_in_a_plain_psql():
    with bare() as url:
        opened = db.open(url)
        applications = [application_of(name) for name in TABLES]
        for room in (ENGINE, *(room_of(each, "auto") for each in applications)):
            await migrations.upgrade(opened, room=room)
        opened.close()
        for names in TABLES.values():
            for name in names:
                assert "(0 rows)" in psql(url, f"SELECT * FROM {name}"), name  # noqa: S608


def test_a_word_that_is_no_choice_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RETOMA_PUBLIC_VIEWS", "perhaps")
    with pytest.raises(Exception, match="auto, on or off"):
        Retoma("sqlite://").install(APP, Any)
