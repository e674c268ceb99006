"""Open ZIP files of strangers: the list of their files is checked before an object is made of any entry."""

import struct
import zipfile
from typing import BinaryIO, Final

MIB: Final = 1 << 20
MOST_LISTED: Final = 16 * MIB  # bytes of the list of files, which is read at once
MOST_ENTRIES: Final = 40_000  # folders, and what systems leave in archives, included
LONGEST_NAME: Final = 4_096  # bytes
LONGEST_EXTRA: Final = 2_048  # bytes; `zipfile` copies them once for each of their records
ENTRY: Final = b"PK\x01\x02"
ENTRY_SIZE: Final = 46  # bytes, and then the name, the extra field and the comment
LENGTHS_AT: Final = 28  # where an entry says how long these three are


class TooManyEntries(zipfile.BadZipFile):
    """The list of files is longer than any that is read."""


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """As `zipfile.ZipFile`, but TooManyEntries or BadZipFile where its list of files is too long.

    Where the list is and how long it claims to be stands in several records, which one version of
    `zipfile` believes and another does not: so what it really reads is checked.
    """
    checked = _CheckedFile(file)
    archive = zipfile.ZipFile(checked)
    checked.has_list = True
    return archive


class _CheckedFile:
    """A file that refuses to be read at once until the list of files is known."""

    def __init__(self, file: BinaryIO) -> None:
        self.has_list = False
        self._file = file
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable
        self.close = file.close

    def read(self, size: int = -1) -> bytes:
        if self.has_list:
            return self._file.read(size)
        most = MOST_LISTED + 1
        read = self._file.read(most if size < 0 else min(size, most))
        if len(read) > MOST_LISTED:
            raise TooManyEntries(f"the list of files has more than {MOST_LISTED:,} bytes")
        if read.startswith(ENTRY):
            _check_list(read)
        return read


def _check_list(read: bytes) -> None:
    at = entries = 0
    while at + ENTRY_SIZE <= len(read):
        name, extra, comment = struct.unpack_from("<HHH", read, at + LENGTHS_AT)
        entries += 1
        if entries > MOST_ENTRIES:
            raise TooManyEntries(f"the archive has more than {MOST_ENTRIES:,} entries")
        if name > LONGEST_NAME or extra > LONGEST_EXTRA:
            raise zipfile.BadZipFile(f"entry {entries} has a longer head than any")
        at += ENTRY_SIZE + name + extra + comment
