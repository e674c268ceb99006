"""The body of an answer, piece by piece, never more of it than was agreed."""

import zlib

GZIP = zlib.MAX_WBITS | 16
PIECE = 1024 * 1024  # bytes unpacked at a time: a bomb is seen before it is large
SLICE = 4 * 1024  # packed bytes read at a time: after each end zlib copies the rest of them
PLAIN = ("", "identity")
PACKED = ("gzip", "x-gzip")


class TooLarge(Exception):
    """More than this purpose may bring home."""


class Unreadable(Exception):
    """Not packed as it says, cut short, or packed in a way nobody asked for."""


class Unasked(Exception):
    """Of a type this purpose does not take."""


class Body:
    """Takes what arrives, gives what it means; stops at the first byte too many."""

    def __init__(self, encoding: str, *, most_bytes: int, most_unpacked: int) -> None:
        name = encoding.strip().lower()
        if name not in (*PLAIN, *PACKED):
            raise Unreadable
        self._zlib = None if name in PLAIN else zlib.decompressobj(GZIP)
        self._left = most_bytes
        self._room = most_unpacked
        self._pieces: list[bytes] = []
        self._begun = False

    @property
    def is_packed(self) -> bool:
        return self._zlib is not None

    def feed(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge
        self._begun = self._begun or bool(data)
        if self._zlib is None:
            self._keep(data)
        else:
            self._unpack(data)

    def whole(self) -> bytes:
        """All of it; Unreadable where its end is missing."""
        if self._zlib is not None and self._begun and not self._zlib.eof:
            raise Unreadable
        return self.drawn()

    def drawn(self) -> bytes:
        """What has come since the last time it was asked for; it is kept no longer."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def _unpack(self, data: bytes) -> None:
        for at in range(0, len(data), SLICE):
            self._unpack_slice(data[at : at + SLICE])

    def _unpack_slice(self, data: bytes) -> None:
        while data and self._zlib is not None:
            if self._zlib.eof:  # gzip may be several, one after the other
                self._zlib = zlib.decompressobj(GZIP)
            try:
                self._keep(self._zlib.decompress(data, min(PIECE, self._room + 1)))
            except zlib.error:
                raise Unreadable from None
            data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail

    def _keep(self, piece: bytes) -> None:
        self._room -= len(piece)
        if self._room < 0:
            raise TooLarge
        self._pieces.append(piece)
