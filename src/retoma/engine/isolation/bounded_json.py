"""Parse JSON of strangers within bounds: its values are counted before an object is made of any.

Python's parser holds the interpreter until it is done, in whichever thread it runs. So what bounds the time is
how much there is to parse.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from retoma.engine.isolation.off_loop import off_loop

LARGEST: Final = 16 * 1024 * 1024  # bytes
VALUES: Final = 400_000  # about 70 bytes of memory for each, however short it is written
CONTAINERS: Final = 50_000  # lists and objects
PIECE: Final = 64 * 1024  # bytes that are looked through at a time


def parse_json(
    raw: bytes, *, nan: bool = False, values: int = VALUES, largest: int = LARGEST
) -> Any:
    """The value. ValueError: it is no JSON, or more than the bounds allow. `nan`: numbers that JSON lacks."""
    if len(raw) > largest or _has_many(raw, values):
        raise ValueError("more than is read")
    try:
        return json.loads(raw) if nan else json.loads(raw, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None


async def parse_beside(raw: bytes) -> Any:
    """As `parse_json`; in a thread where there is much of it."""
    return await off_loop(len(raw), parse_json, raw)


def _has_many(raw: bytes, values: int) -> bool:
    opened = raw.count(b"[") + raw.count(b"{")
    if opened <= CONTAINERS and opened + raw.count(b",") <= values:
        return False
    opened = commas = 0
    for part in _outside_strings(raw):
        opened += part.count(b"[") + part.count(b"{")
        commas += part.count(b",")
    return opened > CONTAINERS or opened + commas > values


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = False
    for at in range(0, len(plain), PIECE):
        parts = plain[at : at + PIECE].split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no numbers of JSON")
