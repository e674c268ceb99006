"""Many files in one request, as they come: whoever takes them is given each piece, and holds none."""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import python_multipart
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from retoma.engine.rules.errors import BadInput
from retoma.words import say

MOST_PARTS: Final = 10_100
LONGEST_HEAD: Final = 16 * 1024  # bytes of what stands before a part


@dataclass(frozen=True, slots=True)
class Part:
    """A part begins. `file`: what it is called, where it is a file and no field."""

    field: str
    file: str | None


Event = Part | bytes | None  # a part, a piece of it, its end


async def events_of(media: str, body: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """BadInput where it is no form with files, or breaks off."""
    kind, options = parse_options_header(media)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise BadInput(say("files come as multipart/form-data, or one by one"))
    parsed = _Parsed()
    parser = python_multipart.MultipartParser(boundary, parsed.callbacks)  # type: ignore[arg-type]
    try:
        async for piece in body:
            parser.write(piece)
            for event in parsed.taken():
                yield event
        parser.finalize()
    except FormParserError:
        raise _broken() from None
    if not parsed.ended:
        raise _broken()


class _Parsed:
    """What the parser says, in its order."""

    def __init__(self) -> None:
        self.ended = False
        self._events: list[Event] = []
        self._parts = 0
        self._name = bytearray()
        self._value = bytearray()
        self._said = b""

    @property
    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headed,
            "on_part_data": self._data,
            "on_part_end": lambda: self._events.append(None),
            "on_end": self._end,
        }

    def taken(self) -> list[Event]:
        taken, self._events = self._events, []
        return taken

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadInput(say("more than {most} files at a time", most=MOST_PARTS))
        self._said = b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._check_head()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_head()

    def _check_head(self) -> None:
        if len(self._name) + len(self._value) > LONGEST_HEAD:
            raise _broken()

    def _header_end(self) -> None:
        if bytes(self._name).lower() == b"content-disposition":
            self._said = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _headed(self) -> None:
        _, options = parse_options_header(self._said)
        name, file = options.get(b"name"), options.get(b"filename")
        if name is None:
            raise _broken()
        told = None if file is None else file.decode("utf-8", "replace")
        self._events.append(Part(name.decode("utf-8", "replace"), told))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _end(self) -> None:
        self.ended = True


def _broken() -> BadInput:
    return BadInput(say("the upload breaks off, or is no form with files"))
