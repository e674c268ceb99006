"""XLSX files of strangers: read as a spreadsheet shows them, and within bounds whatever they claim."""

import io
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from retoma.engine.isolation.isolate import Isolate
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.spreadsheets import MOST_TEXT, read_sheet
from retoma.toolkit.tables import as_text_table, read_rows
from retoma.web.workbook import Workbook
from retoma.words import say
from tests.apps.workbooks import WORKBOOK, of_rows, workbook

MOST = 1_000
TEXT = '<c r="{0}" t="inlineStr"><is><t>{1}</t></is></c>'


@pytest.fixture
def read(tmp_path):
    def read(content: bytes):
        path = tmp_path / "a.xlsx"
        path.write_bytes(content)
        return read_sheet(str(path), MOST)

    return read


@pytest.fixture
def isolate() -> Iterator[Isolate]:
    made = Isolate()
    yield made
    made.close()


def lines(text: str) -> list[tuple[int, list[str]]]:
    return list(read_rows(io.BytesIO(text.encode()), most=MOST, refusal=say("no text")))


def test_a_sheet_is_read_as_a_person_sees_it(read):
    found = read(
        of_rows(
            [
                ["Descrição", "tipo", "codigo"],
                [],
                ['TV 50" <4K> & som;,', "", 1001.0],
                ["", "produto", 7, True],
                ["a\nb_x000D_", "#REF!", 0.5, False, 1e15, 12345678901234567890],
            ]
        )
    )

    assert [
        (1, ["Descrição", "tipo", "codigo"]),
        (2, []),
        (3, ['TV 50" <4K> & som;,', "", "1001"]),
        (4, ["", "produto", "7", "VERDADEIRO"]),
        (5, ["a b", "#REF!", "0.5", "FALSO", "1000000000000000", "12345678901234567890"]),
    ] == lines(found.csv)
    assert found.refusal is None


def test_rich_text_is_one_text_and_its_reading_aloud_is_none(read):
    strings = "<si><r><t>gela</t></r><r><t>deira</t></r><rPh><t>x</t></rPh></si>"
    sheet = (
        '<row><c t="s"><v>0</v></c><c t="s"><v>9</v></c><c t="str"><f>A1</f><v>y</v></c></row>'
    )

    assert [(1, ["geladeira", "", "y"])] == lines(read(workbook(sheet, strings)).csv)


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (workbook("", workbook="<a"), "broken"),
        (workbook("<row><c>"), "broken"),
        (workbook("", workbook=WORKBOOK.replace("rId1", "rId7")), "no_spreadsheet"),
        (workbook("", workbook='<!DOCTYPE a [<!ENTITY b "b">]><a>&b;</a>'), "broken"),
        (
            workbook('<row r="1000001">' + TEXT.format("A1000001", "a") + "</row>"),
            "too_many_rows",
        ),
        (workbook("<row>" + TEXT.format("ZZZ1", "a") + "</row>"), "too_large"),
        (workbook(f'<row r="2">{TEXT.format("A2", "a")}</row>' * 2), "broken"),
        (workbook("<row/>" * 1_000_001), "too_large"),
        (workbook("", strings="<si/>" * 600_000), "too_large"),
        (
            workbook(
                '<row><c t="s"><v>0</v></c></row>' * 900,
                strings=f"<si><t>{'a' * 32_000}</t></si>",
            ),
            "too_large",
        ),
        (workbook("<row/>", strings=f"<si><t>{'a' * (MOST_TEXT + 1)}</t></si>"), "too_large"),
        (workbook(" " * (65 << 20)), "too_large"),
        (b"PK\x03\x04" + b"\0" * 100, "broken"),
    ],
    ids=[
        *("no XML", "breaks off", "no sheet", "declares", "a billion rows", "columns"),
        *("rows twice", "elements", "strings", "strings again", "one string", "bomb", "no ZIP"),
    ],
)
def test_a_hostile_workbook_is_refused(read, content, refusal):
    assert refusal == read(content).refusal


async def test_a_workbook_is_read_in_a_confined_child(isolate):
    rows = [["descricao"], ["açaí"]]
    async with as_text_table(io.BytesIO(of_rows(rows)), isolate, most=MOST) as table:
        assert [(1, ["descricao"]), (2, ["açaí"])] == lines(table.read().decode())
    text = io.BytesIO(b"descricao\na\n")
    async with as_text_table(text, isolate, most=MOST) as table:
        assert text is table
    for content, said in (
        (workbook("<row><c>"), "is damaged"),
        (b"\xd0\xcf\x11\xe0" + bytes(512), "old XLS format"),
        (workbook('<row r="9999">' + TEXT.format("A9999", "a") + "</row>"), "more than 1000"),
    ):
        with pytest.raises(BadInput, match=said):
            async with as_text_table(io.BytesIO(content), isolate, most=MOST):
                pass


def test_a_workbook_that_we_write_is_read_back(read):
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    row = ["=1+1 <ç>\0", Decimal("1234.50"), None, True, 7, at, date(2026, 3, 1), 10**17]
    file, names = io.BytesIO(), [f"a{n}" for n in range(8)]
    made = Workbook(file, names, "America/Sao_Paulo")
    made.add([SimpleNamespace(**dict(zip(names, row, strict=True)))])
    made.end()

    [_, (_, found)] = lines(read(file.getvalue()).csv)

    assert "=1+1 <ç>" == found[0]
    assert ["1234.5", "", "VERDADEIRO", "7"] == found[1:5]
    assert (46082.375, "46082", str(10**17)) == (float(found[5]), found[6], found[7])
