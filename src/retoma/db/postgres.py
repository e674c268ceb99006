"""PostgreSQL through psycopg: three lines a process — writes; claims and reads; the pulse.

Each line is one connection driven by one thread. A group of statements goes out in one round trip
(libpq's pipeline: everything up to the sync is one transaction). Behind a transaction pooler
(`?pooler=transaction`) nothing is kept in the session: no LISTEN, no prepared statements.

A network may swallow what is said on it. Both ends ask each other whether they are still there, and
whoever has no answer for a while (`?answer=`, seconds) asks on the pulse's line what became of it.

A connection that breaks during a commit leaves it in doubt: see `unfinished`.
"""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import abc
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types.datetime import TimestamptzLoader
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
    Interrupted,
    Lane,
    ReplyLost,
    Transaction,
    Unfit,
    no_room,
)
from retoma.db.one_thread import OneThread
from retoma.db.patience import PATIENCE, patiently
from retoma.db.poll import wait_readable
from retoma.db.rows import EARLIEST, LATEST, Row
from retoma.db.statements import Statement, adhoc
from retoma.db.unfinished import (
    END_SECONDS,
    Backend,
    Begun,
    InDoubt,
    ServerRun,
    Unfinished,
    outcome,
    server_run,
)
from retoma.db.wire import Wire
from retoma.words import say

T = TypeVar("T")

