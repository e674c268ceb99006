"""PostgreSQL through psycopg: three lines a process — writes; claims and reads; the pulse.

Each line is one connection driven by one thread. A group of statements goes out in one round trip
(libpq's pipeline: everything up to the sync is one transaction). Behind a transaction pooler
(`?pooler=transaction`) nothing is kept in the session: no LISTEN, no prepared statements.

A network may swallow what is said on it. Both ends ask each other whether they are still there, and
whoever has no answer for a while (`?answer=`, seconds) asks on the pulse's line what became of it.
"""

import asyncio
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.types.string import TextLoader

from retoma.db.crashpoint import ReplyWithheld, crashpoint
from retoma.db.database import (
    EVERYTHING,
    Away,
    BadRow,
    Busy,
    Call,
    DatabaseError,
    Full,
    Lane,
    ReplyLost,
    Row,
    Transaction,
    Unfit,
    no_room,
)
from retoma.db.patience import PATIENCE, patiently
from retoma.db.statements import Statement, adhoc
from retoma.db.wire import Wire
from retoma.words import say

T = TypeVar("T")

CHANNEL = "retoma"
SCHEMA = "retoma"
CONNECT_SECONDS = 5
LEAST_SECONDS = 2  # that libpq waits; 0 would be for ever
LOST_BACKEND_SECONDS = 5.0
OURS = ("answer", "pooler")  # in the address, and nothing to libpq
MEND_SECONDS = 1.0  # how soon a broken ear tries to hear again
# For an answer, before somebody asks what became of it. More than `lock_timeout`, and three of them
# fit into a lease: a beat that was swallowed is sent again in time.
ANSWER_SECONDS = 15.0

# Plans are made once and often while the tables are still tiny; these keep them on the indices.
# `synchronous_commit`: what we answered for must survive.
SESSION = {
    "search_path": f"{SCHEMA}, public",
    "synchronous_commit": "on",
    "enable_seqscan": "off",
    # A claim would collect and sort all that wait, where few did when statistics were made.
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    # A table without an index looks dear with seqscan off, and two processes would be started for it.
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "lock_timeout": "10s",
    # A host that was cut off inside a transaction holds its rows so long: others wait for them.
    "idle_in_transaction_session_timeout": "20s",
    "timezone": "UTC",
}
# Whether the other end is still there, asked by both: half a minute, not the usual two hours. The
# server's part frees the connections of hosts that vanished; on a local socket it means nothing.
ALIVE = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
ALIVE_HERE = {  # by the names libpq has for it
    name if name == "tcp_user_timeout" else name.removeprefix("tcp_"): value
    for name, value in ALIVE.items()
}
AT_IT = adhoc(
    "SELECT 1",
    "SELECT 1 FROM pg_stat_activity WHERE pid = :pid AND backend_start = :began"
    " AND (state = 'active' OR state_change > clock_timestamp() - :lately * interval '1 second')",
)


def _settings(settings: dict[str, str], *, local: bool) -> str:
    told = (f"set_config('{name}', '{value}', {local})" for name, value in settings.items())
    return f"SELECT {', '.join(told)}"


SET_SESSION = _settings(SESSION | ALIVE, local=False)
# Behind a pooler the next transaction may be another's session.
SET_TRANSACTION = _settings(SESSION, local=True)
# A caller's own statements find the caller's tables, and plans made for them and not for ours.
# Our schema is in nobody's path, not even where the role has its name and the path says "$user".
FOR_CALLER = "; ".join(
    [
        f"SET LOCAL {name} TO DEFAULT"
        for name in SESSION
        if name in ("search_path", "plan_cache_mode", "jit")
        or name.startswith(("enable_", "max_parallel"))
    ]
    + [
        "SELECT set_config('search_path', coalesce(string_agg(quote_ident(name), ', ')"  # noqa: S608
        f" FILTER (WHERE name <> '{SCHEMA}'), ''), true)"
        f" FROM unnest(current_schemas(false)) AS name HAVING bool_or(name = '{SCHEMA}')"
    ]
)


TELL_MOVED = "SELECT set_config('retoma.moved', %s, false)"


