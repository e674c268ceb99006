"""DOCX files: the words of an archive's document, within bounds; it may declare nothing and call nobody."""

import io
import struct
import zipfile
import zlib
from typing import Any, Final
from xml.parsers import expat

from retoma.engine.rules.errors import Permanent
from retoma.toolkit.zips import open_zip
from retoma.words import say

MAIN: Final = "word/document.xml"
PARTS: Final = (MAIN, "word/footnotes.xml", "word/endnotes.xml")
MIB: Final = 1 << 20
MOST_UNPACKED: Final = 64 * MIB  # of one part, whatever the archive says of it
MOST_TEXT: Final = 5_000_000  # characters; more is not kept anyway
MOST_PARTS: Final = 10_000
PIECE: Final = MIB
LOCKED: Final = 0x1  # the bit of an entry that is encrypted
BREAKS: Final = {"tab": "\t", "br": "\n", "cr": "\n"}
# What a broken archive does to who opens it: more than its own error.
BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError),
    *(OSError, RuntimeError, ValueError, LookupError, OverflowError),
)


class _Enough(Exception):
    """More would not be kept."""


def read_docx(content: bytes) -> str:
    """Permanent `unsupported`, `encrypted`, `too_large` or `corrupt` where it is no document of words."""
    try:
        with open_zip(io.BytesIO(content)) as archive:
            entries = {each.filename: each for each in archive.infolist()[:MOST_PARTS]}
            if MAIN not in entries:
                raise Permanent(
                    say("an archive without a document of words"), code="unsupported"
                )
            if entries[MAIN].flag_bits & LOCKED:
                raise Permanent(say("this file asks for a password"), code="encrypted")
            return "\n".join(_words(archive, entries[p]) for p in PARTS if p in entries)
    except (*BROKEN, expat.ExpatError) as error:
        raise Permanent(
            say("the archive is broken, or what is in it"), code="corrupt"
        ) from error


def _words(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> str:
    gathered = _Gathered()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _declares
    parser.StartElementHandler = gathered.begin
    parser.EndElementHandler = gathered.end
    parser.CharacterDataHandler = gathered.said
    unpacked = 0
    with archive.open(part) as file:
        try:
            while piece := file.read(PIECE):
                unpacked += len(piece)
                if unpacked > MOST_UNPACKED:
                    raise Permanent(say("the archive unpacks to too much"), code="too_large")
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except _Enough:
            pass
    return "".join(gathered.parts)


def _declares(*_: Any) -> None:
    raise Permanent(say("the document declares a type of its own"), code="corrupt")


class _Gathered:
    """The text runs of the elements that have any; what is only there for older readers is not."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._size = 0
        self._in_text = False
        self._older = 0

    def begin(self, name: str, _: Any) -> None:
        local = _local(name)
        if local == "Fallback":
            self._older += 1
        self._in_text = local == "t"
        if local in BREAKS:
            self._add(BREAKS[local])

    def end(self, name: str) -> None:
        local = _local(name)
        self._in_text = False
        if local == "Fallback":
            self._older -= 1
        if local == "p":
            self._add("\n")

    def said(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._older:
            return
        self.parts.append(text)
        self._size += len(text)
        if self._size > MOST_TEXT:
            raise _Enough


def _local(name: str) -> str:
    return name.rpartition("}")[2]
