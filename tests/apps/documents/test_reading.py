"""What a file says, by its content; what no reader can bear costs one child, and no other file (C2)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from retoma.apps.readers.cutting import clean_text, cut_text
from retoma.apps.readers.docx import MOST_UNPACKED
from retoma.apps.readers.reading import CPU, MEMORY, Read, read_document, read_file
from retoma.apps.readers.rules import MOST_TEXT
from retoma.codec import decode, encode
from retoma.engine.errors import Permanent
from retoma.engine.isolate import ChildDied, Isolate, Limits
from retoma.sandbox.documents import ENDS, Odd, Papers, docx_of, docx_with, pdf_of, zip_of
from retoma.sandbox.documents.papers import png_of
from retoma.sandbox.documents.pdf import repeated_pdf, scanned_pdf

TRUTH = Papers(7)
WORDS = "Petição inicial: ação de cobrança nº 42 (urgente)"
# Whose reading ends before the model is asked, and who does not take its child along.
UNREAD = [
    odd
    for odd, code in ENDS.items()
    if code in {"corrupt", "encrypted", "needs_ocr", "empty", "wrong_extension", "unsupported"}
]


@contextmanager
def ends_with(code: str) -> Iterator[None]:
    with pytest.raises(Permanent) as met:
        yield
    assert code == met.value.code


# — what it says —


@pytest.mark.parametrize("n", range(12))
def test_a_paper_says_what_was_written_on_it_however_it_is_kept(n):
    paper = TRUTH.make(n)

    read = read_document(paper.content, paper.name)

    told = [line for line in TRUTH.text(n) if line]
    assert told == [line for line in read.text.splitlines() if line]
    assert not read.cut
    assert not read.needs_ocr
    assert read == decode(encode(read), Read)


@pytest.mark.parametrize("odd", UNREAD)
def test_what_cannot_be_read_is_told_by_its_code_and_never_by_its_words(odd):
    """C8."""
    paper = TRUTH.make(3, odd)

    with pytest.raises(Permanent) as met:
        read_document(paper.content, paper.name)

    assert paper.code == met.value.code
    assert "PROCURADORIA" not in str(met.value)
    assert paper.codigo not in str(met.value)


def test_a_long_file_is_read_at_its_ends():
    paper = TRUTH.make(3, Odd.HUGE)
    lines = TRUTH.text(3, Odd.HUGE)

    read = read_document(paper.content, paper.name)

    assert read.cut
    assert read.pages > 300
    assert read.text.startswith(lines[0])
    assert read.text.endswith(lines[-1])
    assert "omitid" in read.text
    assert len(read.text) < MOST_TEXT + 100


def test_of_pages_without_number_only_some_are_looked_at():
    """Bad input 23."""
    read = read_document(repeated_pdf(20_000, [WORDS]), "a.pdf")

    assert (20_000, True) == (read.pages, read.cut)
    assert 2_000 == read.text.count(WORDS)
    assert "18000 páginas omitidas" in read.text
    with ends_with("empty"):
        read_document(repeated_pdf(20_000, []), "a.pdf")


def test_pages_that_are_pictures_are_named_where_others_speak():
    stamp = "Este documento é cópia do original, assinado digitalmente por Ana Souza."
    stamped = scanned_pdf("x", stamp=stamp)
    mixed = scanned_pdf("x", stamp=stamp, typed=[WORDS] * 20)

    with ends_with("needs_ocr"):
        read_document(stamped, "a.pdf")
    read = read_document(mixed, "a.pdf")

    assert read.needs_ocr
    assert 3 == read.pages
    assert WORDS in read.text
    assert not read_document(pdf_of([[WORDS]]), "a.pdf").needs_ocr


def test_blank_pages_are_empty_and_not_pictures():
    with ends_with("empty"):
        read_document(pdf_of([[], []]), "a.pdf")
    with ends_with("empty"):
        read_document(b" \n\t ", "a.txt")
    with ends_with("empty"):
        read_document(docx_of(["", " "]), "a.docx")


def test_a_second_reader_is_asked_where_the_first_gives_up():
    whole = pdf_of([[WORDS] * 3])
    odd = whole.replace(b"obj", b"jbo")

    read = read_document(odd, "a.pdf")

    assert WORDS in read.text
    assert "pypdf" == read.by
    assert "pypdfium2" == read_document(whole, "a.pdf").by


def test_a_third_reader_is_asked_where_somebody_has_installed_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pymupdf.py").write_text(
        "class Page:\n"
        "    def get_text(self): return 'lido por outro'\n"
        "    def get_images(self): return []\n"
        "class Document(list):\n"
        "    needs_pass = False\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *_): pass\n"
        "def open(stream, filetype): return Document([Page()])\n"
    )
    paper = TRUTH.make(3, Odd.CORRUPT)

    read = read_document(paper.content, paper.name)

    sys.modules.pop("pymupdf")
    assert ("lido por outro", "pymupdf") == (read.text, read.by)


# — what it is —


@pytest.mark.parametrize(
    ("content", "name", "by"),
    [
        (pdf_of([[WORDS]]), "a.docx", "pypdfium2"),
        (pdf_of([[WORDS]]), "a", "pypdfium2"),
        (b"\n\n" + pdf_of([[WORDS]]), "a.pdf", "pypdfium2"),
        (docx_of([WORDS]), "a.pdf", "docx"),
        (f"<html><body>{WORDS}".encode(), "a.txt", "html"),
        (WORDS.encode(), "a.htm", "html"),
        (WORDS.encode(), "a.TXT", "text"),
        (WORDS.encode(), "README", "text"),
    ],
)
def test_a_file_is_what_its_content_is(content, name, by):
    read = read_document(content, name)

    assert (WORDS, by) == (read.text, read.by)


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "a.pdf", "empty"),
        (WORDS.encode(), "a.pdf", "wrong_extension"),
        (b"<html>Sua sess\xe3o expirou", "a.pdf", "wrong_extension"),
        (png_of("x"), "a.docx", "wrong_extension"),
        (png_of("x"), "a.png", "unsupported"),
        (b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff\0\0" * 9, "a.exe", "unsupported"),
        (b"{\\rtf1 peticao}", "a.rtf", "unsupported"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "a.doc", "unsupported"),
        (
            bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le"),
            "a.docx",
            "encrypted",
        ),
        (zip_of({"xl/workbook.xml": b"<x/>"}), "a.xlsx", "unsupported"),
        (docx_of([WORDS])[:-40], "a.docx", "corrupt"),
        (docx_with("<w:p><w:r>"), "a.docx", "corrupt"),
        (b"%PDF-1.7 e nada mais que quarenta e dois bytes", "a.pdf", "corrupt"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused_by_its_code(content, name, code):
    with ends_with(code):
        read_document(content, name)


def test_a_file_larger_than_agreed_is_not_even_opened(tmp_path):
    file = tmp_path / "a.txt"
    with file.open("wb") as out:
        out.truncate(10 << 30)  # ten gigabytes that are nowhere

    with ends_with("too_large"):
        read_file(str(file), "a.txt")


# — what it was written in —


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_text_is_read_in_whatever_it_was_written(encoding):
    content = (WORDS + "\r\nsegunda linha").encode(encoding)

    read = read_document(content, "a.txt")

    assert f"{WORDS}\nsegunda linha" == read.text


def test_a_page_is_read_as_people_read_it():
    html = (
        "<!doctype html><head><meta charset='iso-8859-1'><title>Sentença</title>"
        "<style>p {color: red}</style><script>alert('julgo')</script></head>"
        "<body onload=alert(1)><p>re<b>cur</b>so</p><p>&lt;script&gt;</p><noscript>não</noscript>"
    )

    read = read_document(html.encode("iso-8859-1"), "a.html")

    assert ["Sentença", "recurso", "<script>"] == [
        each for each in read.text.split("\n") if each
    ]


def test_what_no_database_keeps_is_left_out():
    content = "a\0b\x07c\ud800d\ufffee\tf\x0c".encode("utf-8", "surrogatepass")
    assert "abcde\tf" == clean_text("a\0b\x07c\ud800d\ufffee\tf\x0c")

    read = read_document(b"texto " * 200 + content, "a.txt")

    assert "\0" not in read.text
    encode(read)


def test_a_line_of_a_million_blanks_is_cleaned_like_any_other():
    """It took the square of their number: an hour, and the document's attempts with it."""
    blanks = " \t\u3000\xa0" * 250_000

    assert f"a{blanks}b\n\nc" == clean_text(
        f"a{blanks}b{blanks}\r\n{blanks}\r\f{blanks}\nc{blanks}"
    )


