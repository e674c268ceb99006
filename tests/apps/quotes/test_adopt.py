"""A `quote_requests` of the team's own is taken over: counted first, done once, and nothing paid for again."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from retoma import Retoma
from retoma.apps.quotes.adopt import Adoption, adopt
from retoma.apps.quotes.before import Unreadable, read_before
from retoma.apps.quotes.face import ROOM
from retoma.apps.quotes.store import SQL
from retoma.db import adhoc, migrations
from retoma.engine.rules.errors import BadInput
from tests.apps.quotes.aids import World, world

TABLE, SCHEMA = "cotacoes", "legado"
COLUMNS = (
    "id integer PRIMARY KEY, status text, texto text, tipo text, codigo text, batch_request_id integer,"
    " processing_checkpoint varchar(50), last_heartbeat {time}, worker_id varchar(100), resume_data {json},"
    " started_at {time}, completed_at {time}, attempt_number integer, claude_payload_json {json},"
    " google_shopping_response_json {json}, result {json}, error_code text, created_at {time}, observacao text"
)
SHOWN = (
    "SELECT id, status, claude_payload_json, google_shopping_response_json, resume_data"
    " FROM quote_requests ORDER BY id"
)
OLD = "2025-01-15 10:00:00"
ALIVE = "2999-01-01 00:00:00"


@contextmanager
def legacy(dialect: str, rows: list[dict[str, Any]], folder: Path, url: str) -> Iterator[str]:
    """The table as a team has it: in a schema of its own there, in a file of its own here."""
    if dialect == "sqlite":
        path = folder / "theirs.db"
        connection = apsw.Connection(str(path))
        connection.execute(f"CREATE TABLE {TABLE} ({COLUMNS.format(time='text', json='text')})")
        for row in rows:
            connection.execute(insert(row, ":{}"), row)
        connection.close()
        yield f"sqlite:///{path}"
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {SCHEMA}")
        kinds = COLUMNS.format(time="timestamp", json="jsonb")
        server.execute(f"CREATE TABLE {SCHEMA}.{TABLE} ({kinds})")
        for row in rows:
            server.execute(insert(row, "%({})s", f"{SCHEMA}."), row)
        try:
            yield url
        finally:
            server.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def insert(row: dict[str, Any], mark: str, schema: str = "") -> Any:
    names = ", ".join(row)
    values = ", ".join(mark.format(name) for name in row)
    return f"INSERT INTO {schema}{TABLE} ({names}) VALUES ({values})"  # noqa: S608


async def taken(there: World, url: str, **how: Any) -> Adoption:
    asked = {"schema": SCHEMA, "table": TABLE, "source": "theirs", **how}
    return await adopt(there.app, url, actor="ana", **asked)


def rows_like(there: World, n: int, seen: dict[str, Any]) -> list[dict[str, Any]]:
    """Of every sort: ended, waiting, at work with more and more that was paid for, and odd ones."""
    asked = seen["claude_payload_json"]
    message = {
        "model": "claude",
        "usage": {"input_tokens": 9, "output_tokens": 9},
        "content": [{"type": "tool_use", "name": asked["tool"], "input": asked["said"]}],
    }
    analysis, search = json.dumps(message), json.dumps(seen["google_shopping_response_json"])
    tested = json.dumps(seen["resume_data"])
    at_work = {"status": "PROCESSING", "last_heartbeat": OLD, "worker_id": "celery@a"}
    lote = {"batch_request_id": 7, "codigo": "A-1"}
    description = there.catalogue.describe(n)
    told: list[dict[str, Any]] = [
        {"status": "DONE", "result": '{"price": 10.5, "currency": "BRL"}', "completed_at": OLD},
        {"status": "ERROR", "error_code": "timeout", "texto": None, "created_at": OLD},
        {"status": "PENDING", "tipo": "produto"},
        {**at_work, **lote, "claude_payload_json": analysis, "attempt_number": 2},
        {**at_work, **lote, "claude_payload_json": analysis},
        {**at_work, "claude_payload_json": analysis},
        {**at_work, "last_heartbeat": ALIVE},
        {"status": "PENDING", "claude_payload_json": '{"answer": "no plan"}'},
        {"status": "ALMOST"},
        {"status": "PENDING", "texto": " "},
    ]
    for full in (4, 5):
        told[full]["google_shopping_response_json"] = search
    told[5]["resume_data"] = tested
    plain = {
        "texto": description,
        "processing_checkpoint": "AI_ANALYSIS_DONE",
        "observacao": "x",
    }
    return [{"id": place + 1, **plain, **row} for place, row in enumerate(told)]


async def first_of(there: World) -> tuple[int, dict[str, Any]]:
    """A quote that we have made ourselves: what it was told is what others were told for the same words."""
    n = next(n for n in range(100) if not there.catalogue.is_vehicle(n))
    quote = await there.quote(n)
    await there.drained()
    return n, await there.seen(quote)


async def test_q1_what_was_paid_for_there_is_not_paid_for_here(database_url, tmp_path):
    """Q1: counted, done once, ids kept where they are free; what has ended is history."""
    async with world(database_url, tmp_path) as there:
        database = await there.app.database()
        n, seen = await first_of(there)
        rows = rows_like(there, n, seen)
        before = {name: there.calls(name) for name in ("anthropic", "serpapi", "shops")}
        with legacy(database.dialect, rows, tmp_path, database_url) as url:
            dry = await taken(there, url)
            assert (False, 10, 2, 4, 3, 1, 1) == (
                *(dry.applied, dry.found, dry.history, dry.open),
                *(dry.left, dry.at_work, dry.renumbered),
            )
            assert (3, 2, len(seen["resume_data"]["tested_products"])) == (
                *(dry.analyses, dry.searches, dry.tested),
            )
            assert ["8:", "9:", "10:"] == [note.split()[0] for note in dry.notes]
            assert [(1,)] == [tuple(row) for row in await there.rows("SELECT id FROM quotes")]

            done = await taken(there, url, apply=True)
            again = await taken(there, url, apply=True)

        assert (dry.history, dry.open, dry.left) == (done.history, done.open, done.left)
        assert (1, 0, 0, 6, 0) == (
            *(done.lotes, again.history, again.open),
            *(again.already, again.lotes),
        )
        await there.drained()
        found = await there.rows(
            "SELECT id, status, attempt_number, batch_request_id FROM quote_requests ORDER BY id"
        )
        statuses = {row[0]: row[1] for row in found}
        assert {1: "DONE", 2: "ERROR", 3: "DONE", 4: "DONE", 5: "DONE", 6: "DONE"} == {
            id_: statuses[id_] for id_ in range(1, 7)
        }
        renumbered = await there.seen(max(statuses))
        assert ("DONE", 10.5, None) == (
            *(renumbered["status"], renumbered["result"]["price"]),
            renumbered["job"],
        )
        failed = await there.seen(2)
        assert ("ERROR", "timeout") == (failed["status"], failed["error_code"])
        lote = found[3][3]
        assert lote is not None
        assert [lote, lote, None] == [found[place][3] for place in (3, 4, 5)]
        assert 2 <= found[3][2]
        after = {name: there.calls(name) - before[name] for name in before}
        assert (1, 2) == (after["anthropic"], after["serpapi"])
        tested = len(seen["resume_data"]["tested_products"])
        assert 3 * tested == after["shops"]  # the fourth was tested whole
        prices = {(await there.seen(id_))["result"]["price"] for id_ in (3, 4, 5, 6)}
        assert {seen["result"]["price"]} == prices
        assert await there.quote(n) > max(statuses)


async def test_what_is_taken_down_is_kept_and_can_be_taken_over_again(database_url, tmp_path):
    """Up, adopt, down: every row with all that was paid for stays in a plain table."""
    async with world(database_url, tmp_path) as there:
        database = await there.app.database()
        n, seen = await first_of(there)
        rows = rows_like(there, n, seen)[:6]
        with legacy(database.dialect, rows, tmp_path, database_url) as url:
            await taken(there, url, apply=True)
        before = await there.rows(SHOWN)
        assert 7 == len(before)

        await migrations.downgrade(database, to=1, room=ROOM)
        await migrations.upgrade(database, room=ROOM)
        assert before == await there.rows(SHOWN)
        await migrations.downgrade(database, to=0, room=ROOM)
        kept = await there.rows(SHOWN.replace("requests", "requests_kept"))
        await migrations.upgrade(database, room=ROOM)

        assert [tuple(map(plain, row)) for row in before] == [
            tuple(map(plain, row)) for row in kept
        ]
        back = await adopt(
            there.app,
            database_url,
            actor="ana",
            apply=True,
            schema="retoma",
            table="quote_requests_kept",
        )
        assert (7, 3, 4) == (back.found, back.history, back.open)
        assert (3, 2) == (back.analyses, back.searches)


def plain(value: Any) -> Any:
    """A json column, as a view or a plain table gives it."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


