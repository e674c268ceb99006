"""Tables and uploads of strangers are read piece by piece: what they cost ends where they are refused."""

import io
import tracemalloc
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote_plus

import pytest

from retoma.apps.documents.intake import read_manifest
from retoma.apps.quotes.service.tables import MOST, read_table
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.tables import LONGEST_ROW, plain, read_rows
from retoma.toolkit.uploads import LONGEST, MOST_FIELDS, spooled, spooled_form
from retoma.web import Refusal
from retoma.words import say

MIB = 1 << 20
ODD = "Ação; + & = % 100 %41 é 日本"


def rows(content: bytes, most: int = 100) -> list[tuple[int, list[str]]]:
    return list(
        read_rows(io.BytesIO(content), most=most, refusal=say("the manifest is no text"))
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_is_read_as_spreadsheets_write_it(separator, encoding, end):
    lines = [
        f'Código{separator}"Des{separator}crição"',
        "",
        f'1{separator}"a{end}b"',
        f"2{separator}ç",
    ]
    found = rows(end.join(lines).encode(encoding))

    assert [
        (1, ["Código", f"Des{separator}crição"]),
        (2, []),
        (4, ["1", f"a{end}b"]),
        (5, ["2", "ç"]),
    ] == found
    assert "codigo" == plain(" CÓDIGO ")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_table_in_utf_16_is_read_by_its_mark(encoding):
    text = "Descrição\ttipo\r\ngeladeira ção\tproduto\r\n"
    mark = "" if encoding == "utf-16" else "\ufeff"

    found = rows((mark + text).encode(encoding))

    assert [(1, ["Descrição", "tipo"]), (2, ["geladeira ção", "produto"])] == found
    with pytest.raises(BadInput, match="no text"):
        rows(b"\xff\xfea\0b")


def test_the_first_line_may_name_the_separator_alone():
    assert [(2, ["a,b", "c"])] == rows(b"sep=;\r\na,b;c\r\n")
    assert [(2, ["a,b", "c"])] == rows(b'"sep=|"\na,b|c')
    assert [(2, ["a", "b"])] == rows("SEP=\t\na\tb".encode("utf-16"))
    assert [] == rows(b"sep=;\n")


def test_a_separator_within_quotes_is_none():
    assert [(1, ["Descrição, completa, toda", "tipo"])] == rows(
        '"Descrição, completa, toda";tipo'.encode()
    )


def test_a_row_is_bounded_over_all_its_lines():
    quoted = b'"' + b"a\n" * (LONGEST_ROW // 2)
    for content in (b"a" * (LONGEST_ROW + 1), b"," * (LONGEST_ROW + 1), quoted):
        with pytest.raises(BadInput, match=f"at most {LONGEST_ROW} characters"):
            rows(b"codigo\n" + content, most=10**9)
    assert LONGEST_ROW == len(rows(b"a" * LONGEST_ROW)[0][1][0])
    with pytest.raises(BadInput, match="more than 3 lines"):
        rows(b"\n\n\n\n", most=3)


def peak(read: Callable[[], object]) -> int:
    """Bytes that were held at once, at most."""
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        b"codigo,arquivo\n" + b"a\n" * (2 * MIB),
        b"codigo,arquivo\n" + b"\n" * (4 * MIB),
        b"codigo,arquivo\n" + b"," * (4 * MIB),
        b"codigo,arquivo\n" + b'"a\n' * MIB,
    ],
    ids=["lines", "blank lines", "separators", "quotes that never close"],
)
def test_a_manifest_is_refused_before_its_lines_are_made(content):
    file = io.BytesIO(content)
    assert peak(lambda: read_manifest(file)) < 8 * MIB


@pytest.mark.parametrize(
    "content",
    [
        b"descricao\n" + b"a\n" * (2 * MIB),
        b"descricao\n" + b"\n" * (4 * MIB),
        b"descricao\n" + b"," * (4 * MIB),
        b"descricao" + b"," * (4 * MIB),
    ],
    ids=["lines", "blank lines", "separators", "columns"],
)
def test_a_table_is_refused_before_its_lines_are_made(content):
    file = io.BytesIO(content)
    assert peak(lambda: read_table(file)) < 16 * MIB


def test_of_a_table_no_more_quotes_are_made_than_a_lote_has():
    assert MOST == len(read_table(io.BytesIO(b"descricao\n" + b"a\n" * MOST)).quotes)
    with pytest.raises(BadInput, match=f"more than {MOST} quotes"):
        read_table(io.BytesIO(b"descricao\n" + b"a\n" * (MOST + 1)))


# — uploads —


async def pieces(raw: bytes, by: int) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), by):
        yield raw[at : at + by]


async def endless(n: int) -> AsyncIterator[bytes]:
    for _ in range(n):
        yield b"a" * 65_536


async def test_an_upload_is_never_whole_in_memory():
    tracemalloc.start()
    try:
        async with spooled(endless(320)) as file:
            assert 20 * MIB == file.seek(0, 2)
        async with spooled_form(endless_form(), "text") as (file, fields):
            assert 20 * MIB == file.seek(0, 2)
            assert {"nome": "maio"} == fields
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()


async def endless_form() -> AsyncIterator[bytes]:
    yield b"nome=maio&text="
    async for each in endless(320):
        yield each


@pytest.mark.parametrize("by", [1, 2, 3, 7, 100_000])
async def test_a_form_is_read_as_a_browser_wrote_it(by):
    raw = f"csrf=x&nome={quote_plus(ODD)}&text={quote_plus(ODD * 20_000)}&orcamento=".encode()
    async with spooled_form(pieces(raw, by), "text") as (file, fields):
        assert {"csrf": "x", "nome": ODD, "orcamento": ""} == fields
        assert ODD * 20_000 == file.read().decode()


@pytest.mark.parametrize("by", [1, 7, 100_000])
async def test_a_data_url_stands_for_its_bytes(by):
    content = bytes(range(256)) * 1_000
    url = f"data:application/x;base64,{b64encode(content).decode()}"
    async with spooled_form(pieces(f"text={quote_plus(url)}&nome=a".encode(), by), "text") as (
        file,
        fields,
    ):
        assert content == file.read()
        assert {"nome": "a"} == fields
    with pytest.raises(Refusal, match="bad_request"):
        async with spooled_form(pieces(b"text=data:a;base64,%C3%A9", by), "text"):
            pass


@pytest.mark.parametrize(
    "raw",
    [
        b"a",
        b"text=a&b",
        b"text=a&text=b",
        b"&".join(b"a%d=1" % n for n in range(MOST_FIELDS + 2)),
        b"&" * 1_000,
        b"a" * (LONGEST + 1),
    ],
)
async def test_what_is_no_form_is_refused(raw):
    with pytest.raises(Refusal, match="bad_request"):
        async with spooled_form(pieces(raw, 64), "text"):
            pass
