"""Bad input, line by line: refused at the door, or an error of that one quote with its code; nothing else is disturbed."""

import csv
import io
import json
from typing import Any

from retoma.apps.quotes import APP
from retoma.apps.quotes.sandbox import Odd
from tests.apps.people import people
from tests.apps.quotes.aids import world
from tests.apps.quotes.test_story import number

JSON = {"content-type": "application/json"}
# What is wrong with it, the code of its quote, and what is told of each of its pages.
BAD: dict[Odd, tuple[str, str | None]] = {
    Odd.NO_TOOL: ("bad_plan", None),
    Odd.NOT_JSON: ("bad_plan", None),
    Odd.WRONG_SHAPE: ("bad_plan", None),
    Odd.CUT_SHORT: ("bad_plan", None),
    Odd.REFUSED: ("bad_plan", None),
    Odd.NO_RESULTS: ("no_results", None),
    Odd.UNKNOWN_CAR: ("no_vehicle", None),
    Odd.BLOCKED: ("no_price", "blocked"),
    Odd.CAPTCHA: ("no_price", "blocked"),
    Odd.GONE: ("no_price", "page_gone"),
    Odd.NO_PRICE: ("no_price", "price_missing"),
    Odd.ON_REQUEST: ("no_price", "price_on_request"),
    Odd.ZERO: ("no_price", "price_not_positive"),
    Odd.NEGATIVE: ("no_price", "price_not_positive"),
    Odd.DOLLARS: ("no_price", "foreign_currency"),
    Odd.NESTED: ("no_price", "page_too_deep"),
    Odd.SWOLLEN: ("no_price", "too_large"),
    Odd.ENDLESS: ("no_price", "too_large"),
    Odd.TO_LOOPBACK: ("no_price", "ssrf_blocked"),
    Odd.TO_METADATA: ("no_price", "ssrf_blocked"),
    Odd.TO_PRIVATE: ("no_price", "ssrf_blocked"),
}


async def test_what_is_wrong_with_one_quote_of_a_lote_disturbs_no_other(database_url, tmp_path):
    """Every line ends in ERROR with its code, each of its pages with one; the good between them are done."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        await there.app.knobs.set("quotes.max_products", 2)
        good = number(there, vehicle=False), number(there, vehicle=True)
        lines = [there.catalogue.describe(7, odd) for odd in BAD]
        texts = [there.catalogue.describe(good[0]), *lines, there.catalogue.describe(good[1])]
        body = {"quotes": [{"descricao": text} for text in texts]}
        lote = (await who["operator"].post("/api/lotes", json=body)).json()
        await there.drained()
        told = (await who["viewer"].get(f"/api/lotes/{lote['id']}/export?format=json")).json()
        shown = [(await who["viewer"].get(f"/api/quotes/{each['id']}")).json() for each in told]

        assert ["DONE", *["ERROR"] * len(BAD), "DONE"] == [each["status"] for each in told]
        ends = dict(zip(BAD, shown[1:-1], strict=True))
        assert BAD == {odd: (each["error_code"], *pages(each)) for odd, each in ends.items()}
        done = (await who["viewer"].get(f"/api/lotes/{lote['id']}")).json()
        assert (True, 2, len(BAD)) == (
            done["finished"],
            done["by_status"]["DONE"],
            done["by_status"]["ERROR"],
        )


def pages(quote: dict[str, Any]) -> set[str | None]:
    """What was told of its pages: the same of each."""
    tested = (quote["resume_data"] or {}).get("tested_products", [])
    assert {None} >= {each["price"] for each in tested}
    codes = {each["code"] for each in tested} or {None}
    assert 1 == len(codes), codes
    return codes


REFUSED: list[tuple[Any, str]] = [
    ({"descricao": ""}, "descricao"),
    ({"descricao": "  \n "}, "descricao"),
    ({"descricao": "a\0b"}, "descricao"),
    ({"descricao": "\ud800"}, "descricao"),
    ({"descricao": "x" * 1_000_000}, "descricao"),
    ({"descricao": 7}, "descricao"),
    ({"descricao": None}, "descricao"),
    ({}, "descricao"),
    ({"descricao": "geladeira", "tipo": "barco"}, "tipo"),
    ({"descricao": "geladeira", "tipo": None}, "tipo"),
    ({"descricao": "geladeira", "codigo": "x" * 101}, "codigo"),
    ({"descricao": "geladeira", "codigo": "a\0b"}, "codigo"),
    ({"descricao": "geladeira", "preco": 1}, "preco"),
]


async def test_what_makes_no_sense_is_refused_at_the_door_and_changes_nothing(
    database_url, tmp_path
):
    """Alone, as one line of a lote and as one of a table: all of it or nothing, by name and number."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        olga = who["operator"]
        for line, where in REFUSED:
            lote = {"quotes": [{"descricao": "geladeira"}, line]}
            for path, body in (("/api/quotes", line), ("/api/lotes", lote)):
                refused = await olga.post(path, content=json.dumps(body), headers=JSON)
                assert refused.status_code in (413, 422), (line, refused.text)
                assert refused.status_code == 413 or where in refused.text
        for table in TABLES:
            refused = await olga.post(
                "/api/lotes/import", content=table, headers={"content-type": "text/csv"}
            )
            assert refused.status_code in (413, 422), (table[:80], refused.text)
        for text in BODIES:
            refused = await olga.post("/api/lotes", content=text, headers=JSON)
            assert refused.status_code in (400, 422), (text, refused.text)

        assert [(0,)] == await there.rows("SELECT count(*) FROM quotes")
        assert [(0,)] == await there.rows("SELECT count(*) FROM jobs")
        assert 0 == there.calls("anthropic")


BODIES = [
    *(b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 200_000, b'{"a":' * 200_000),
    b'{"quotes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"quotes": [{"descricao": "a"}], "quotes": 1e999}',
]
TABLES = [
    b"",
    b"\xff\xfe",
    b"descricao\n",
    b"nome\ngeladeira\n",
    b"descricao;tipo\ngeladeira;product\n;product\n",
    b"descricao;tipo\ngeladeira;barco\n",
    b"descricao\n" + b"x" * 1_000_000 + b"\n",
    b'descricao\n"geladeira\n',
    b"descricao;codigo\na;1\nb;1\n",
    b"descricao\n" + b"a\n" * 10_001,
]


FORMULAS = ("=", "+", "-", "@", "\t", "\r")


async def test_no_cell_of_a_table_is_a_formula(database_url, tmp_path):
    """Neither what somebody typed nor what anybody answered begins one; JSON tells it as it was."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        evil = [f'{begins}HYPERLINK("http://x","y")' for begins in FORMULAS]
        lines = [{"descricao": f"{each};a,b", "codigo": each} for each in evil]
        made = await who["operator"].post("/api/lotes", json={"quotes": lines})
        assert 201 == made.status_code, made.text
        answer = await who["viewer"].get(f"/api/lotes/{made.json()['id']}/export")
        plain = await who["viewer"].get(f"/api/lotes/{made.json()['id']}/export?format=json")

        first, *rows = csv.reader(io.StringIO(answer.text, newline=""))
        assert {len(first)} == {len(row) for row in rows}
        assert [] == [cell for row in rows for cell in row if cell.startswith(FORMULAS)]
        assert [f"'{each}" for each in evil] == [row[first.index("codigo")] for row in rows]
        assert evil == [each["codigo"] for each in plain.json()]
        assert "attachment" in answer.headers["content-disposition"]
