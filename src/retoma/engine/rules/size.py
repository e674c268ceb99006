"""How much memory, as people write it: `512MB`, or plain bytes."""

import re
from typing import Any

from retoma.engine.rules.errors import BadInput
from retoma.words import say

UNITS = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
}  # fmt: skip
WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?i?B)\s*", re.IGNORECASE | re.ASCII)


def size(value: Any) -> int:
    """Bytes. A bare number is bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    written = WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise BadInput(
            say("{value!r} is no size: write 512MB, 2GiB, or bytes as a number", value=value)
        )
    number, unit = written.groups()
    return int(float(number) * UNITS[unit.upper()])
