"""A JSON object as it arrives, without what nobody wants of it (H-67): a status may carry all its ads.

The value of one name at the top is passed over piece by piece, so that its size costs no memory.
JSON's own signs are single bytes that are part of no other character in UTF-8.
"""

import re
from typing import Final

# A text that has come whole. Only sets of characters are possessive: groups were not before Python 3.11.5.
TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*"'
# The next mark that is in no text: all of them, or only those that lead in or out. A quotation mark
# is one where its text has not come whole.
MARK: Final = re.compile(
    rb'(?:[^"{}\[\]:,]++|%(text)b)*((?!%(text)b)["{}\[\]:,])' % {b"text": TEXT}, re.DOTALL
)
BRACKET: Final = re.compile(
    rb'(?:[^"{}\[\]]++|%(text)b)*((?!%(text)b)["{}\[\]])' % {b"text": TEXT}, re.DOTALL
)
# The rest of a text that began in an earlier piece, up to its end; and what is read of it where it has none here.
END: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*"', re.DOTALL)
NO_END: Final = re.compile(rb"(?:[^\\]++|\\.)*", re.DOTALL)
SPACE: Final = b" \t\r\n:"
NEAR: Final = 64  # bytes in which a name and the blanks after it are looked for


class Without:
    """Takes the pieces of a document; `kept` is all of it, with null for the value of `name`."""

    def __init__(self, name: str) -> None:
        self._name = f'"{name}"'.encode()
        self.kept = bytearray()
        self._depth = 0
        self._in_text = False  # its end has not come
        self._escaping = False  # the last byte of that text escapes the next one
        self._passing = False  # over the value

    @property
    def size(self) -> int:
        """What of it is in memory."""
        return len(self.kept)

    def feed(self, piece: bytes) -> None:
        begins = 0  # of what is not kept yet
        at = self._read_text(piece) if self._in_text else 0  # of what was not looked at
        while not self._in_text and (found := self._next.match(piece, at)):
            at, mark = found.end(), found[1]
            if mark == b'"':
                self._in_text = True
                at = self._read_text(piece, at)
                continue
            if self._passing and self._depth == 1 and mark in b",}":
                self._passing, begins = False, at - 1
            if mark == b":" and self._depth == 1:
                self.kept += piece[begins:at]
                begins = at
                self._pass_over_if_named()
            self._deeper(mark)
        if not self._passing:
            self.kept += piece[begins:]

    def _read_text(self, piece: bytes, at: int = 0) -> int:
        """Read the text that goes on here; each byte once, however small the pieces are. Returns where it ends."""
        if self._escaping and piece:
            at, self._escaping = at + 1, False
        if found := END.match(piece, at):
            self._in_text = False
            return found.end()
        read = NO_END.match(piece, at)
        self._escaping = read is not None and read.end() < len(piece)
        return len(piece)

    @property
    def _next(self) -> re.Pattern[bytes]:
        return BRACKET if self._passing and self._depth > 1 else MARK

    def _deeper(self, mark: bytes) -> None:
        if mark in b"{[":
            self._depth += 1
        elif mark in b"}]":
            self._depth -= 1

    def _pass_over_if_named(self) -> None:
        told = self.kept[-NEAR:].rstrip(SPACE)
        # The name as the end of a longer one would stand behind a backslash.
        if told.endswith(self._name) and not told[: -len(self._name)].endswith(b"\\"):
            self.kept += b"null"
            self._passing = True