async def test_a_table_that_cannot_be_read_is_refused(database_url, tmp_path):
    async with world(database_url, tmp_path) as there:
        database = await there.app.database()
        rows = [{"id": 1, "status": "PENDING", "claude_payload_json": '{"a": 1}', "texto": "x"}]
        with legacy(database.dialect, rows, tmp_path, database_url) as url:
            with pytest.raises(BadInput, match="nothing"):
                await taken(there, url, table="nothing")
            with pytest.raises(BadInput, match="observacao"):
                await taken(there, url, described="no_such_column")
            told = await taken(there, url, pay_again=True, described="observacao")
            assert (0, 1) == (told.open, told.left)  # it says nothing there
            told = await taken(there, url, pay_again=True)
            assert (1, 0, 0) == (told.open, told.left, told.analyses)
        with pytest.raises(BadInput, match="our own"):
            await taken(there, database_url, table="quote_requests", schema="retoma")


def test_what_was_paid_for_is_read_in_the_shapes_it_has():
    plan = {"query": "x", "must_have": ["y"], "confidence": 0.9}
    car = {"brand": "Fiat", "model": "Uno", "year": 2010}
    assert "x" == read(claude_payload_json=plan).asked.meaning().query
    assert "Uno" == read(claude_payload_json=car).asked.meaning().model
    assert [1] == read(google_shopping_response_json=[1]).found["shopping_results"]
    pages = [
        "http://a.b/c",
        {"link": "https://d.e", "price": "R$ 1.234,50"},
        {"url": "ftp://f"},
        {"url": "http://[f"},
        7,
    ]
    pages.append({"url": "https://g.h", "price": 0})
    tested = read(resume_data={"tested_products": pages}).tested
    assert [(None, "tested_before"), (1234.5, None), (None, "price_not_positive")] == [
        (each.price, each.code) for each in tested.values()
    ]
    bads: list[dict[str, Any]] = [
        {"claude_payload_json": "text"},
        {"claude_payload_json": {"content": []}},
        {"claude_payload_json": {**plan, "input_tokens": "many"}},
        {"claude_payload_json": {**plan, "usage": [1]}},
        {"claude_payload_json": {"content": [{"name": "search_plan", "input": 7}]}},
    ]
    for bad in bads:
        with pytest.raises(Unreadable):
            read_before(bad)
    with pytest.raises(Unreadable):
        read_before({"google_shopping_response_json": {"error": "quota"}})


