"""Waiting until something can be read. By poll: `select.select` refuses descriptors from 1,024 on."""

import math
import select
from collections.abc import Iterable

LONGEST = 3600.0  # seconds; poll counts milliseconds in an int


def wait_readable(descriptors: Iterable[int], seconds: float) -> bool:
    """Whether one of them can be read, or has been closed, within that time."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(math.ceil(min(max(seconds, 0.0), LONGEST) * 1000)))
