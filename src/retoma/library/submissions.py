"""Submit jobs and batches, and lend transactions to callers."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import iscoroutinefunction
from itertools import chain
from typing import Any, Generic, TypeVar

from retoma import db
from retoma.db import Database, ReplyLost, Unfit, migrations
from retoma.engine import store
from retoma.engine.handlers.kinds import Kind
from retoma.engine.ops.batches import Batch
from retoma.engine.ports import Clock, Ids
from retoma.engine.rules.errors import BadInput, Unsure
from retoma.engine.rules.job import Job
from retoma.engine.run.filling import LARGE, Filling, LargeBatch
from retoma.engine.run.submission import (
    BatchOptions,
    NewBatch,
    SubmitOptions,
    Submitted,
    batch_name,
    budget_of,
    checked,
    head,
    jobs_of,
    new_batch,
    new_job,
    submission,
)
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Carried, Transaction
from retoma.engine.store import NewJob, Submission
from retoma.engine.writing.evidence import Writes
from retoma.library.connection import Connection
from retoma.words import say

T = TypeVar("T")


class Submissions:
    """The way of everything that is submitted from outside of a handler."""

    def __init__(self, connection: Connection, clock: Clock, ids: Ids) -> None:
        self._connection = connection
        self._clock = clock
        self._ids = ids

    async def submit(
        self, kind: Kind, payload: Any, options: SubmitOptions, spans: SubmitSpans
    ) -> Job:
        with spans.open(kind.name, options.get("traceparent")) as kept:
            about = submission(kind, options | {"traceparent": kept})
            new = new_job(kind, payload, options.get("key"))
            made = await self._submit(about, new)
            if made is not None:
                return made
            # Its key is known, or the answer was lost: the key tells which.
            return await self._connection.write(
                lambda tx: store.submit_job(tx, about, new), verb="submit"
            )

    async def _submit(self, about: Submission, new: NewJob) -> Job | None:
        submitter = await self._connection.submitter()
        try:
            return await submitter.submit(about, new)
        except ReplyLost as error:
            if new.key is None:
                raise Unsure(
                    say(
                        "{name}: the connection broke while the job was being committed; it"
                        " may have been accepted. Submit with key=… and asking again is"
                        " safe",
                        name=about.kind,
                    )
                ) from error
            return None

    def submit_on(
        self,
        connection: Any,
        kind: Kind,
        payload: Any,
        options: SubmitOptions,
        spans: SubmitSpans,
    ) -> Job:
        """One job in the open transaction of a caller's psycopg connection."""
        with spans.open(kind.name, options.get("traceparent")) as kept:
            about = submission(kind, options | {"traceparent": kept})
        new = new_job(kind, payload, options.get("key"))
        if self._connection.url.startswith("sqlite:"):
            raise BadInput(
                say(
                    "submit_on needs PostgreSQL: a SQLite file must not be opened by"
                    " two copies of SQLite in one process. Use app.write"
                )
            )
        try:
            with db.borrow(connection) as tx:
                migrations.check(tx)
                return store.submit_job(tx, about, new)
        except Unfit as error:
            raise BadInput(
                say("{name} was not submitted: {error}", name=kind.name, error=error)
            ) from error

    async def submit_many(
        self, kind: Kind, payloads: Iterable[Any], options: BatchOptions, spans: SubmitSpans
    ) -> Batch:
        key = checked("key", options.get("key")) or self._ids.new()
        with spans.open(kind.name, options.get("traceparent")) as kept:
            about = submission(kind, options | {"traceparent": kept})
            few, more = head(payloads, LARGE)
            if more is None:
                new = new_batch(kind, few, about, key=key, options=options)
                return await self._submit_batch(new)
            large = LargeBatch(
                about=about,
                name=batch_name(kind, options.get("name"), key),
                key=key,
                budget=budget_of(options),
                jobs=jobs_of(kind, chain(few, more), options.get("keys")),
            )
            return await self._fill(large)

    async def _submit_batch(self, new: NewBatch) -> Batch:
        while True:
            with suppress(ReplyLost):  # the batch's key tells whether it happened
                return self.batch_of(
                    await self._connection.write(new.submit, verb="submit_many")
                )

    async def _fill(self, large: LargeBatch) -> Batch:
        database = await self._connection.ready()
        filling = Filling(database, self._clock, self._ids.new(), large)
        return self.batch_of(await filling.submit())

    def lent_write(self, fn: Callable[[Transaction], T], spans: SubmitSpans) -> "LentWrite[T]":
        if iscoroutinefunction(fn):
            raise BadInput(say("{fn!r} is async; app.write takes a plain function", fn=fn))
        return LentWrite(self, fn, spans)

    def lend(self, tx: db.Transaction, spans: SubmitSpans) -> Transaction:
        registered = self._connection.registered
        return Transaction(
            tx, registered.kinds, self._ids, self.batch_of, spans, registered.knobs
        )

    def batch_of(self, made: Submitted) -> Batch:
        return batch_in(self._connection.opened(), self._clock, made)


class LentWrite(Generic[T]):
    """One call of `app.write`, as often as the database has to try it."""

    def __init__(
        self, submissions: Submissions, fn: Callable[[Transaction], T], spans: SubmitSpans
    ) -> None:
        self._submissions = submissions
        self._fn = fn
        self._spans = spans
        self.last: Transaction | None = None  # what was lent, the last time

    async def commit(self, database: Writes) -> T:
        try:
            return await database.write(self._run, verb="write")
        except Carried as carried:
            raise carried.error from None
        except ReplyLost as error:
            raise Unsure(
                say(
                    "the connection broke while app.write was being committed; it may"
                    " have happened. Look for what it wrote before you ask again"
                )
            ) from error

    def _run(self, tx: db.Transaction) -> T:
        self.last = self._submissions.lend(tx, self._spans)
        return self.last.lend(self._fn)


def batch_in(database: Database, clock: Clock, made: Submitted) -> Batch:
    """A batch of this database, with what became of its submission."""
    return Batch(made.batch, made.name, made.kind, made.new, made.already, database, clock)
