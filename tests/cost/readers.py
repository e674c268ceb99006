"""The doors of readers: pages, answers, tables, archives, documents, charsets, headers, messages."""

import gzip
import io
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from retoma.apps.ads.clients.passed_over import Without
from retoma.apps.ads.service.intake import Intake
from retoma.apps.ads.service.intake import read as read_pasted
from retoma.apps.documents.clients.archives import Archive
from retoma.apps.documents.clients.multipart import events_of
from retoma.apps.documents.intake import read_manifest
from retoma.apps.embeddings.providers import OpenAI
from retoma.apps.matches.clients.parsers import draft_match, parse_match, parse_round
from retoma.apps.matches.sites import sites
from retoma.apps.quotes.clients.reading import look_at_page, read_page
from retoma.apps.quotes.clients.shops import LIMITS
from retoma.apps.quotes.model import NotAPrice
from retoma.apps.quotes.service.tables import read_table
from retoma.dispatch.message import RUN, check_message
from retoma.engine.isolation.bounded_json import parse_json
from retoma.engine.isolation.charset import charset_of, decode_text
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.rules.errors import BadInput, Permanent, Transient
from retoma.markup import TooHard, depth_of
from retoma.outbound import Outbound
from retoma.outbound.answer import Answer
from retoma.outbound.failure_types import parse_retry_after
from retoma.outbound.unpack import Body, TooLarge, Unreadable
from retoma.programs.worker.adapters import ADAPTERS
from retoma.programs.writer.items import Broken, Items, NoArray
from retoma.toolkit.readers.reading import read_document
from retoma.toolkit.spreadsheets import read_sheet
from tests.apps.workbooks import workbook
from tests.cost.family import KIBIBYTE, MEBIBYTE, Cost, Family
from tests.cost.inputs import JSON

REFUSALS: Final = (
    *(
        ValueError,
        BadInput,
        Permanent,
        Transient,
        NotAPrice,
        Broken,
        NoArray,
        TooHard,
        TooLarge,
        Unreadable,
    ),
)
PIECE: Final = 64 * KIBIBYTE
# Of pages, what the parser below all readers might take the square of; and what some look for.
FEW: Final = frozenset({"attributes", "elements within elements"})
OWN: Final = frozenset({"ads", "rows of ads"})
SITE: Final = sites()["brasileirao"].read_by("classic", "modern")

PAGES: Final = Cost(cpu=6.0, memory=250)
WORDS: Final = Cost(cpu=2.0, memory=60)
VALUES: Final = Cost(cpu=2.0, memory=130)
PIECES: Final = Cost(cpu=6.0, memory=40)
ROWS: Final = Cost(cpu=6.0, memory=60)
HEADS: Final = Cost(cpu=10.0, memory=60)


@asynccontextmanager
async def opened() -> AsyncIterator[Isolate]:
    isolate = Isolate()
    try:
        yield isolate
    finally:
        isolate.close()


# — what strangers send —

