"""Quotes over the API: the document's eight endpoints, lotes as JSON and as tables, who may do what."""

import asyncio
import csv
import io
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest

from retoma.apps.quotes import APP
from retoma.apps.quotes.sandbox import Odd
from retoma.engine import store
from retoma.engine.ports import Process
from retoma.engine.store import Boot
from retoma.toolkit.spreadsheets import read_sheet
from retoma.toolkit.tables import read_rows
from retoma.words import say
from tests.apps.people import people
from tests.apps.quotes.aids import World, world
from tests.apps.workbooks import of_rows
from tests.engine.aids import change

CSV = "descricao;tipo;codigo\n{a};product;A-1\n{b};auto;+cmd\n"


def asked(there: World, url: str) -> AbstractAsyncContextManager[dict[str, httpx2.AsyncClient]]:
    return people(there.app, APP, url)


async def test_a_lote_comes_as_a_table_and_goes_as_one(database_url, tmp_path):
    """What would be a formula in a spreadsheet is marked as none."""
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        olga, vera = people["operator"], people["viewer"]
        table = CSV.format(
            a=there.catalogue.describe(2), b=there.catalogue.describe(7, Odd.ZERO)
        )
        made = await olga.post(
            "/api/lotes/import?nome=maio", content=table, headers={"content-type": "text/csv"}
        )
        assert 201 == made.status_code, made.text
        lote = made.json()
        assert ("maio", 2, 2) == (lote["nome"], lote["total"], lote["by_status"]["PENDING"])
        await there.drained()

        done = (await vera.get(f"/api/lotes/{lote['id']}")).json()
        assert (1, 1, True) == (
            done["by_status"]["DONE"],
            done["by_status"]["ERROR"],
            done["finished"],
        )
        lines = (await vera.get(f"/api/lotes/{lote['id']}/export")).text.splitlines()
        assert 3 == len(lines)
        assert ",'+cmd," in lines[2]
        shop = (await vera.get(f"/api/quotes?lote={lote['id']}&status=DONE")).json()["items"][0]
        sheet = (await vera.get(f"/api/lotes/{lote['id']}/export?format=excel")).content
        priced = sheet.decode("utf-8-sig").splitlines()[1]
        assert sheet.startswith(b"\xef\xbb\xbf"), "else a spreadsheet takes it for Windows-1252"
        assert f";{shop['price']};BRL;".replace(".", ",") in priced
        told = (await vera.get(f"/api/lotes/{lote['id']}/export?format=json")).json()
        assert ["DONE", "ERROR"] == [each["status"] for each in told]
        assert ["motivo", "lojas", "links"] == lines[0].split(",")[8:11]
        stores, links = told[0]["lojas"].split(" | "), told[0]["links"].split(" | ")
        assert len(stores) == len(links) > 1
        assert all(each.startswith("http") for each in links)
        assert told[0]["completed_at"] is not None
        assert "nenhum preço aceito" == told[1]["motivo"]
        assert [None, "no_price"] == [each["error_code"] for each in told]
        status = (await vera.get(f"/api/system/batch-status/{lote['id']}")).json()
        assert {"no_price": 1} == status["errors"]
        page = (await vera.get(f"/api/quotes?lote={lote['id']}&status=ERROR")).json()
        assert [told[1]["id"]] == [each["id"] for each in page["items"]]


