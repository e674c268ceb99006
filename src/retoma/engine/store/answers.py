"""Answers that are given once: whoever asks again under the same key gets the same one.

The key is taken first and the answer kept last, in the transaction that does what was asked: a crash
in between leaves nothing, and of many that ask at once one does it and the others wait for its
answer.

Work of several transactions cannot do so. It reserves its key before it begins and keeps the answer
when it is done; a reservation whose process died may be taken over after a while.
"""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.rules.errors import IdempotencyMismatch
from retoma.engine.store.verb import SQL
from retoma.words import say

KEPT = 7 * 86_400.0  # seconds: longer than any client asks again
BITE = 500
ABANDONED = 120.0  # seconds after which nobody works at it: a request is cut off after 30


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks for, once."""

    actor: str
    key: str
    what: str  # which verb
    hash: str  # of everything that was said


def take_answer(tx: Transaction, asked: Asked) -> str | None:
    """The answer that was given before; None: it is ours to give, before this transaction ends."""
    taken = tx.one(
        SQL.take_answer, actor=asked.actor, key=asked.key, what=asked.what, hash=asked.hash
    )
    return None if taken is not None else find_answer(tx, asked)


def find_answer(tx: Transaction, asked: Asked) -> str | None:
    """The answer that was given before, if there was one; the key stays free."""
    found = tx.one(SQL.get_answer, actor=asked.actor, key=asked.key)
    if found is None:
        return None
    what, hash_, answer = found
    check_same(asked, what, hash_)
    return str(answer)


def check_same(asked: Asked, what: str, hash_: str) -> None:
    """IdempotencyMismatch where the key stood for something else."""
    if (what, hash_) != (asked.what, asked.hash):
        raise IdempotencyMismatch(
            say(
                "the key {key} was used before for something else; nothing was done",
                key=asked.key,
            )
        )


def keep_answer(tx: Transaction, asked: Asked, answer: str) -> None:
    tx.run(SQL.keep_answer, actor=asked.actor, key=asked.key, answer=answer)


def reserve_answer(tx: Transaction, asked: Asked, *, remembered: float) -> bool:
    """Reserve the key before the work begins; False where another request has it, or has answered it
    within the last `remembered` seconds."""
    row = tx.one(
        SQL.reserve_answer,
        actor=asked.actor,
        key=asked.key,
        what=asked.what,
        hash=asked.hash,
        abandoned=ABANDONED,
        remembered=remembered,
    )
    return row is not None


@dataclass(frozen=True, slots=True)
class Reserved:
    """A key that another request has; `answer` is None while its work is under way."""

    answer: str | None


def find_reserved(tx: Transaction, asked: Asked) -> Reserved | None:
    """Find what became of a reserved key; None where it was given back."""
    found = tx.one(SQL.get_answer, actor=asked.actor, key=asked.key)
    if found is None:
        return None
    what, hash_, answer = found
    check_same(asked, what, hash_)
    return Reserved(answer)


def keep_reserved_answer(tx: Transaction, asked: Asked, answer: str) -> None:
    tx.run(
        SQL.keep_reserved_answer,
        actor=asked.actor,
        key=asked.key,
        what=asked.what,
        answer=answer,
    )


def release_answer(tx: Transaction, asked: Asked) -> None:
    """Give the key back: what was asked has failed, and may be asked again under the same key."""
    tx.run(SQL.release_answer, actor=asked.actor, key=asked.key, what=asked.what)


def forget_answers(tx: Transaction, *, kept: float = KEPT) -> int:
    """Delete the oldest that are older than that; how many that was."""
    return len(tx.all(SQL.forget_answers, before=-kept, bite=BITE))
