"""What a file says, whatever it is called: PDF, DOCX, HTML or plain text, known by its content.

Files come from strangers. They are read in a child process, within the limits below, so that one that
crashes, hangs or swells costs itself and no other (C2). What cannot be read is told by its code and never
by its words (C8).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from retoma.engine.rules.errors import Permanent
from retoma.toolkit.readers.cutting import clean_text, cut_text
from retoma.toolkit.readers.docx import read_docx
from retoma.toolkit.readers.pdf import read_pdf
from retoma.toolkit.readers.plain import (
    looks_like_page,
    looks_like_text,
    read_page,
    read_text,
)
from retoma.toolkit.readers.rules import MOST_TEXT, Ocr
from retoma.words import say

MIB: Final = 1 << 20
LARGEST: Final = 50 * MIB  # bytes of a file
MEMORY: Final = 512 * MIB  # of the child, all that it has loaded included
CPU: Final = 60.0  # seconds of its processor
WALL: Final = 120.0  # seconds by the clock on the wall

PDF_WITHIN: Final = 1_024  # bytes before which %PDF- stands, as readers allow
OLE: Final = bytes.fromhex(
    "d0cf11e0a1b11ae1"
)  # what Word wrote before DOCX, and locked DOCX now
LOCKED: Final = "EncryptedPackage".encode("utf-16-le")
KNOWN: Final[Mapping[str, str]] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".txt": "text",
    ".html": "html",
    ".htm": "html",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a file says. `needs_ocr`: some of its pages are pictures, and what they say is not here."""

    text: str
    pages: int = 0  # 0: it has none
    needs_ocr: bool = False
    cut: bool = False  # something of its middle was left out
    by: str = ""  # who read it


def read_file(path: str, name: str, ocr: str = Ocr.NEVER) -> Read:
    """As `read_document`, for a step: only what is JSON travels to a child."""
    file = Path(path)
    if file.stat().st_size > LARGEST:
        raise _too_large()
    return read_document(file.read_bytes(), name, Ocr(ocr))


def read_document(
    content: bytes, name: str, ocr: Ocr = Ocr.NEVER, most: int = MOST_TEXT
) -> Read:
    """At most `most` characters are kept of it. Permanent `empty`, `too_large`, `corrupt`, `encrypted`, `needs_ocr`, `unsupported` or
    `wrong_extension` where there is nothing to classify; `no_ocr` where pictures are to be read and
    nothing is there to read them."""
    if not content:
        raise Permanent(say("the file has no bytes"), code="empty")
    if len(content) > LARGEST:
        raise _too_large()
    kind = kind_of(content, name)
    return _pdf(content, ocr, most) if kind == "pdf" else READERS[kind](content, most)


def kind_of(content: bytes, name: str) -> str:
    """By its content. An archive or a PDF is that whatever it is called; but words under the name of
    either are not the file that somebody meant."""
    called = KNOWN.get(PurePath(name).suffix.lower())
    if b"%PDF-" in content[:PDF_WITHIN]:
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        return "docx"
    if content.startswith(OLE) and LOCKED in content:
        raise Permanent(say("this file asks for a password"), code="encrypted")
    words = looks_like_text(content) and not content.startswith((OLE, b"{\\rtf"))
    if words and called not in ("pdf", "docx"):
        return "html" if called == "html" or looks_like_page(content) else "text"
    if called is None:
        raise Permanent(say("no PDF, DOCX, HTML or plain text"), code="unsupported")
    raise Permanent(
        say("its content is not what .{name} files have", name=called), code="wrong_extension"
    )


def _pdf(content: bytes, ocr: Ocr, most: int) -> Read:
    found = read_pdf(content, most, ocr)
    if not found.speaks:
        raise _pictures() if found.pictures else _empty()
    read = _read(found.text, most, by=found.by)
    return replace(
        read,
        pages=found.count,
        needs_ocr=found.pictures,
        cut=read.cut or found.left_out > 0,
    )


def _docx(content: bytes, most: int) -> Read:
    return _read(read_docx(content), most, by="docx")


def _html(content: bytes, most: int) -> Read:
    return _read(read_page(content), most, by="html")


def _text(content: bytes, most: int) -> Read:
    return _read(read_text(content), most, by="text")


READERS: Final[Mapping[str, Callable[[bytes, int], Read]]] = {
    "docx": _docx,
    "html": _html,
    "text": _text,
}


def _read(said: str, most: int, *, by: str) -> Read:
    whole = clean_text(said)
    if not whole:
        raise _empty()
    text, left_out = cut_text(whole, most)
    return Read(text=text, cut=left_out > 0, by=by)


def _empty() -> Permanent:
    return Permanent(say("there is no text in this file"), code="empty")


def _pictures() -> Permanent:
    return Permanent(say("its pages are pictures of text"), code="needs_ocr")


def _too_large() -> Permanent:
    return Permanent(say("a file has {most:,} bytes at most", most=LARGEST), code="too_large")