async def test_a_table_that_is_imported_twice_under_a_key_is_one_lote(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        under = {"content-type": "text/csv", "Idempotency-Key": "maio"}

        def imported(table: str) -> Awaitable[httpx2.Response]:
            return people["operator"].post("/api/lotes/import", content=table, headers=under)

        answers = await asyncio.gather(*(imported("descricao\nmesa\n") for _ in range(5)))
        other = await imported("descricao\ncama\n")

        assert [200] * 4 + [201] == sorted(each.status_code for each in answers)
        assert 1 == len({each.json()["id"] for each in answers})
        assert (409, "idempotency_mismatch") == (other.status_code, other.json()["code"])
        assert [(1,)] == await there.rows("SELECT count(*) FROM quotes")


async def test_a_table_as_a_spreadsheet_writes_it_in_brazil_is_read(database_url, tmp_path):
    """In Windows-1252, with headings and words as people write them."""
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        table = "Descrição;TIPO; Código\r\nCadeira giratória;Produto;A\r\nFiat Uno 2012;Veículo;B\r\n"
        taken = await people["operator"].post(
            "/api/lotes/import",
            content=table.encode("cp1252"),
            headers={"content-type": "text/csv"},
        )

        assert 201 == taken.status_code, taken.text
        assert [
            ("Cadeira giratória", "product", "A"),
            ("Fiat Uno 2012", "vehicle", "B"),
        ] == await there.rows("SELECT description, kind, code FROM quotes ORDER BY id")


# A row, the column that is wrong, and what is said of it.
SPOILED = (
    ((" ", "produto", "A"), "descricao", "is shorter than 1"),
    (("--- ? ---", "", ""), "descricao", "says nothing"),
    (("x" * 10_001, "", ""), "descricao", "is longer than 10000"),
    (("#REF!", "", ""), "descricao", "is an error of the spreadsheet: #REF!"),
    (("=PROCV(A2;B:C;2)", "", ""), "descricao", "is a formula"),
    (("geladeira \ufffd", "", ""), "descricao", "cannot be read"),
    (("descricao", "tipo", "codigo"), "descricao", "is the name of the column again"),
    (("mesa", "", "", "e cadeira"), "descricao", "has more cells than columns"),
    (("mesa", "barco", ""), "tipo", "is none of `produto`, `veículo`, `automático`"),
    (("mesa", "VERDADEIRO", ""), "tipo", "is none of `produto`, `veículo`, `automático`"),
    (("mesa", "", "c" * 101), "codigo", "is longer than 100"),
    (("mesa", "", "7,89123E+12"), "codigo", "was shortened by the spreadsheet to 7,89123E+12"),
    (("mesa", "", "A-1"), "codigo", "A-1 is that of line 2 already"),
)


@pytest.mark.parametrize("form", ["csv", "utf-16", "xlsx"])
async def test_every_bad_row_is_named_and_the_good_ones_can_be_imported(
    database_url, tmp_path, form
):
    rows = [["descricao", "tipo", "codigo"], ["geladeira", "produto", "A-1"]]
    rows += [list(row) for row, _, _ in SPOILED] + [["Fiat Uno 2012", "veículo", ""]]
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows(rows)
    table = {
        "csv": lambda: text.getvalue().encode(),
        "utf-16": lambda: ("sep=;\r\n" + text.getvalue()).encode("utf-16"),
        "xlsx": lambda: of_rows(rows),
    }[form]()
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):

        async def imported(only_good: str) -> httpx2.Response:
            path = f"/api/lotes/import?nome=maio&so_boas={only_good}"
            return await people["operator"].post(
                path, content=table, headers={"content-type": "text/csv"}
            )

        refused = (await imported("false")).json()
        first = 4 if form == "utf-16" else 3  # the line of the first bad row
        wanted = [
            (f"line {n}: {column}", why) for n, (_, column, why) in enumerate(SPOILED, first)
        ]
        assert len(wanted) == len(refused["errors"])
        for (path, why), flaw in zip(wanted, refused["errors"], strict=True):
            said = why.replace("of line 2", f"of line {first - 1}")
            assert (path, True) == (flaw["path"], said in flaw["message"]), flaw
        assert (13, 2) == (refused["bad"], refused["good"])
        assert "13 rows of 15 cannot be imported; nothing was imported" == refused["detail"]
        assert [(0,)] == await there.rows("SELECT count(*) FROM quotes")

        taken = await imported("true")
        assert (201, 2, 13) == (
            *(taken.status_code, taken.json()["total"], taken.json()["left_out"]),
        )
        assert [("geladeira", "product", "A-1"), ("Fiat Uno 2012", "vehicle", None)] == (
            await there.rows("SELECT description, kind, code FROM quotes ORDER BY id")
        )


