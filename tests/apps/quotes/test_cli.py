"""`retoma quotes …`: a table becomes a lote, what is stuck is seen and goes on, a table of one's own is taken over."""

import asyncio
from functools import partial
from typing import Any

from retoma.apps.quotes.face import CheckpointManager, QuoteRequest, SessionMaker
from retoma.apps.quotes.sandbox import Odd
from retoma.toolkit.spreadsheets import read_sheet
from tests.apps import verbs
from tests.apps.quotes.aids import World, world
from tests.apps.quotes.test_adopt import SCHEMA, TABLE, legacy
from tests.apps.verbs import chosen, verb
from tests.apps.workbooks import of_rows

__all__ = ["chosen", "verb"]  # fixtures, for this module too

typed, said = partial(verbs.typed, "quotes"), partial(verbs.said, "quotes")


def lines(there: World, *odd: Odd | None) -> str:
    asked = [there.catalogue.describe(2 + n, each) for n, each in enumerate(odd)]
    return "\n".join(["descricao", *(f'"{each}"' for each in asked)])


async def test_a_table_is_submitted_watched_and_asked_about(sqlite_url, tmp_path, verb):
    async with world(sqlite_url, tmp_path) as there:
        table, bad = tmp_path / "maio.csv", tmp_path / "bad.csv"
        table.write_text(lines(there, None, Odd.ZERO))
        bad.write_text("nome\nx\n")
        for words in (("submit", str(bad)), ("submit", str(tmp_path / "none.csv"))):
            refused = await typed(verb, *words)
            assert 2 == refused.code, refused
        assert "no column `descricao`" in (await typed(verb, "submit", str(bad))).err

        watching = asyncio.create_task(typed(verb, "submit", str(table), "--wait"))
        while not watching.done():
            await there.drained()
            await asyncio.sleep(0.01)
        watched = await watching
        assert (1, True) == (watched.code, "1 jobs are dead" in watched.err)
        assert "lote 1: 2 quotes" in watched.out
        lote = await said(verb, "status", "1")
        assert ("maio", 1, 1, {"no_price": 1}) == (
            *(lote["nome"], lote["by_status"]["DONE"], lote["by_status"]["ERROR"]),
            lote["errors"],
        )
        plain = (await typed(verb, "status", "1")).out
        assert f"{lote['cost']['spent']['usd']} USD" in plain
        assert "{" not in plain, "nothing that only a program reads"
        assert 0 == (await said(verb, "status"))["total_processing"]
        assert "DONE" == (await said(verb, "show", "1"))["status"]
        shown = await typed(verb, "show", "1")
        assert "COMPLETED" in shown.out
        assert 1 == (await typed(verb, "show", "99")).code
        assert 1 == (await typed(verb, "status", "99")).code

        assert {"recovered": 1, "stuck_count": 0} == await said(verb, "recover", "2")
        assert "PROCESSING" == (await said(verb, "show", "2"))["status"]
        done = await typed(verb, "recover", "1")
        assert (1, True) == (done.code, "nothing to recover" in done.err)


async def test_bad_rows_are_named_and_left_out_where_that_is_asked(sqlite_url, tmp_path, verb):
    async with world(sqlite_url, tmp_path) as there:
        table = tmp_path / "maio.xlsx"
        about = there.catalogue.describe(2)
        table.write_bytes(of_rows([["descricao", "tipo"], [about], ["mesa", "barco"], ["---"]]))

        refused = await typed(verb, "submit", str(table))
        assert 2 == refused.code
        assert "line 3: tipo is none of" in refused.err
        assert "line 4: descricao says nothing" in refused.err
        assert "2 rows of 3 cannot be imported; nothing was imported" in refused.err
        taken = await typed(verb, "submit", str(table), "--only-good")
        assert (0, True) == (taken.code, "lote 1: 1 quote\n" in taken.out)
        assert "line 3: tipo is none of" in taken.out


async def test_a_lote_is_exported_to_a_file(sqlite_url, tmp_path, verb):
    async with world(sqlite_url, tmp_path) as there:
        lote = (await there.lote(range(2, 3))).lote
        await there.drained()
        file = tmp_path / "a.xlsx"
        written = await typed(verb, "export", str(lote), "--format", "xlsx", "--out", str(file))

        assert 0 == written.code, written
        assert '"descricao"' in read_sheet(str(file), 10).csv
        assert 1 == (await typed(verb, "export", "99")).code
        nowhere = await typed(verb, "export", str(lote), "--out", str(tmp_path / "no" / "a"))
        assert (2, True) == (nowhere.code, "No such file" in nowhere.err)


async def test_what_is_stuck_is_listed_and_taken_back(database_url, test_clock, tmp_path, verb):
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(2)
        sessions = SessionMaker(database_url)
        db = sessions()
        CheckpointManager(db, worker_id="celery@a").start_processing(
            db.query(QuoteRequest).get(quote)
        )
        assert [] == await said(verb, "stuck")
        test_clock.jump(700)
        [stuck] = await said(verb, "stuck")
        sessions.close()

        assert (quote, "celery@a", True) == (
            *(stuck["id"], stuck["worker_id"], stuck["lease_expired"]),
        )
        assert "celery@a" in (await typed(verb, "stuck")).out
        assert {"recovered": 1, "stuck_count": 0} == await said(verb, "recover")
        assert {"recovered": 0, "stuck_count": 0} == await said(verb, "recover")


async def test_a_table_of_ones_own_is_taken_over(sqlite_url, tmp_path, verb):
    async with world(sqlite_url, tmp_path) as there:
        database = await there.app.database()
        rows: list[dict[str, Any]] = [
            {"id": 5, "status": "PENDING", "texto": there.catalogue.describe(2)},
            {"id": 6, "status": "DONE", "texto": "x", "result": '{"price": 1.5}'},
            {"id": 7, "status": "?", "texto": "x"},
        ]
        with legacy(database.dialect, rows, tmp_path, sqlite_url) as url:
            how = (url, "--schema", SCHEMA, "--table", TABLE)
            dry = await typed(verb, "adopt", *how)
            assert (0, True) == (dry.code, "a dry run" in dry.out)
            assert "7: its status is '?'" in dry.out
            told = await said(verb, "adopt", *how, "--apply")
            again = await said(verb, "adopt", *how, "--apply")
        assert (1, 1, 1) == (told["open"], told["history"], told["left"])
        assert (0, 0, 2) == (again["open"], again["history"], again["already"])
        assert 1.5 == (await said(verb, "show", "6"))["result"]["price"]
        nowhere = await typed(verb, "adopt", f"sqlite:///{tmp_path}/none.db")
        assert (69, True) == (nowhere.code, "none.db" in nowhere.err)