def read(**was: Any) -> Any:
    return read_before(was)


async def test_a_lote_that_is_read_in_two_parts_is_one_lote_here(
    database_url, tmp_path, monkeypatch
):
    """And whoever was in none has no lote here either, however many they are."""
    monkeypatch.setattr("retoma.apps.quotes.adopt.LOTE", 5)
    monkeypatch.setattr("retoma.apps.quotes.adopt.PIECE", 2)
    old = [None] * 5 + [7] * 3 + [8] * 4
    async with world(database_url, tmp_path) as there:
        database = await there.app.database()
        rows = [
            {"id": n, "status": "PENDING", "texto": "geladeira", "batch_request_id": lote}
            for n, lote in enumerate(old, start=1)
        ]
        with legacy(database.dialect, rows, tmp_path, database_url) as url:
            told = await taken(there, url, apply=True)
        assert (12, 2) == (told.open, told.lotes)
        lotes = await there.rows("SELECT lote, count(*) FROM quotes GROUP BY lote")
        assert sorted(n for lote, n in lotes if lote) == [3, 4]
        assert [n for lote, n in lotes if lote is None] == [5]
        [(jobs,)] = await there.rows("SELECT count(*) FROM quotes WHERE job IS NOT NULL")
        assert 12 == jobs


OPEN_THERE = adhoc(
    """INSERT INTO quotes (kind, description, created_by, created_at, was)
VALUES ('auto', 'geladeira', 'ana', (SELECT clock()), '{"adopted_from": "x", "status": "PENDING"}')"""
)


async def test_two_who_take_over_at_once_submit_each_quote_once(database_url, tmp_path):
    """Q1: two jobs of one quote would both be paid for. On SQLite nobody can come between."""
    async with world(database_url, tmp_path) as there, Retoma(database_url) as beside:
        await there.app.write(lambda tx: tx.run(OPEN_THERE))
        await beside.write(lambda tx: tx.all(SQL.adopted_open, source="nobody", n=1))
        found, came = threading.Event(), threading.Event()

        def slow(tx: Any) -> int:
            rows = tx.all(SQL.adopted_open, source="x", n=10)
            tx.run(adhoc("UPDATE quotes SET job = 1"))
            found.set()
            assert came.wait(60)
            return len(rows)

        first = asyncio.create_task(there.app.write(slow))
        await asyncio.to_thread(found.wait, 60)
        second = asyncio.create_task(
            beside.write(lambda tx: tx.all(SQL.adopted_open, source="x", n=10))
        )
        await asyncio.wait({second}, timeout=0.5)  # it waits for the other, or is wrong
        came.set()

        assert 1 == await first
        assert [] == await second