async def test_of_very_many_bad_rows_the_first_are_named(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        table = "descricao;tipo\n" + "mesa;barco\n" * 1_000
        refused = await people["operator"].post(
            "/api/lotes/import?so_boas=true",
            content=table,
            headers={"content-type": "text/csv"},
        )

        assert 422 == refused.status_code, "none of its rows is good"
        assert (200, 1_000, 0) == (
            *(len(refused.json()["errors"]), refused.json()["bad"], refused.json()["good"]),
        )


async def test_a_lote_is_exported_as_a_workbook(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        quotes = [{"descricao": there.catalogue.describe(2)}]
        made = (await people["operator"].post("/api/lotes", json={"quotes": quotes})).json()
        await there.drained()
        address = f"/api/lotes/{made['id']}/export?format="
        told = (await people["viewer"].get(address + "json")).json()[0]
        answer = await people["viewer"].get(address + "xlsx")
        (tmp_path / "a.xlsx").write_bytes(answer.content)
        sheet = read_sheet(str(tmp_path / "a.xlsx"), 10).csv.encode()
        [_, headings], [_, row] = read_rows(io.BytesIO(sheet), most=10, refusal=say("no text"))

        assert 'attachment; filename="lote-1.xlsx"' == answer.headers["content-disposition"]
        found = dict(zip(headings, row, strict=False))
        assert (told["price"], told["lojas"], told["links"]) == (
            *(float(found["price"]), found["lojas"], found["links"]),
        )
        days = float(found["completed_at"])
        local = datetime.fromisoformat(told["completed_at"]).astimezone(
            ZoneInfo(there.settings.timezone)
        )
        at = datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=days)
        assert abs(at - local.replace(tzinfo=UTC)) < timedelta(seconds=1)


async def test_a_code_that_comes_twice_is_named_and_nothing_is_taken(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        olga = people["operator"]
        table = "descricao;codigo\nMesa;\nMesa;A-1\nBanco;\nCadeira;A-1\n"
        quotes = [{"descricao": each, "codigo": "A-1"} for each in ("Mesa", "Cadeira")]
        lines = await olga.post(
            "/api/lotes/import", content=table, headers={"content-type": "text/csv"}
        )
        body = await olga.post("/api/lotes", json={"quotes": quotes})

        assert 422 == lines.status_code == body.status_code
        [flaw] = lines.json()["errors"]
        assert ("line 5: codigo", "A-1 is that of line 3 already") == (
            flaw["path"],
            flaw["message"],
        )
        assert (1, 3) == (lines.json()["bad"], lines.json()["good"])
        [flaw] = body.json()["errors"]
        assert ("body.quotes", "name the codigo A-1 twice") == (flaw["path"], flaw["message"])
        assert [(0,)] == await there.rows("SELECT count(*) FROM quotes")


async def test_what_ended_says_how_and_what_can_still_be_done(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        olga = people["operator"]
        added = await there.lote(range(2, 3))
        bad = await there.quote(7, Odd.ZERO)
        await there.drained()
        [good] = added.quotes
        done = (await olga.get(f"/api/quotes/{good}")).json()
        failed = (await olga.get(f"/api/quotes/{bad}")).json()
        recovered = await olga.post(f"/api/system/recover-quote/{good}")
        resumed = await olga.post(f"/api/system/resume-batch/{added.lote}")

        assert ("DONE", 1, None) == _ended(done), "the attempt that went well is one"
        assert ("ERROR", 1) == _ended(failed)[:2]
        assert "pages says a price" in failed["error_message"]
        assert 409 == recovered.status_code == resumed.status_code
        assert (
            f"quote {good} has ended as DONE: nothing to recover" == recovered.json()["detail"]
        )
        assert f"/api/batches/{added.lote}/retry-failed" in resumed.json()["detail"]


def _ended(told: dict[str, Any]) -> tuple[Any, ...]:
    return told["status"], told["attempt_number"], told["error_message"]


async def test_the_stats_have_exactly_the_keys_of_the_example(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        vera = people["viewer"]
        before = (await vera.get("/api/system/processing-stats")).json()
        await there.quote(2)
        await there.drained()
        after = (await vera.get("/api/system/processing-stats")).json()

        assert {
            "total_processing": 0,
            "stuck_count": 0,
            "by_checkpoint": {},
            "avg_processing_time_seconds": None,
        } == before
        assert before.keys() == after.keys()
        assert after["avg_processing_time_seconds"] is not None
        assert {"status": "healthy"} == (await vera.get("/api/system/health")).json()


HELD = (
    "UPDATE jobs SET state = 'running', runner = 'dead', epoch = 1, turn = NULL, failures = 1,"
    " started_at = (SELECT clock()), run_at = NULL"
)


async def left_by_a_dead_runner(there: World, n: int) -> int:
    """A quote that a runner holds whose lease is over."""
    quote = await there.quote(n)
    database = await there.app.database()
    boot = Boot(
        id="dead", name="worker-1", process=Process("elsewhere", 1, "1"), version="", slots=1,
        knows=("quotes.quote@1",),
    )  # fmt: skip
    await database.write(lambda tx: store.boot_runner(tx, boot, 60.0), verb="boot")
    await change(database, f"{HELD} WHERE kind = 'quotes.quote'")
    await change(database, "UPDATE runners SET lease_until = clock_in(-1) WHERE boot = 'dead'")
    return quote


async def test_a_stuck_quote_is_listed_counted_and_recovered_once(database_url, tmp_path):
    """Q7 H-11: one question for stats and list; k recoveries make one new attempt."""
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        olga, vera = people["operator"], people["viewer"]
        quote = await left_by_a_dead_runner(there, 2)
        [stuck] = (await vera.get("/api/system/stuck-quotes")).json()
        stats = (await vera.get("/api/system/processing-stats")).json()
        assert (quote, "INIT", "worker-1", True) == (
            stuck["id"],
            stuck["processing_checkpoint"],
            stuck["worker_id"],
            stuck["lease_expired"],
        )
        assert ({"INIT": 1}, 1) == (stats["by_checkpoint"], stats["stuck_count"])

        await there.app.submit("recover_stuck_quotes")
        await change(await there.app.database(), f"{HELD} WHERE kind = 'recover_stuck_quotes'")
        recovered = [(await olga.post("/api/system/recover-stuck")).json() for _ in range(3)]
        assert [1, 0, 0] == [each["recovered"] for each in recovered], "quotes alone"
        assert "dead" not in {each.runner for each in await there.app.jobs()}
        await there.drained()
        seen = await there.seen(quote)
        assert "DONE" == seen["status"]
        assert (1, 1) == (there.calls("anthropic"), there.calls("serpapi"))
        assert 2 == seen["attempt_number"], "the one that was lost, and the one that went well"
        again = await olga.post(f"/api/system/recover-quote/{quote}")
        assert 409 == again.status_code


@pytest.mark.parametrize("lost", [0, 1])
async def test_q6_cleaning_up_touches_nothing_that_somebody_holds(database_url, tmp_path, lost):
    """Also one that runners were lost with, and that is taken up with care, is too old some day."""
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        olga = people["operator"]
        held = await left_by_a_dead_runner(there, 2)
        database = await there.app.database()
        await change(
            database, "UPDATE runners SET lease_until = clock_in(60) WHERE boot = 'dead'"
        )
        await change(database, "UPDATE jobs SET started_at = clock_in(-90000)")
        await change(database, f"UPDATE jobs SET lost = {lost}")  # noqa: S608 — a number

        assert 0 == (await olga.post("/api/system/cleanup-old")).json()["cleaned"]
        await change(
            database, "UPDATE runners SET lease_until = clock_in(-1) WHERE boot = 'dead'"
        )
        await there.app.runners.take_back()
        await change(database, "UPDATE jobs SET turn = 1")
        assert {"cleaned": 1, "parked": 0, "quotes": [held]} == (
            await olga.post("/api/system/cleanup-old")
        ).json()
        await there.drained()

        seen = await there.seen(held)
        assert ("ERROR", "deadline") == (seen["status"], seen["error_code"])


async def test_h20_a_viewer_looks_and_changes_nothing(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        asked(there, database_url) as people,
    ):
        quote = await there.quote(2)
        for path in (
            "/api/quotes",
            "/api/system/recover-stuck",
            "/api/system/cleanup-old",
            f"/api/system/recover-quote/{quote}",
            f"/api/quotes/{quote}/cancel",
        ):
            assert (
                403 == (await people["viewer"].post(path, json={"descricao": "x"})).status_code
            )
        canceled = await people["operator"].post(f"/api/quotes/{quote}/cancel")
        assert "CANCELED" == canceled.json()["status"]
        bad = await people["operator"].post(
            "/api/lotes/import", content="nome\nx\n", headers={"content-type": "text/csv"}
        )
        assert (422, True) == (bad.status_code, "descricao" in bad.text)
