"""How the verbs read and write: one transaction each; what is added under an idempotency key is added once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from retoma.codec import digest
from retoma.db import Transaction as Reading
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Asked
from retoma.engine.writing.once import Answered
from retoma.library import Retoma

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Created:
    """The number of a new quote or lote. Not new: an earlier call with the same key added it."""

    id: int
    is_new: bool


async def read(retoma: Retoma, fn: Callable[[Reading], T]) -> T:
    return await (await retoma.database()).read(fn)


async def add_once(
    retoma: Retoma,
    add: Callable[[Transaction], int],
    *,
    verb: str,
    actor: str,
    key: str | None,
    arguments: Mapping[str, Any],
) -> Created:
    """Add in one transaction, and keep the number with the key. Raises IdempotencyMismatch where the actor
    used the key for another verb or other arguments."""
    if key is None:
        return Created(await retoma.write(add), is_new=True)
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    asked = Asked(actor, key, verb, digest(f"{verb} {text}"))
    try:
        return Created(await retoma.write_once(asked, add, _answer_of), is_new=True)
    except Answered as earlier:
        return Created(json.loads(earlier.answer)["id"], is_new=False)


def _answer_of(number: int) -> dict[str, int]:
    return {"id": number}