def test_a_text_is_cut_in_its_middle_and_says_so():
    text = "".join(f"{n:05d}" for n in range(2_000))

    cut, left_out = cut_text(text, 900)

    assert 9_100 == left_out
    assert cut.startswith(text[:600])
    assert cut.endswith(text[-300:])
    assert "9100 caracteres omitidos" in cut
    assert (text, 0) == cut_text(text, 10_000)


# — what means harm —


def test_an_archive_that_swells_is_left_where_it_is_too_much():
    swollen = docx_with(" " * (MOST_UNPACKED + 1))
    assert len(swollen) < 1 << 20

    with ends_with("too_large"):
        read_document(swollen, "a.docx")


def test_a_document_that_is_broken_anyhow_is_read_or_corrupt():
    whole = docx_of([WORDS] * 9)
    ends = set[str]()
    for seed in range(300):
        chance = Random(seed)
        content = bytearray(whole)
        for _ in range(chance.choice((1, 3, 9))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        try:
            ends.add(read_document(bytes(content), "a.docx").by)
        except Permanent as error:
            ends.add(error.code)

    assert {"docx", "corrupt"} <= ends


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd">',
    ],
)
def test_a_document_may_declare_nothing(head):
    with ends_with("corrupt"):
        read_document(docx_with("<w:p><w:r><w:t>&amp;</w:t></w:r></w:p>", head), "a.docx")


