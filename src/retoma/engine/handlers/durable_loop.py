"""A durable loop: under which key each item is found again, and how many go on at once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from retoma.engine.rules.errors import BadInput
from retoma.words import say

T = TypeVar("T")

AT_ONCE = 8  # items in flight


def check_concurrency(name: str, concurrency: int) -> None:
    if concurrency < 1:
        raise BadInput(
            say(
                "{name}: concurrency is at least 1, not {concurrency}",
                name=name,
                concurrency=concurrency,
            )
        )


def keys_of(name: str, items: Sequence[T], key: Callable[[T], str] | None) -> list[str]:
    """The key of each item; its place, where nothing names it."""
    keys = [str(place) if key is None else str(key(item)) for place, item in enumerate(items)]
    if len(set(keys)) < len(keys):
        [(twice, _)] = Counter(keys).most_common(1)
        raise BadInput(
            say(
                "{name}: two items of this loop have the key {twice!r}",
                name=name,
                twice=twice,
            )
        )
    return keys


async def all_or_first_error(work: Callable[[], Awaitable[None]], times: int) -> None:
    """Run it so many times at once; at the first error the others are stopped and waited for."""
    tasks = [asyncio.ensure_future(cast("Any", work())) for _ in range(times)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
