"""Archives from strangers: looked at before anything is unpacked, and never more unpacked than they said.

What wants to do harm (leaves its folder, links, swells, names two files alike) is refused as a whole; what
is merely of no use to us (locked, an archive itself, too large) is left out, and named.
"""

import re
import stat
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from retoma.apps.readers.docx import BROKEN
from retoma.apps.readers.reading import LARGEST
from retoma.apps.zips import TooManyEntries, open_zip
from retoma.engine.errors import BadInput
from retoma.words import say

MIB: Final = 1 << 20
MOST_FILES: Final = 10_000
MOST_UNPACKED: Final = 5 << 30  # bytes of all files of an archive
SMALL: Final = 100 * MIB  # unpacked, below which nobody asks how well it was squeezed
SQUEEZED: Final = 100  # times: text gets to 20, what is nothing but emptiness to 1,000
PIECE: Final = 256 * 1024
LOCKED: Final = 0x1  # the bit of an entry that is encrypted
IN_UTF_8: Final = 0x800  # the bit of an entry whose name is UTF-8
METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NESTED: Final = (".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz")
# What systems leave in archives that nobody put there.
LITTER: Final = re.compile(
    r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$|desktop\.ini$|\._)", re.IGNORECASE
)
OUTSIDE: Final = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\0")


class BadArchive(BadInput):
    """It is none, is broken, means harm, or has too much in it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of an archive. `code`: why it is left out, where it is."""

    name: str
    entry: zipfile.ZipInfo
    code: str | None = None


class Archive:
    """An archive that was looked at and may be unpacked, file by file."""

    def __init__(self, path: Path) -> None:
        """BadArchive where it is none, or means harm; nothing was unpacked."""
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise _broken() from error
        try:
            self._zip = _opened(self._file)
            self.files: Sequence[Listed] = _looked_at(self._zip.infolist(), path)
        except BaseException:
            self._file.close()
            raise

    def unpack(self, file: Listed, out: Callable[[bytes], object]) -> bool:
        """Whether it came out whole; `out` is given every piece of it."""
        left = file.entry.file_size
        try:
            with self._zip.open(file.entry) as opened:
                while piece := opened.read(PIECE):
                    left -= len(piece)
                    if left < 0:
                        return False
                    out(piece)
        except BROKEN:
            return False
        return left == 0

    def close(self) -> None:
        self._zip.close()
        self._file.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return open_zip(file)
    except TooManyEntries as error:
        raise _too_many() from error
    except BROKEN as error:
        raise _broken() from error


def _looked_at(entries: Sequence[zipfile.ZipInfo], path: Path) -> Sequence[Listed]:
    named = [each for each in entries if not each.filename.endswith("/")]
    files = [each for each in named if not LITTER.search(each.filename)]
    if not files:
        raise BadArchive(say("there are no files in the archive"))
    if len(files) > MOST_FILES:
        raise _too_many()
    for each in files:
        _check_place(each)
    names = [name_of(each) for each in files]
    if len(set(names)) < len(names):
        raise BadArchive(say("the archive names two files alike; nothing was taken"))
    _check_size(files, path.stat().st_size)
    return [
        Listed(name, each, _left_out(each)) for name, each in zip(names, files, strict=True)
    ]


def name_of(entry: zipfile.ZipInfo) -> str:
    """As whoever made the archive saw it. `zipfile` reads cp437 where an entry does not say UTF-8; what
    Windows writes in Brazil is cp850, and other systems write UTF-8 without saying so."""
    if entry.flag_bits & IN_UTF_8:
        return entry.filename
    raw = entry.filename.encode("cp437", "replace")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("cp850")


def _check_place(entry: zipfile.ZipInfo) -> None:
    # As it was written, too: what a reader makes of a name is not what another one does.
    names = (entry.filename, entry.orig_filename, name_of(entry))
    mode = entry.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if any(OUTSIDE.search(name) for name in names) or kind not in (0, stat.S_IFREG):
        raise BadArchive(
            say("the archive leads out of itself, by a path or a link; nothing was taken")
        )


def _check_size(files: Sequence[zipfile.ZipInfo], packed: int) -> None:
    unpacked = sum(each.file_size for each in files)
    if unpacked > MOST_UNPACKED or (unpacked > SMALL and unpacked > SQUEEZED * packed):
        raise BadArchive(
            say(
                "the archive has {packed} bytes and would have {unpacked}: nothing was taken",
                packed=packed,
                unpacked=unpacked,
            )
        )


def _left_out(entry: zipfile.ZipInfo) -> str | None:
    if entry.flag_bits & LOCKED:
        return "encrypted"
    if entry.filename.lower().endswith(NESTED):
        return "nested"
    if entry.file_size > LARGEST:
        return "too_large"
    return None if entry.compress_type in METHODS else "unsupported"


def _too_many() -> BadArchive:
    return BadArchive(say("an archive has {most} files at most", most=MOST_FILES))


def _broken() -> BadArchive:
    return BadArchive(say("this is no archive, or a broken one; nothing was taken"))
