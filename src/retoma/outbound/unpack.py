"""Decompress the body of an answer chunk by chunk, within the size limits."""

import zlib

GZIP = zlib.MAX_WBITS | 16
PIECE = 1024 * 1024  # bytes decompressed at a time, so that a bomb is detected early
SLICE = (
    4 * 1024
)  # compressed bytes read at a time: after each gzip member zlib copies the rest of them
PLAIN = ("", "identity")
PACKED = ("gzip", "x-gzip")


class TooLarge(Exception):
    """The answer exceeds a size limit of its policy."""


class Unreadable(Exception):
    """The answer's compression is invalid, truncated or not supported."""


class UnexpectedType(Exception):
    """The policy does not allow the answer's content type."""


class Body:
    """Collects received bytes and decompresses them; raises TooLarge at the first byte over a limit."""

    def __init__(self, encoding: str, *, most_bytes: int, most_unpacked: int) -> None:
        name = encoding.strip().lower()
        if name not in (*PLAIN, *PACKED):
            raise Unreadable
        self._zlib = None if name in PLAIN else zlib.decompressobj(GZIP)
        self._left = most_bytes
        self._unpacked_left = most_unpacked
        self._chunks: list[bytes] = []
        self._open_stream = False

    @property
    def is_packed(self) -> bool:
        return self._zlib is not None

    def feed(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge
        self._open_stream = self._open_stream or bool(data)
        if self._zlib is None:
            self._append(data)
        else:
            self._unpack(data)

    def finish(self) -> bytes:
        """Return what is left of the body; Unreadable if its end is missing."""
        if self._zlib is not None and self._open_stream and not self._zlib.eof:
            raise Unreadable
        return self.take_new()

    def take_new(self) -> bytes:
        """Return and forget the bytes collected since the last call."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)

    def _unpack(self, data: bytes) -> None:
        for at in range(0, len(data), SLICE):
            self._unpack_slice(data[at : at + SLICE])

    def _unpack_slice(self, data: bytes) -> None:
        while data and self._zlib is not None:
            if self._zlib.eof:  # gzip data may have several members
                self._zlib = zlib.decompressobj(GZIP)
            try:
                self._append(self._zlib.decompress(data, min(PIECE, self._unpacked_left + 1)))
            except zlib.error:
                raise Unreadable from None
            data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail

    def _append(self, chunk: bytes) -> None:
        self._unpacked_left -= len(chunk)
        if self._unpacked_left < 0:
            raise TooLarge
        self._chunks.append(chunk)
