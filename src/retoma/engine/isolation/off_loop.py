"""Keep the loop free: what reads many bytes goes to a thread."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

T = TypeVar("T")

SMALL: Final = 64 * 1024  # bytes that are read where they are


async def off_loop(size: int, work: Callable[..., T], *args: object) -> T:
    """Call `work`, which reads `size` bytes in linear time: in a thread unless they are few."""
    if size <= SMALL:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))
