"""A database of the document's shape is taken over: counted first, done once, and nothing sent again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from retoma.apps.ads.service.adoption import Adoption, adopt_database
from retoma.engine.rules.errors import BadInput
from tests.apps.ads.aids import World, world

DUMPS = Path(__file__).parent / "dumps"
SCHEMA = "legacy"
SHAPES = {"before": ("§3.7", 0), "after": ("§3", 1)}  # how it is called, and how many writers


@contextmanager
def restored(dump: str, postgres_url: str) -> Iterator[str]:
    """A PostgreSQL with the dump in a schema of its own."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        try:
            connection.execute(f"SET search_path TO {SCHEMA}")
            connection.execute((DUMPS / f"{dump}.sql").read_text())
            yield postgres_url
        finally:
            connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def copied(dump: str, folder: Path) -> str:
    """The same as a SQLite file: arrays as JSON, no types of its own."""
    text = re.sub(r"CREATE TYPE .*?;", "", (DUMPS / f"{dump}.sql").read_text(), flags=re.DOTALL)
    text = re.sub(r"'\{([a-z,]+)\}'", lambda found: f"'{found[1]}'", text)
    text = (
        text.replace("text[]", "text").replace("DEFAULT now()", "").replace("+00'", "+00:00'")
    )
    path = folder / "old.db"
    connection = apsw.Connection(str(path))
    connection.execute(text)
    connection.close()
    return f"sqlite:///{path}"


async def taken(house: World, url: str, **how: Any) -> Adoption:
    return await adopt_database(house.app, url, actor="ana", schema=SCHEMA, **how)


def numbers(told: Adoption) -> dict[str, tuple[int, ...]]:
    return {
        name: (each.found, each.new, each.already, each.same, each.left)
        for name, each in told.counts.items()
    }


def expected(writers: int) -> dict[str, tuple[int, ...]]:
    return {
        "workers": (3, 2, 0, 1, 0),
        "proxies": (4, 3, 0, 0, 1),
        "writers": (writers, writers, 0, 0, 0),
        "missions": (4, 3, 0, 0, 1),
        "mission_logs": (4, 3, 0, 0, 1),
    }


async def check(house: World, url: str, shape: str, writers: int) -> None:
    dry = await taken(house, url)
    assert (shape, False, 1) == (dry.shape, dry.applied, dry.under_way)
    assert expected(writers) == numbers(dry)
    assert [] == await house.rows("SELECT id FROM missions")
    assert [] == await house.rows("SELECT id FROM workers")

    done = await taken(house, url, apply=True)
    again = await taken(house, url, apply=True)

    assert expected(writers) == numbers(done)
    assert "CANARY" not in str((dry, done))
    assert {0} == {each.new for each in again.counts.values()}
    assert [3, 3, writers, 3, 3] == [each.already for each in again.counts.values()]
    await check_rows(house, writers)


async def check_rows(house: World, writers: int) -> None:
    rows = await house.rows("SELECT name, url, active FROM workers ORDER BY id")
    assert [
        ("Worker um", "https://w1.example.org", True),
        ("Worker dois", "https://w2.example.org", False),
    ] == [(name, url, bool(active)) for name, url, active in rows]
    rows = await house.rows("SELECT name, active FROM proxies ORDER BY name")
    assert [("br", True), ("br (p-2)", False), ("p3.example.org", True)] == [
        (name, bool(active)) for name, active in rows
    ]
    [(sealed,)] = await house.rows("SELECT count(*) FROM secrets")
    assert 4 + writers == sealed
    assert "CANARY" not in str(await house.rows("SELECT * FROM secrets"))

    missions = await house.rows(
        "SELECT id, status, checkpoint, worker_id, worker_job_id, ads_count, retry_count"
        " FROM missions ORDER BY id"
    )
    assert [
        ("MIS-000001", "completed", "finalizado", "WRK-000001", "scrape_1", 1500, 1),
        ("MIS-000002", "failed", "extracao", "WRK-000002", "scrape_2", None, 0),
        ("MIS-000003", "novo", None, None, None, None, 0),
    ] == [tuple(row) for row in missions]
    # H-50: nothing of the old world is sent again by itself.
    assert [] == await house.rows("SELECT id FROM jobs")
    lost = await house.mission("MIS-000002")
    assert "ERROR500" == lost["error_code"]
    assert "scrape_2" in lost["error_message"]
    assert ["mission_queued", "scrape_completed"] == await house.events("MIS-000001")
    assert ["mission_failed"] == await house.events("MIS-000002")
    [(first,)] = await house.rows(
        "SELECT started_at FROM missions WHERE id = :id", id="MIS-000001"
    )
    assert "2025-01-15 10:00:05" in str(first)
    await house.queue("MIS-000002")  # a person decides
    assert "queued" == (await house.mission("MIS-000002"))["status"]


@pytest.mark.parametrize("dump", SHAPES)
async def test_a_dump_of_either_shape_is_taken_over_once(
    database_url, postgres_url, tmp_path, dump
):
    with restored(dump, postgres_url) as url:
        async with world(database_url, tmp_path, proxies=0) as house:
            await check(house, url, *SHAPES[dump])


async def test_from_a_file_of_sqlite_too(sqlite_url, tmp_path):
    async with world(sqlite_url, tmp_path, proxies=0) as house:
        await check(house, copied("after", tmp_path), *SHAPES["after"])


async def test_what_is_none_is_refused(sqlite_url, tmp_path):
    apsw.Connection(str(tmp_path / "empty.db")).close()
    async with world(sqlite_url, tmp_path, proxies=0) as house:
        with pytest.raises(BadInput, match="no tables missions and workers"):
            await taken(house, f"sqlite:///{tmp_path}/empty.db")