class Postgres:
    """A PostgreSQL database shared by any number of machines."""

    dialect = "postgres"

    def __init__(
        self,
        url: str,
        moved: Callable[[], int] | None = None,
        patience: float | None = None,
    ) -> None:
        self.url = url
        self._patience = PATIENCE if patience is None else patience
        address = _parse(url)
        self._pooled = address.pooled
        self._answer = address.answer
        self._lines = {lane: _Line(address, lane, moved) for lane in Lane}
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)

    async def write(
        self,
        fn: Callable[[Transaction], T],
        *,
        verb: str,
        lane: Lane = Lane.WRITE,
        patience: float | None = None,
    ) -> T:
        line = self._lines[lane]

        async def once() -> T:
            return await self._answered(line, lambda: line.transact(fn, verb))

        return await patiently(once, self._patience if patience is None else patience)

    async def read(self, fn: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        line = self._lines[Lane.CLAIM]

        async def once() -> T:
            return await self._answered(line, lambda: line.question(fn))

        return await patiently(once, self._patience if patience is None else patience)

    def write_now(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        return self._lines[Lane.PULSE].transact_in_time(fn, verb)

    def wait_bell(self, seconds: float) -> set[str]:
        topics = set() if self._pooled else self._lines[Lane.PULSE].heard()
        if topics:
            return topics
        ears = [self._wake_out]
        if not self._pooled:
            ears += self._lines[Lane.PULSE].ears()
            if len(ears) == 1:
                seconds = min(seconds, MEND_SECONDS)
        if not select.select(ears, [], [], max(seconds, 0))[0]:
            return set()
        self._empty_wakes()
        return set() if self._pooled else self._lines[Lane.PULSE].heard()

    def wake(self) -> None:
        os.write(self._wake_in, b"!")

    def deaf(self) -> bool:
        return self._pooled

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
        os.close(self._wake_in)
        os.close(self._wake_out)

    async def _answered(self, line: "_Line", ask: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        look = _Look(loop, self._answer, lambda: self._look_after(line))
        try:
            return await loop.run_in_executor(line.thread, ask)
        finally:
            look.over()

    def _look_after(self, line: "_Line") -> None:
        # Behind a pooler nobody knows which of its sessions is at it.
        if not self._pooled:
            with suppress(RuntimeError):  # closed meanwhile: the wait is over as well
                self._lines[Lane.PULSE].thread.submit(self._end_if_forgotten, line)

    def _end_if_forgotten(self, line: "_Line") -> None:
        """Cut a line whose answer went astray; what the server is still at may take its time."""
        asked = line.asked
        if asked is None or time.monotonic() - asked.at < self._answer:
            return
        pulse = self._lines[Lane.PULSE]
        try:
            told = {"pid": asked.pid, "began": asked.began, "lately": self._answer}
            found = pulse.transact_in_time(lambda tx: tx.one(AT_IT, **told), "look")
        except (DatabaseError, psycopg.Error):
            found = None  # there is no way to the server at all
        finally:
            self.wake()  # a bell may have rung into our answer
        if found is None and line.asked is asked:
            line.wire.cut()

    def _empty_wakes(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_out, 4096)


class _Look:
    """Looks again and again while somebody waits for an answer."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, every: float, look: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._every = every
        self._look = look
        self._next = loop.call_later(every, self._again)

    def over(self) -> None:
        self._next.cancel()

    def _again(self) -> None:
        self._next = self._loop.call_later(self._every, self._again)
        self._look()


class _Asked(NamedTuple):
    """Something that a line waits for: since when, and which backend is at it."""

    at: float
    pid: int | None
    began: datetime | None


class _Line:
    """One connection, mended when it breaks, and the one thread that drives it."""

    def __init__(
        self, address: "_Address", lane: Lane, moved: Callable[[], int] | None
    ) -> None:
        self.thread = ThreadPoolExecutor(1, f"retoma-{lane}")
        self.wire = Wire()
        self.asked: _Asked | None = None
        self._dsn = address.dsn
        self._lane = lane
        self._pooled = address.pooled
        self._answer = address.answer
        self._moved = moved
        self._told_moved = 0
        self._connection: psycopg.Connection[Row] | None = None
        self._backend: tuple[int, datetime] | None = None
        self._topics: set[str] = set()
        self._over = False
        self._pause = threading.Event()  # never set: something to wait for
        self._mine = threading.Lock()  # the pulse line has no thread of its own: see write_now

    def transact(self, fn: Callable[[Transaction], T], verb: str) -> T:
        with self._mine:
            return self._transact(fn, verb)

    def transact_in_time(self, fn: Callable[[Transaction], T], verb: str) -> T:
        """For what is never long: without an answer in time the connection is given up."""
        with self._mine, self.wire.bounded(self._answer):
            return self._transact(fn, verb)

    def _transact(self, fn: Callable[[Transaction], T], verb: str) -> T:
        transaction = PostgresTransaction(self._connected(), verb, pooled=self._pooled)
        try:
            self.asked = self._ask()
            result = fn(transaction)
            transaction.commit()
        except BaseException as error:
            raise self._mended(error, transaction) from error
        finally:
            self.asked = None
        return result

    def question(self, fn: Callable[[Transaction], T]) -> T:
        with self._mine:
            transaction = PostgresTransaction(
                self._connected(), "read", pooled=self._pooled, read_only=True
            )
            try:
                self.asked = self._ask()
                result = fn(transaction)
                transaction.commit()
            except BaseException as error:
                transaction.committing = False  # a question changes nothing
                raise self._mended(error, transaction) from error
            finally:
                self.asked = None
            return result

    def _ask(self) -> _Asked:
        pid, began = self._backend or (None, None)
        return _Asked(time.monotonic(), pid, began)

    def heard(self) -> set[str]:
        """What has rung on this connection; silent while it is away."""
        with self._mine:
            try:
                pgconn = self._connected().pgconn
                pgconn.consume_input()
                while note := pgconn.notifies():
                    self._topics.add(note.extra.decode())
            except (psycopg.Error, Away):
                self._drop()
            topics, self._topics = self._topics, set()
            return topics

    def ears(self) -> list[int]:
        connection = self._connection
        return [] if connection is None or connection.closed else [connection.fileno()]

    def close(self) -> None:
        end = self.thread.submit(self._end)
        try:
            end.result(self._answer)
        except NotYet:
            self.wire.cut()  # nobody waits for that answer any more
            end.result()
        self.thread.shutdown()

    def _end(self) -> None:
        with self._mine:  # whoever is connecting just now has done so, and that is closed too
            self._over = True
            self._drop()

    def _connected(self) -> "psycopg.Connection[Row]":
        if (
            self._over
        ):  # somebody who still listens must not connect again: nobody would close it
            raise Away("the connection to PostgreSQL was closed")
        if self._connection is None or self._connection.closed:
            try:
                self._connection = self._connect()
            except psycopg.OperationalError as error:
                raise Away(f"PostgreSQL cannot be reached: {_plain(error)}") from error
        if self._moved is not None and self._moved() != self._told_moved:
            self._told_moved = self._moved()
            self._connection.execute(TELL_MOVED, [str(self._told_moved)])
        return self._connection

    def _connect(self) -> "psycopg.Connection[Row]":
        connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=min(CONNECT_SECONDS, max(LEAST_SECONDS, round(self._answer))),
            application_name=f"retoma {self._lane}",
            prepare_threshold=None if self._pooled else 2,
        )
        self.wire.lay(connection.fileno())
        try:
            with self.wire.bounded(self._answer):
                self._set_up(connection)
        except BaseException:
            self.wire.drop()
            connection.close()
            raise
        return connection

    def _set_up(self, connection: "psycopg.Connection[Row]") -> None:
        connection.adapters.register_loader("json", TextLoader)
        self._told_moved = 0
        if self._pooled:
            return
        connection.execute(SET_SESSION)
        self._bury_old_backend(connection)
        if self._lane is Lane.PULSE:
            connection.add_notify_handler(lambda note: self._topics.add(note.payload))
            connection.execute(f"LISTEN {CHANNEL}")
            self._topics.add(EVERYTHING)

    def _bury_old_backend(self, connection: "psycopg.Connection[Row]") -> None:
        """What our broken connection had begun must end before anything is asked again."""
        until = time.monotonic() + LOST_BACKEND_SECONDS
        while self._backend is not None and time.monotonic() < until:
            if not connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid = %s AND backend_start = %s",
                self._backend,
            ).fetchall():
                break
            self._pause.wait(0.01)
        self._backend = connection.execute(
            "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchone()

    def _mended(
        self, error: BaseException, transaction: "PostgresTransaction"
    ) -> BaseException:
        """The connection ready for the next asker, the error in the words of the seam."""
        connection = self._connection
        if connection is not None and not connection.broken and not connection.closed:
            try:
                transaction.roll_back()
            except psycopg.Error:
                connection.close()  # it is broken, and only this showed it
        if connection is not None and (connection.broken or connection.closed):
            self._drop()
            if isinstance(error, psycopg.Error):
                kind = ReplyLost if transaction.committing else Away
                return kind(f"the connection to PostgreSQL broke: {_plain(error)}")
        if isinstance(error, ReplyWithheld):
            self._drop()
            return ReplyLost(f"{error}: the answer to the commit was lost")
        if transaction.read_only and isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return error  # the question's own fault, not a server that is only a standby
        return translated(error)

    def _drop(self) -> None:
        self.wire.drop()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PostgresTransaction:
    """A transaction that begins with its first statement."""

    dialect = "postgres"

    def __init__(
        self,
        connection: "psycopg.Connection[Row]",
        verb: str,
        *,
        pooled: bool,
        read_only: bool = False,
    ) -> None:
        self._connection = connection
        self._verb = verb
        self._pooled = pooled
        self.read_only = read_only
        self._begun = False
        self._topics: set[str] = set()
        self.committing = False  # from here on a broken connection says nothing of the outcome
        self._finished = False
        self._sent_together = False
        self._for_caller = False  # whose settings hold

    def run(self, statement: Statement, **params: Any) -> int:
        return self._execute(statement, params)[1]

    def one(self, statement: Statement, **params: Any) -> Row | None:
        rows = self._execute(statement, params)[0]
        return rows[0] if rows else None

    def all(self, statement: Statement, **params: Any) -> list[Row]:
        return self._execute(statement, params)[0]

    def for_caller(self, statement: Statement, **params: Any) -> tuple[list[Row], int]:
        if not self._begun:
            self._begin()
        if not self._for_caller:
            self._for_caller = True
            self._connection.execute(FOR_CALLER)
        [text] = statement.postgres
        # Never prepared: a caller may change a table, and with it what the plan answers.
        cursor = self._connection.execute(text.sql, params, prepare=False)
        return (cursor.fetchall() if cursor.description else []), max(cursor.rowcount, 0)

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        if not self._begun:
            self._begin()
        self._for_us()
        self._sent_together = True
        with self._connection.pipeline():
            kept = [self._sent(call) for call in calls]
        return [_rows(cursor) for cursor in kept]

    def ring(self, topic: str) -> None:
        self._topics.add(topic)

    def finish(self, *calls: Call) -> list[list[Row]]:
        self._for_us()
        if not self.read_only:
            crashpoint(f"{self._verb}.before_commit")
        self.committing = True
        texts = [(text, call.params) for call in calls for text in call.statement.postgres]
        if len(texts) == 1 and not (self._begun or self._topics or self._pooled):
            ((text, params),) = texts
            cursor = self._connection.execute(text.sql, params)
            answers = [cursor.fetchall() if text.answers else []]
        else:
            answers = self._pipelined(calls)
        self._finished = True
        if not self.read_only:
            crashpoint(f"{self._verb}.after_commit")
        return answers

    def commit(self) -> None:
        if self._finished or not self._begun:
            return
        if self.read_only:
            self._connection.execute("COMMIT")
            return
        self._notify()
        crashpoint(f"{self._verb}.before_commit")
        self.committing = True
        self._connection.execute("COMMIT")
        self._finished = True
        crashpoint(f"{self._verb}.after_commit")

    def roll_back(self) -> None:
        if self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self._connection.rollback()
        elif self._sent_together:
            # psycopg takes what an aborted pipeline was to prepare for prepared.
            self._connection.execute("DEALLOCATE ALL")

    def _pipelined(self, calls: tuple[Call, ...]) -> list[list[Row]]:
        explicit = self._begun or self._pooled
        self._sent_together = True
        with self._connection.pipeline():
            if not self._begun and self._pooled:
                self._begin()
            kept = [self._sent(call) for call in calls]
            self._notify()
            if explicit:
                self._connection.execute("COMMIT")
        return [_rows(cursor) for cursor in kept]

    def _sent(self, call: Call) -> "psycopg.Cursor[Row] | None":
        """The cursor on which the call's answer will be, once the pipeline is through."""
        last = None
        for text in call.statement.postgres:
            cursor = self._connection.execute(text.sql, call.params)
            last = cursor if text.answers else last
        return last

    def _execute(self, statement: Statement, params: dict[str, Any]) -> tuple[list[Row], int]:
        if not self._begun:
            self._begin()
        self._for_us()
        rows: list[Row] = []
        changed = 0
        for text in statement.postgres:
            cursor = self._connection.execute(text.sql, params)
            changed = cursor.rowcount
            if text.answers:
                rows = cursor.fetchall()
        return rows, changed

    def _begin(self) -> None:
        self._begun = True
        mode = " ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.read_only else ""
        self._connection.execute(f"BEGIN{mode}")
        if self._pooled:
            self._connection.execute(SET_TRANSACTION)

    def _for_us(self) -> None:
        if self._for_caller:
            self._for_caller = False
            self._connection.execute(SET_TRANSACTION)

    def _notify(self) -> None:
        for topic in sorted(self._topics):
            self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, topic))


def connect_apart(url: str) -> "psycopg.Connection[Row]":
    """A connection of its own for what lasts long, and takes all it sets from its transaction."""
    address = _parse(url)
    try:
        return psycopg.connect(
            address.dsn,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="retoma copy",
            prepare_threshold=None,
        )
    except psycopg.OperationalError as error:
        raise Away(f"PostgreSQL cannot be reached: {_plain(error)}") from error


def _rows(cursor: "psycopg.Cursor[Row] | None") -> list[Row]:
    return [] if cursor is None else cursor.fetchall()


class _Address(NamedTuple):
    """Where the server is, for libpq, and what only we want to know of the way to it."""

    dsn: str
    pooled: bool  # a transaction pooler stands before the server
    answer: float  # seconds


def _parse(url: str) -> _Address:
    parts = urlsplit(url)
    options = parse_qsl(parts.query)
    ours = {name: value for name, value in options if name in OURS}
    told = {name for name, _ in options}
    kept = [(name, value) for name, value in ALIVE_HERE.items() if name not in told]
    kept += [(name, value) for name, value in options if name not in OURS]
    return _Address(
        dsn=urlunsplit(parts._replace(query=urlencode(kept))),
        pooled=ours.get("pooler") == "transaction",
        answer=_seconds(ours["answer"]) if "answer" in ours else ANSWER_SECONDS,
    )


def _seconds(told: str) -> float:
    try:
        answer = float(told)
    except ValueError:
        answer = 0.0
    if not 0 < answer < float("inf"):
        raise Unfit(
            say("answer={told} in the address of the database: write seconds", told=told)
        )
    return answer


def _plain(error: BaseException) -> str:
    """One line, and no password: libpq never prints one, an address in a message might."""
    first = str(error).strip().split("\n")[0]
    return re.sub(r"://[^@\s]+@", "://…@", first)


def translated(error: BaseException) -> BaseException:
    """What happened, in the words of the seam."""
    if not isinstance(error, psycopg.Error):
        return error
    state = error.sqlstate or ""
    kind: type[DatabaseError]
    if state in ("40P01", "40001", "55P03"):
        kind = Busy
    elif state.startswith("53"):
        kind = Full
    elif state[:2] in ("22", "23"):
        kind = BadRow
    elif state == "25006":
        kind = Away
    else:
        return error
    return kind(no_room(_plain(error)) if kind is Full else _plain(error))
