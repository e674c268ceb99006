"""Idempotency-Key: whoever creates something twice has created it once."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from retoma.access import Person
from retoma.codec import digest
from retoma.engine.once import Answered
from retoma.engine.store import Asked
from retoma.engine.transaction import Transaction
from retoma.web.house import House

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def asked(key: str | None, who: Person, what: str, body: BaseModel | None) -> Asked | None:
    """What is asked for once; None: somebody does not mind to have it twice."""
    if key is None:
        return None
    said = "" if body is None else body.model_dump_json()
    return Asked(who.name, key, what, digest(f"{what} {said}"))


async def written(
    house: House,
    ask: Asked | None,
    write: Callable[[Transaction], T],
    show: Callable[[T], M],
    shape: type[M],
) -> tuple[M, bool]:
    """Do it in one transaction and show it; or what was shown the first time, and False."""
    if ask is None:
        return show(await house.retoma.write(write)), True
    return await first(
        lambda: house.retoma.write_once(ask, write, lambda made: _kept(show(made))), show, shape
    )


async def first(
    do: Callable[[], Awaitable[T]], show: Callable[[T], M], shape: type[M]
) -> tuple[M, bool]:
    try:
        return show(await do()), True
    except Answered as before:
        return shape.model_validate(json.loads(before.answer)), False


def _kept(shown: BaseModel) -> Any:
    return shown.model_dump(mode="json")