CHANNEL = "retoma"
SCHEMA = "retoma"
CONNECT_SECONDS = 5
LEAST_SECONDS = 2  # that libpq waits; 0 would be for ever
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
# The id is known before the commit is sent, by a round trip that is made anyway.
BEGIN = "BEGIN; SELECT CAST(pg_current_xact_id() AS text)"
BEGIN_POOLED = f"BEGIN; {SET_TRANSACTION}; SELECT CAST(pg_current_xact_id() AS text)"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
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
        unfinished = Unfinished()
        self._lines = {lane: _Line(address, lane, moved, unfinished) for lane in Lane}
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
        seconds = self._patience if patience is None else patience

        async def once() -> T:
            try:
                return await self._answered(line, lambda: line.transact(fn, verb))
            except InDoubt as doubt:
                [result] = await self._settled(line, doubt, seconds)
                return cast("T", result)

        return await patiently(once, seconds)

    async def _settled(self, line: "_Line", doubt: InDoubt, patience: float) -> list[Any]:
        """The result of a commit that happened all the same; Away where it did not, the doubt where
        nobody can tell."""
        begun = doubt.begun
        if begun is None:
            raise doubt

        async def ask() -> bool | None:
            return await self._answered(line, lambda: line.outcome(begun))

        try:
            happened = await patiently(ask, patience)
        except DatabaseError:
            raise doubt from None
        if happened is False:
            raise Away(f"{doubt}; the commit did not happen") from doubt
        if not (happened and doubt.results):
            raise doubt
        return doubt.results

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
        if not wait_readable(ears, seconds):
            return set()
        self._empty_wakes()
        return set() if self._pooled else self._lines[Lane.PULSE].heard()

    def wake(self) -> None:
        os.write(self._wake_in, b"!")

    def deaf(self) -> bool:
        return self._pooled

    def free_space(self) -> int | None:
        return None

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
            # Closed meanwhile: the wait is over as well. No thread left: the next look finds one.
            with suppress(RuntimeError, Away):
                self._lines[Lane.PULSE].thread.submit(self._end_if_forgotten, line)

    def _end_if_forgotten(self, line: "_Line") -> None:
        """Cut a line whose answer went astray; what the server is still at may take its time."""
        asked = line.asked
        if asked is None or time.monotonic() - asked.at < self._answer:
            return
        pulse = self._lines[Lane.PULSE]
        try:
            told: dict[str, Any] = {
                "pid": asked.pid,
                "began": asked.began,
                "lately": self._answer,
            }
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
        self,
        address: "_Address",
        lane: Lane,
        moved: Callable[[], int] | None,
        unfinished: Unfinished,
    ) -> None:
        self.thread = OneThread(f"retoma-{lane}")
        self.wire = Wire()
        self.asked: _Asked | None = None
        self._dsn = address.dsn
        self._lane = lane
        self._pooled = address.pooled
        self._answer = address.answer
        self._moved = moved
        self._told_moved = 0
        self._connection: psycopg.Connection[Row] | None = None
        self._unfinished = unfinished
        self._backend: Backend | None = None
        self._server: ServerRun | None = None
        self._topics: set[str] = set()
        self._over = False
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
        results: list[T] = []
        try:
            self.asked = self._ask()
            results.append(fn(transaction))
            transaction.commit()
        except BaseException as error:
            mended = self._mended(error, transaction)
            if isinstance(mended, InDoubt):
                mended.results = results
            raise mended from error
        finally:
            self.asked = None
        return results[0]

    def outcome(self, begun: Begun) -> bool | None:
        """What became of a commit whose answer was lost, once nothing of it is under way."""
        with self._mine:
            try:
                connection = self._connected()
                with self.wire.bounded(self._answer):
                    return outcome(connection, begun)
            except psycopg.Error as error:
                self._drop()
                raise Away(f"the connection to PostgreSQL broke: {_plain(error)}") from error

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
            except (psycopg.OperationalError, OSError) as error:  # OSError: too many open files
                raise Away(f"PostgreSQL cannot be reached: {_plain(error)}") from error
        if self._unfinished:
            self._end_unfinished(self._connection)
        if self._moved is not None:
            self._move_clock(self._connection, self._moved())
        return self._connection

    def _move_clock(self, connection: "psycopg.Connection[Row]", moved: int) -> None:
        """The time of this session is that of the tests' clock before anything is asked in it."""
        if moved == self._told_moved:
            return
        try:
            with self.wire.bounded(self._answer):
                connection.execute(TELL_MOVED, [str(moved)])
        except psycopg.Error as error:
            self._drop()
            raise Away(f"the clock of the session could not be set: {_plain(error)}") from error
        self._told_moved = moved

    def _connect(self) -> "psycopg.Connection[Row]":
        connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=min(CONNECT_SECONDS, max(LEAST_SECONDS, round(self._answer))),
            application_name=f"retoma {self._lane}",
            prepare_threshold=None if self._pooled else 2,
        )
        try:
            self.wire.lay(connection.fileno())
            with self.wire.bounded(self._answer):
                self._set_up(connection)
        except BaseException:
            self.wire.drop()
            connection.close()
            raise
        return connection

    def _set_up(self, connection: "psycopg.Connection[Row]") -> None:
        connection.adapters.register_loader("json", TextLoader)
        connection.adapters.register_loader("timestamptz", Moments)
        self._told_moved = 0
        self._server = server_run(connection)
        if self._pooled:
            return
        connection.execute(SET_SESSION)
        [row] = connection.execute(
            "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchall()
        self._backend = Backend._make(row)
        if self._lane is Lane.PULSE:
            connection.add_notify_handler(lambda note: self._topics.add(note.payload))
            connection.execute(f"LISTEN {CHANNEL}")
            self._topics.add(EVERYTHING)

    def _end_unfinished(self, connection: "psycopg.Connection[Row]") -> None:
        """What broken connections had begun must end before anything is asked again."""
        beating = self._lane is Lane.PULSE
        try:
            with self.wire.bounded(self._answer):
                self._unfinished.end(connection, 0 if beating else END_SECONDS)
        except psycopg.Error as error:
            self._drop()
            raise Away(f"the connection to PostgreSQL broke: {_plain(error)}") from error
        except Away:
            if not beating:  # a heartbeat may be repeated, and must not wait
                raise

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
            self._drop(transaction)
            if isinstance(error, psycopg.Error):
                text = f"the connection to PostgreSQL broke: {_plain(error)}"
                if transaction.committing:
                    return InDoubt(text, self._begun(transaction))
                return Away(text)
        if isinstance(error, ReplyWithheld):
            self._drop()
            return ReplyLost(f"{error}: the answer to the commit was lost")
        if transaction.read_only and isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return error  # the question's own fault, not a server that is only a standby
        if isinstance(error, psycopg.Error) and not transaction.at_callers:
            if error.sqlstate == FORGOTTEN:
                self._drop()  # a new connection knows of none
                return Busy(_plain(error))
            return translated(error)
        told = translated(error)
        if isinstance(told, Interrupted):
            told.callers = True
        return told

    def _begun(self, transaction: "PostgresTransaction") -> Begun | None:
        if transaction.xid is None or self._server is None:
            return None
        return Begun(transaction.xid, self._server)

    def _drop(self, transaction: "PostgresTransaction | None" = None) -> None:
        """Let go of the connection; `transaction`: what the server may still be at."""
        self.wire.drop()
        if self._connection is None:
            return
        self._connection.close()
        self._connection = None
        begun = None if transaction is None else self._begun(transaction)
        work = self._backend or begun
        if work is not None and not self._over:
            self._unfinished.add(work)
        self._backend = None


class PostgresTransaction(Transaction):
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
        self.xid: str | None = None  # known from its beginning, where it has one of its own
        self._topics: set[str] = set()
        self.committing = False  # from here on a broken connection says nothing of the outcome
        self._finished = False
        self._sent_together = False
        self._for_caller = False  # whose settings hold

    @property
    def at_callers(self) -> bool:
        """Whether its last statement was a caller's own."""
        return self._for_caller

    def run(self, statement: Statement, /, **params: Any) -> int:
        return self._execute(statement, params)[1]

    def ask(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
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
        if self._pooled and not self._begun:
            self._begin()  # no server process of ours could be ended: the id must be known before
        self.committing = True
        texts = [(text, call.params) for call in calls for text in call.statement.postgres]
        if len(texts) == 1 and not (self._begun or self._topics):
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
            # psycopg takes what an aborted pipeline was to prepare for prepared, and forgets it with
            # a transaction that is rolled back. (After a DEALLOCATE ALL of ours it does so only the
            # first time it sees one.)
            self._connection.execute("BEGIN", prepare=False)
            self._connection.rollback()

    def _pipelined(self, calls: tuple[Call, ...]) -> list[list[Row]]:
        self._sent_together = True
        with self._connection.pipeline():
            kept = [self._sent(call) for call in calls]
            self._notify()
            if self._begun:
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
        if self.read_only:
            self._connection.execute(BEGIN_READING)
            if self._pooled:
                self._connection.execute(SET_TRANSACTION)
            return
        cursor = self._connection.execute(
            BEGIN_POOLED if self._pooled else BEGIN, prepare=False
        )
        while cursor.nextset():
            pass
        [(self.xid,)] = cursor.fetchall()

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


def _usual_loader() -> type[abc.Loader]:
    """What psycopg itself reads times with, in C where it is there, whatever its user registered."""
    own = AdaptersMap(types=psycopg.adapters.types)
    own.register_loader("timestamptz", TimestamptzLoader)
    oid = own.types["timestamptz"].oid
    return own.get_loader(oid, psycopg.pq.Format.TEXT) or TimestamptzLoader


USUAL = _usual_loader()


class Moments(Loader):
    """Reads a time, however far away: one that Python's calendar cannot hold is at its end."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._usual = USUAL(oid, context)

    def load(self, data: Buffer) -> datetime:
        try:
            at: datetime = self._usual.load(data)
        except psycopg.DataError:
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST
        return min(max(at, EARLIEST), LATEST)


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


# By the whole SQLSTATE, or by its class.
KINDS: dict[str, type[DatabaseError]] = {
    "08": Away,
    "22": BadRow,
    "23": BadRow,
    "25006": Away,
    "40001": Busy,
    "40P01": Busy,
    "44": BadRow,
    "53": Full,
    "54": BadRow,  # too large, as for an index
    "55P03": Busy,
    "57": Away,  # the server is starting or stopping
    "57014": Interrupted,
    "58": Away,  # its disk or its system fails
}
FORGOTTEN = "26000"  # a prepared statement that the server does not know


def translated(error: BaseException) -> BaseException:
    """What happened, in the words of the seam."""
    if not isinstance(error, psycopg.Error):
        return error
    state = error.sqlstate or ""
    kind = KINDS.get(state) or KINDS.get(state[:2])
    if kind is None:
        return error
    return kind(no_room(_plain(error)) if kind is Full else _plain(error))