def test_nested_things_are_read_or_refused_and_never_sunk_into():
    with ends_with("corrupt"):
        read_document(b"<html><body>" + b"<div>" * 100_000, "a.html")
    deep = "<w:p>" * 50_000 + "<w:r><w:t>fundo</w:t></w:r>" + "</w:p>" * 50_000
    assert "fundo" == read_document(docx_with(deep), "a.docx").text


@pytest.mark.parametrize(
    ("flaw", "instead"),
    [
        (b"/Type /Catalog", b"/Typo /Catalog"),
        (b"/Length ", b"/Length 2000000000"),  # two gigabytes are claimed
        (b"startxref\n", b"startxref\n9"),
        (b"trailer\n<< ", b"trailer\n<< /Prev 15 "),
        (
            b"/Type /Catalog",
            b"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert(1)) >>",
        ),
    ],
)
def test_a_pdf_that_lies_is_read_all_the_same(flaw, instead):
    assert WORDS == read_document(pdf_of([[WORDS]]).replace(flaw, instead), "a.pdf").text


@pytest.mark.parametrize(
    ("flaw", "instead"),
    [
        (b"/Kids [3 0 R]", b"/Kids [4 0 R]"),  # its pages are in themselves
        (b"/Pages /Kids", b"/Pages /Kits"),
    ],
)
def test_a_pdf_that_loops_is_corrupt(flaw, instead):
    content = pdf_of([[WORDS]])
    assert flaw in content

    with ends_with("corrupt"):
        read_document(content.replace(flaw, instead), "a.pdf")


async def test_one_that_kills_its_reader_and_one_without_end_cost_themselves(tmp_path):
    """C2, F12: PDFium really aborts on the one, and would never come back from the other."""
    papers = {odd: TRUTH.make(3, odd) for odd in (Odd.CRASH, Odd.ENDLESS, None)}
    for paper in papers.values():
        written(tmp_path / paper.name, paper.content)
    isolate = Isolate()

    async def read(odd: Odd | None, limits: Limits) -> Read:
        name = papers[odd].name
        said = await isolate.in_child(read_file, (str(tmp_path / name), name), limits=limits)
        made: Read = decode(said, Read)
        return made

    try:
        with pytest.raises(ChildDied) as died:
            await read(Odd.CRASH, Limits(memory=MEMORY, cpu=CPU))
        with pytest.raises(TimeoutError):
            # By its time, whoever measures it: it does not swell, and so has one end.
            await read(Odd.ENDLESS, Limits(memory=MEMORY // 2, cpu=2.0))
        with pytest.raises(TimeoutError):
            await read(Odd.ENDLESS, Limits(memory=MEMORY, timeout=0.2))
        well = await read(None, Limits(memory=MEMORY, cpu=CPU))
    finally:
        isolate.close()

    assert "child_died" == died.value.code
    assert died.value.signal in ("SIGABRT", "SIGSEGV", "SIGTRAP", "SIGILL")
    assert "documento DOC-00003" in well.text


def written(file: Path, content: bytes) -> None:
    file.write_bytes(content)
