"""How the verbs read and write: one transaction each; what is added under an idempotency key is added once."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from retoma import db
from retoma.codec import decode, digest
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


async def read(retoma: Retoma, fn: Callable[[db.Transaction], T]) -> T:
    return await (await retoma.database()).read(fn)


def asked(actor: str, key: str | None, verb: str, **arguments: Any) -> Asked | None:
    """Identify a call by its idempotency key; None where the caller gave no key."""
    if key is None:
        return None
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return Asked(actor, key, verb, digest(f"{verb} {text}"))


async def add_once(
    retoma: Retoma, call: Asked | None, add: Callable[[Transaction], int]
) -> Created:
    """Add in one transaction, and keep the number with the key. Raises IdempotencyMismatch where the actor
    used the key for another verb or other arguments."""
    if call is None:
        return Created(await retoma.write(add), is_new=True)
    try:
        return Created(await retoma.write_once(call, add, lambda id_: {"id": id_}), is_new=True)
    except Answered as earlier:
        return Created(decode(earlier.answer)["id"], is_new=False)
