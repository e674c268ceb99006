"""Our transaction, lent to a caller: its own statements and its submissions, all of them or none."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from inspect import isawaitable, iscoroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from retoma import db
from retoma.codec import encode
from retoma.db import Call, Row, Statement
from retoma.db.rows import Rows
from retoma.db.statements import bare, parameters, verbatim
from retoma.engine import store
from retoma.engine.handlers.kinds import Kind, Kinds
from retoma.engine.ops.batches import Batch
from retoma.engine.ports import Ids
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import Job
from retoma.engine.rules.live_settings import Declared
from retoma.engine.rules.states import State
from retoma.engine.run.submission import (
    ACTOR,
    BatchOptions,
    SubmitOptions,
    Submitted,
    checked,
    new_batch,
    new_job,
    submission,
)
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.words import say

T = TypeVar("T")
P = ParamSpec("P")

# Words that begin or end a transaction, which is ours.
OURS = re.compile(
    r"(abort|begin|commit|end|prepare|release|rollback|savepoint|start|vacuum)\b", re.IGNORECASE
)
LONGEST_KEPT = 10_000  # characters of a text that is read once
HAS_A_BODY = re.compile(r"create\b.*\btrigger\b", re.IGNORECASE | re.DOTALL)


class Transaction(Rows[str | Statement]):
    """What `app.write(fn)` hands to `fn`: plain SQL on your own tables, and submissions.

    A statement has `:named` parameters and is the same text for both databases, or a verb read from
    its files. Rows are tuples, or objects of a class with `into=`; in tuples json comes back as text, and a datetime is kept by SQLite as
    microseconds since 1970, UTC.
    """

    def __init__(
        self,
        tx: db.Transaction,
        kinds: Kinds,
        ids: Ids,
        batch: Callable[[Submitted], Batch],
        spans: SubmitSpans,
        knobs: Declared,
    ) -> None:
        self.dialect = tx.dialect
        self._tx = tx
        self._kinds = kinds
        self._ids = ids
        self._batch = batch
        self._spans = spans
        self._knobs = knobs
        self._failed: BaseException | None = None
        self._over = False
        self.jobs: list[Job] = []  # submitted in it, one by one
        self.new: set[int] = set()  # those of them that were not there before
        self.batches: list[int] = []

    def run(self, statement: str | Statement, /, **params: Any) -> int:
        """Run one statement; how many rows it changed."""
        if isinstance(statement, Statement):
            return self._do(_run, statement, params)
        return self._asked(statement, params)[1]

    def ask(self, statement: str | Statement, params: dict[str, Any]) -> list[Row]:
        """Run one statement; all its rows. `one` and `all` read them."""
        if isinstance(statement, Statement):
            return self._do(_ask, statement, params)
        return self._asked(statement, params)[0]

    def submit(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payload: Any = None,
        **options: Unpack[SubmitOptions],
    ) -> Job:
        """As `app.submit`, in this transaction: a job that nobody sees before it commits."""
        wanted = self._kinds.of(kind)
        with self._spans.open(wanted.name, options.get("traceparent")) as kept:
            about = submission(wanted, options | {"traceparent": kept})
            new = new_job(wanted, payload, options.get("key"))
            made, is_new = self._do(store.submit_or_find, about, new)
        self.jobs.append(made)
        if is_new:
            self.new.add(made.id)
        return made

    def submit_many(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payloads: Iterable[Any],
        **options: Unpack[BatchOptions],
    ) -> Batch:
        """As `app.submit_many`, in this transaction."""
        wanted = self._kinds.of(kind)
        key = checked("key", options.get("key")) or self._ids.new()
        with self._spans.open(wanted.name, options.get("traceparent")) as kept:
            about = submission(wanted, options | {"traceparent": kept})
            new = new_batch(wanted, payloads, about, key=key, options=options)
            made = self._batch(self._do(new.submit))
        self.batches.append(made.id)
        return made

    def run_schedule(self, name: str, *, actor: str = ACTOR) -> Job:
        """As `app.schedules.run`, in this transaction."""
        made = self._do(store.run_schedule, name, actor=actor)
        self.jobs.append(made)
        return made

    def cancel(self, job: int, *, actor: str = ACTOR) -> State:
        """As `app.cancel`, in this transaction."""
        return self._do(store.cancel_job, job, actor=actor)

    def put_things(
        self, pool: str, things: Mapping[str, Any], *, vendor: str = "", actor: str = ACTOR
    ) -> None:
        """These are in the pool, each with its value; who holds one holds it on."""
        rows = [(name, encode(value), vendor) for name, value in things.items()]
        self._do(store.pool.put_items, pool, rows, actor=actor)

    def switch_things(
        self, pool: str, names: Sequence[str], *, on: bool, reason: str, actor: str = ACTOR
    ) -> None:
        """Whether these are given out; who holds one may end with it."""
        self._do(store.pool.switch, pool, names, on=on, reason=reason, actor=actor)

    def tell(self, verb: str, subject: str, details: Any = None, *, actor: str = ACTOR) -> None:
        """A line of the audit log that belongs to no job."""
        text = None if details is None else encode(details)
        self._do(store.tell, actor=actor, verb=verb, subject=subject, details=text)

    def knob(self, name: str) -> Any:
        """What a knob is, in this transaction: who decides by it decides by what holds now."""
        return self._do(store.knobs.value, self._knobs, name)

    def for_caller(self, statement: Statement, **params: Any) -> tuple[list[Row], int]:
        """Run a caller's statement on the caller's tables: its rows, how many it changed."""
        return self._do(lambda tx: tx.for_caller(statement, **params))

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        """Run several statements without waiting for each."""
        return self._do(lambda tx: tx.together(calls))

    def finish(self, *calls: Call) -> list[list[Row]]:
        """Run the calls; `app.write` commits."""
        return self.together(calls)

    def ring(self, topic: str) -> None:
        """Wake who listens to `topic`, once this has committed."""
        self._do(lambda tx: tx.ring(topic))

    def _asked(self, sql: str, params: dict[str, Any]) -> tuple[list[Row], int]:
        read = _read if len(sql) <= LONGEST_KEPT else _read.__wrapped__
        statement, wanted = read(sql)
        if wanted != params.keys():
            raise BadInput(
                say(
                    "the statement names {wanted} and was given {given}: {sql!r}",
                    wanted=_listed(wanted),
                    given=_listed(params),
                    sql=sql,
                )
            )
        return self._do(_ask_for_caller, statement, params)

    def _do(
        self, fn: Callable[Concatenate[db.Transaction, P], T], *args: P.args, **how: P.kwargs
    ) -> T:
        """Call it with the transaction of the database and these arguments."""
        if self._over:
            raise BadInput(
                say(
                    "this transaction has ended: use it only inside the function it was"
                    " given to"
                )
            )
        if self._failed is not None:
            raise self._failed
        try:
            return fn(self._tx, *args, **how)
        except Exception as error:
            self._failed = error
            raise

    def lend(self, fn: Callable[["Transaction"], T]) -> T:
        """Call it with this transaction. What has failed inside fails the whole, seen or not."""
        try:
            result = fn(self)
        except Exception:
            raise
        except BaseException as error:  # it must not end the thread that all writes go through
            raise Carried(error) from error
        finally:
            self._over = True
        if isawaitable(result):
            if iscoroutine(result):
                result.close()
            raise BadInput(
                say("app.write takes a plain function: nothing is awaited in a transaction")
            )
        if self._failed is not None:
            raise self._failed
        return result


class Carried(Exception):
    """What a caller's function raised that is no Exception, on its way out of the writer."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


def _run(tx: db.Transaction, statement: Statement, params: Mapping[str, Any]) -> int:
    return tx.run(statement, **params)


def _ask(tx: db.Transaction, statement: Statement, params: dict[str, Any]) -> list[Row]:
    return tx.ask(statement, params)


def _ask_for_caller(
    tx: db.Transaction, statement: Statement, params: Mapping[str, Any]
) -> tuple[list[Row], int]:
    return tx.for_caller(statement, **params)


@lru_cache(
    maxsize=512
)  # of texts no longer than LONGEST_KEPT: one with values in it comes once
def _read(sql: str) -> tuple[Statement, frozenset[str]]:
    plain = bare(sql).strip().rstrip(";").strip()
    if not plain:
        raise BadInput(say("an empty statement"))
    if OURS.match(plain):
        raise BadInput(
            say(
                "the transaction is app.write's own, which commits when fn returns: {sql!r}",
                sql=sql,
            )
        )
    if ";" in plain and not HAS_A_BODY.match(plain):
        raise BadInput(say("one statement at a time: {sql!r}", sql=sql))
    return verbatim(sql), frozenset(parameters(sql))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