HTML: Final[Mapping[str, Callable[[int], str]]] = {
    "elements within elements": lambda n: "<div>" * (n // 5),
    "formatting that is opened anew": lambda n: "<p><b><i><a>" * (n // 12),
    "tables out of place": lambda n: "<table><tr><div>" * (n // 16),
    "attributes": lambda n: "<p " + "".join(f"a{k}=1 " for k in range(n // 8)) + ">",
    "one attribute": lambda n: '<p class="' + "price " * (n // 6) + '">',
    "entities": lambda n: "&amp;&#65;&notanentity" * (n // 22),
    "comments": lambda n: "<!--" * (n // 4),
    "ends alone": lambda n: "</div>" * (n // 6),
    "beginnings of tags": lambda n: "<a " * (n // 3),
    "quotes": lambda n: "<a b=\"'" * (n // 7),
    "scripts": lambda n: '<script type="application/ld+json">[' * (n // 36),
    "prices": lambda n: '<i itemprop="price">R$</i>' * (n // 26),
    "prices of blanks": lambda n: '<i class="price">R$' + " " * n + "x</i>",
    "prices of digits": lambda n: '<i class="price">' + "1.000," * (n // 6) + "</i>",
    "a script of JSON": lambda n: (
        '<script type="application/ld+json">' + "[" * 900 + "1," * (n // 2) + "</script>"
    ),
    "objects of JSON": lambda n: (
        '<script type="application/ld+json">['
        + ",".join(['{"@type":"Offer"}'] * (n // 18))
        + "]</script>"
    ),
    "matches": lambda n: '<main data-page="match" data-status="x">' + "<li>a</li>" * (n // 10),
    "ads": lambda n: '<section class="cards">' + '<article class="ad">' * (n // 20),
    "rows of ads": lambda n: '<table id="anuncios"><tbody>' + "<tr><td>a" * (n // 9),
    "marks on one letter": lambda n: "<p>a" + "\u0300" * (n // 2),
}
TEXT: Final[Mapping[str, Callable[[int], bytes]]] = {
    "letters": lambda n: b"a" * n,
    "no UTF-8": lambda n: b"\xff\xe9" * (n // 2),
    "half of UTF-16": lambda n: b"\x00\xd8" * (n // 2),
    "blanks": lambda n: b" " * n + b"x",
    "lines": lambda n: b"\n" * n,
    "marks on one letter": lambda n: ("a" + "\u0300" * (n // 2)).encode(),
}
TABLE: Final[Mapping[str, Callable[[int], bytes]]] = {
    "lines": lambda n: b"codigo,arquivo\n" + b"a\n" * (n // 2),
    "empty lines": lambda n: b"codigo,arquivo\n" + b"\n" * n,
    "one line": lambda n: b"codigo,arquivo\n" + b"a" * n,
    "separators": lambda n: b"codigo,arquivo" + b"," * n,
    "quotes": lambda n: b'codigo,arquivo\n"' + b'""' * (n // 2),
    "a quote that never closes": lambda n: b'codigo,arquivo\n"' + b"a\n" * (n // 2),
    "separators of every sort": lambda n: b",;\t" * (n // 3),
    "marks on one letter": lambda n: ("a" + "\u0300" * (n // 2)).encode(),
}
PASTED: Final[Mapping[str, Callable[[int], str]]] = {
    "lines": lambda n: "a\n" * (n // 2),
    "colons": lambda n: ":" * n,
    "at signs": lambda n: "@" * n,
    "one line": lambda n: "host,port\n" + "a," * (n // 2),
}
LENGTHS: Final[Mapping[str, Callable[[int], str]]] = {
    "digits": lambda n: "9" * n,
    "blanks": lambda n: " " * n + "1",
    "a date": lambda n: "Thu, 01 Jan 2026 00:00:00 " + "(" * n,
    "commas": lambda n: "," * n,
    "colons": lambda n: "1:" * (n // 2),
}
CONTENT_TYPES: Final[Mapping[str, Callable[[int], str]]] = {
    "parameters": lambda n: "text/html" + ";charset" * (n // 8),
    "blanks": lambda n: "text/html; charset" + " " * n + "=utf-8",
    "quotes": lambda n: "text/html; charset=" + '"' * n,
}


def archive(n: int) -> bytes:
    """Of as many empty files as fit."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for k in range(n // 120):
            made.writestr(f"{k:06}.txt", b"")
    return out.getvalue()


def packed(n: int, inside: Callable[[int], bytes], name: str = "word/document.xml") -> bytes:
    """What unpacks to a hundred times as much."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, inside(n))
    return out.getvalue()


def claimed(n: int) -> bytes:
    """A ZIP64 locator that leads to a list of as many bytes as the file has."""
    empty = b"\0" * n
    record = b"PK\x06\x06" + (44).to_bytes(8, "little") + bytes(20)
    record += (1).to_bytes(8, "little") * 2 + n.to_bytes(8, "little") + bytes(8)
    locator = b"PK\x06\x07" + bytes(4) + n.to_bytes(8, "little") + (1).to_bytes(4, "little")
    end = b"PK\x05\x06" + bytes(4) + b"\1\0\1\0" + b"\xff" * 8 + bytes(2)
    return empty + record + locator + end


ARCHIVE: Final[Mapping[str, Callable[[int], bytes]]] = {
    "empty files": archive,
    "a ZIP64 locator": claimed,
    "ends": lambda n: b"PK\x05\x06" * (n // 4),
    "beginnings of entries": lambda n: b"PK\x01\x02" * (n // 4) + b"PK\x05\x06" + bytes(18),
    "a bomb": lambda n: packed(n * 50, lambda size: b"\0" * size, "a.txt"),
}
PDF: Final[Mapping[str, Callable[[int], bytes]]] = {
    "objects": lambda n: b"%PDF-1.4\n" + b"1 0 obj<<>>endobj\n" * (n // 18),
    "dictionaries that never close": lambda n: b"%PDF-1.4\n1 0 obj" + b"<<" * (n // 2),
    "references": lambda n: b"%PDF-1.4\nxref\n0 999999\n" + b"0000000000 65535 f\n" * (n // 19),
    "trailers": lambda n: b"%PDF-1.4\n" + b"trailer<</Prev 9>>startxref 9 " * (n // 30),
}
DOCX: Final[Mapping[str, Callable[[int], bytes]]] = {
    "elements within elements": lambda n: packed(n, lambda size: b"<a>" * (size // 3)),
    "runs": lambda n: packed(n, lambda size: b"<p>" + b"<t>a</t>" * (size // 8) + b"</p>"),
    "attributes": lambda n: packed(
        n,
        lambda size: b"<a " + b"".join(b'a%d="" ' % k for k in range(size // 10)) + b"/>",
    ),
    "entities of its own": lambda n: packed(
        n, lambda size: b'<!DOCTYPE a [<!ENTITY b "' + b"b" * size + b'">]><a>&b;</a>'
    ),
}
XLSX: Final[Mapping[str, Callable[[int], bytes]]] = {
    "elements within elements": lambda n: workbook("<a>" * (n // 3)),
    "empty rows": lambda n: workbook("<row/>" * (n // 6)),
    "cells": lambda n: workbook("<row>" + "<c><v>1</v></c>" * (n // 15) + "</row>"),
    "cells far apart": lambda n: workbook('<row><c r="XFD1"><v>1</v></c></row>' * (n // 38)),
    "one string, often": lambda n: workbook(
        '<row><c t="s"><v>0</v></c></row>' * (n // 64), f"<si><t>{'a' * (n // 2)}</t></si>"
    ),
    "shared strings": lambda n: workbook("", "<si><t>a</t></si>" * (n // 17)),
    "pieces of one string": lambda n: workbook("", "<si>" + "<t>a</t>" * (n // 8) + "</si>"),
    "entities of its own": lambda n: packed(
        n,
        lambda size: b'<!DOCTYPE a [<!ENTITY b "' + b"b" * size + b'">]><a>&b;</a>',
        "xl/workbook.xml",
    ),
}
PARTS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "lines": lambda n: b"\r\n" * (n // 2),
    "boundaries": lambda n: b"--b\r\n" * (n // 5),
    "headers": lambda n: b"--b\r\n" + b"a: b\r\n" * (n // 6),
    "one header": lambda n: b"--b\r\n" + b"a" * n,
    "beginnings of boundaries": lambda n: b"--b\r\n\r\n" + b"\r\n--" * (n // 4),
}
STATUS: Final = {
    name: (lambda n, make=make: b'{"data": %s, "status": "done"}' % make(n))
    for name, make in JSON.items()
}
SOURCE: Final = {
    name: (lambda n, make=make: b'{"ads": [%s]}' % make(n)) for name, make in JSON.items()
} | {
    "objects": lambda n: b'{"ads": [' + b'{"id":1},' * (n // 9),
    "names before it": lambda n: b"{" + b'"a":[],' * (n // 7),
}
GZIP: Final[Mapping[str, Callable[[int], bytes]]] = {
    "a bomb": lambda n: _gzip(bytes(n * 500)),
    "one after the other": lambda n: _gzip(b"a") * (n // 21),
    "no gzip": lambda n: b"\x1f\x8b" * (n // 2),
}
MESSAGE: Final = {
    name: (lambda n, make=make: b"[[], %s, {}]" % make(n)) for name, make in JSON.items()
}


VECTORS: Final = {
    name: (lambda n, make=make: b'{"data": %s}' % make(n)) for name, make in JSON.items()
} | {
    "numbers of one": lambda n: (
        b'{"data": [{"index": 0, "embedding": [0' + b",-0.0123456789" * (n // 14) + b"]}]}"
    ),
    "many of few": lambda n: (
        b'{"data": [' + b",".join([b'{"index": 0, "embedding": [0,1]}'] * (n // 33)) + b"]}"
    ),
    "base64": lambda n: b'{"data": [{"index": 0, "embedding": "' + b"A" * n + b'"}]}',
}


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


# — who reads them —


def read_answer(body: bytes) -> object:
    return parse_json(body)


def read_vectors(body: bytes) -> object:
    answer = Answer(status=200, headers={}, body=body, url="", where="here")
    provider = OpenAI(Outbound(), "https://embeddings.test", None, "m", 3_072)
    return provider._read(answer, 256)


def read_archive(path: str) -> object:
    with Archive(Path(path)) as found:
        return [found.unpack(each, len) for each in found.files[:10]]


async def read_form(content: bytes) -> object:
    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(content), PIECE):
            yield content[at : at + PIECE]

    return [each async for each in events_of("multipart/form-data; boundary=b", body())]


def read_without(content: bytes) -> object:
    slim = Without("data")
    for at in range(0, len(content), PIECE):
        slim.feed(content[at : at + PIECE])
    return slim.size


def read_items(content: bytes) -> object:
    items = Items("ads")
    for at in range(0, len(content), PIECE):
        items.feed(content[at : at + PIECE])
    return items.end()


def unpack(content: bytes) -> object:
    body = Body("gzip", most_bytes=10 * MEBIBYTE, most_unpacked=8 * MEBIBYTE)
    body.feed(content)
    return body.finish()


def on_disk(read: Callable[[str], object]) -> Callable[[bytes], object]:
    def from_disk(content: bytes) -> object:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            return read(file.name)

    return from_disk


def of(
    door: str,
    inputs: Mapping[str, Callable[[int], Any]],
    read: Callable[[Any], object],
    cost: Cost,
    *,
    limit: int = MEBIBYTE,
    smallest: int = 32 * KIBIBYTE,
    largest: int = 96 * KIBIBYTE,
    on_loop: bool = False,
    gate: Collection[str] | None = None,
) -> Iterator[Family]:
    """`gate`: those that every run feeds; the others have the same reader as another door."""

    async def reads(_: Isolate, given: Any) -> object:
        with suppress(*REFUSALS):
            found = read(given)
            return await found if isinstance(found, Awaitable) else found
        return None

    for name, make in inputs.items():
        yield Family(
            door=door,
            name=name,
            make=make,
            read=reads,
            cost=cost,
            smallest=smallest,
            largest=largest,
            limit=limit,
            on_loop=on_loop,
            in_gate=gate is None or name in gate,
        )


async def read_beside(isolate: Isolate, html: bytes) -> object:
    with suppress(*REFUSALS, TimeoutError):
        return await isolate.read(look_at_page, html, "text/html", limits=LIMITS)
    return None


async def parse_answer(_: Isolate, body: bytes) -> object:
    with suppress(*REFUSALS):
        return await Answer(status=200, headers={}, body=body, url="", where="here").json()
    return None


def beside(
    door: str,
    inputs: Mapping[str, Callable[[int], bytes]],
    read: Callable[[Isolate, bytes], Awaitable[object]],
) -> Iterator[Family]:
    """As a runner reads it, in the soak: what the loop has to do with it meanwhile."""
    for name, make in inputs.items():
        yield Family(
            door=door,
            name=name,
            make=make,
            read=read,
            cost=VALUES,
            limit=8 * MEBIBYTE,
            in_gate=False,
        )


def _families() -> Iterator[Family]:
    mib = MEBIBYTE
    yield from of("the page of a shop", HTML, read_page, PAGES, limit=8 * mib)
    pages = {name: (lambda n, make=make: make(n).encode()) for name, make in HTML.items()}
    yield from of(
        "the page of a match", pages, lambda each: parse_match(SITE, each), PAGES, limit=2 * mib
    )
    yield from of(
        "the page of a round",
        pages,
        lambda each: parse_round(SITE, each),
        PAGES,
        limit=2 * mib,
        gate=FEW,
    )
    yield from of(
        "a page that a person puts right",
        pages,
        lambda each: draft_match(SITE, each),
        PAGES,
        limit=2 * mib,
        gate=FEW,
    )
    for name, adapter in ADAPTERS.items():
        yield from of(
            f"the page of ads, {name}", HTML, adapter.read, PAGES, limit=8 * mib, gate=FEW | OWN
        )
    yield from of("how deep a page is", HTML, depth_of, WORDS, limit=8 * mib, gate=FEW)
    yield from of(
        "a document, HTML",
        pages,
        lambda each: read_document(each, "a.html"),
        PAGES,
        limit=8 * mib,
        gate=FEW | {"entities", "tables out of place"},
    )
    yield from of(
        "a document, plain text",
        TEXT,
        lambda each: read_document(each, "a.txt"),
        PAGES,
        limit=8 * mib,
    )
    yield from of("a document, DOCX", DOCX, lambda each: read_document(each, "a.docx"), PAGES)
    yield from of("a spreadsheet", XLSX, on_disk(lambda path: read_sheet(path, 100_000)), PAGES)
    yield from of("a document, PDF", PDF, lambda each: read_document(each, "a.pdf"), PAGES)
    yield from of("an archive", ARCHIVE, on_disk(read_archive), ROWS, limit=4 * mib)
    yield from of("a form with files", PARTS, read_form, PIECES)
    yield from of(
        "a table of quotes",
        TABLE,
        lambda each: read_table(io.BytesIO(each)),
        ROWS,
        limit=16 * mib,
    )
    yield from of(
        "a manifest", TABLE, lambda each: read_manifest(io.BytesIO(each)), ROWS, limit=16 * mib
    )
    yield from of(
        "what is pasted",
        PASTED,
        lambda each: read_pasted(Intake.PROXIES, each),
        ROWS,
        smallest=16 * KIBIBYTE,
        largest=64 * KIBIBYTE,
        limit=64 * KIBIBYTE,
        on_loop=True,
    )
    yield from of(
        "a text in a charset",
        TEXT,
        lambda each: decode_text(each, "utf-16"),
        WORDS,
        limit=8 * mib,
    )
    yield from of("an answer, JSON", JSON, read_answer, VALUES, limit=8 * mib)
    yield from of("vectors", VECTORS, read_vectors, Cost(cpu=3.0, memory=130), limit=16 * mib)
    yield from of("an answer, packed", GZIP, unpack, Cost(cpu=6.0, memory=600))
    yield from of(
        "a status without its data", STATUS, read_without, PIECES, limit=4 * mib, on_loop=True
    )
    yield from of(
        "the source of a writer",
        SOURCE,
        read_items,
        VALUES,
        smallest=128 * KIBIBYTE,
        largest=384 * KIBIBYTE,  # smaller ones come in one piece, and are read in another way
        limit=4 * mib,
        gate={"empty lists", "one long string", "objects", "brackets that never close"},
    )
    yield from beside("the loop, while a page is read", pages, read_beside)
    yield from beside("the loop, while an answer is parsed", JSON, parse_answer)
    head = 16 * KIBIBYTE
    yield from of(
        "header retry-after of an answer",
        LENGTHS,
        lambda each: parse_retry_after({"retry-after": each, "date": each}, 0.0),
        HEADS,
        smallest=head // 4,
        largest=head,
        limit=4 * head,
        on_loop=True,
    )
    yield from of(
        "header content-type of an answer",
        CONTENT_TYPES,
        charset_of,
        HEADS,
        smallest=head // 4,
        largest=head,
        limit=4 * head,
        on_loop=True,
    )
    yield from of(
        "a message of Celery",
        MESSAGE,
        lambda each: check_message(RUN, each, "application/json", "utf-8", frozenset()),
        HEADS,
        limit=mib,
        on_loop=True,
    )


FAMILIES: Final = list(_families())
