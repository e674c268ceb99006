"""One write that is done once: whoever asks again under the same key gets the first one's answer."""

from collections.abc import Callable
from typing import Any, TypeVar

from retoma.codec import encode
from retoma.db import Database, Lane, ReplyLost, Transaction
from retoma.engine.store import Asked, keep_answer, take_answer

T = TypeVar("T")


class Answered(Exception):
    """It was done before; this is the answer that was given then, as JSON text."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


class Once:
    """A database for one write. `answer` makes of what it returns what later askers are told.

    A reply that got lost is asked for again: the key tells whether it happened.
    """

    def __init__(
        self, database: Database, asked: Asked, answer: Callable[[Any], Any] = lambda made: made
    ) -> None:
        self.url = database.url
        self.dialect = database.dialect
        self._database = database
        self._asked = asked
        self._answer = answer

    async def write(
        self,
        fn: Callable[[Transaction], T],
        *,
        verb: str,
        lane: Lane = Lane.WRITE,
        patience: float | None = None,
    ) -> T:
        """As the database's own; raises `Answered` where it was done before."""

        def once(tx: Transaction) -> T:
            there = take_answer(tx, self._asked)
            if there is not None:
                raise Answered(there)
            made = fn(tx)
            keep_answer(tx, self._asked, encode(self._answer(made)))
            return made

        while True:
            try:
                return await self._database.write(once, verb=verb, lane=lane, patience=patience)
            except ReplyLost:
                continue

    async def read(self, fn: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        return await self._database.read(fn, patience=patience)
