"""SQLite through apsw: one writer thread in each process, one process at a time, readers apart.

Whatever waits when the last commit ends is committed together, each asker in a savepoint of its
own. Between processes a lock file decides who writes (`write_lock.py`). Whoever commits wakes the other processes by a socket for each (`wakeups.py`).
"""

import asyncio
import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import apsw

from retoma.db.clock import database_clock
from retoma.db.crashpoint import ReplyWithheld, crashpoint
from retoma.db.database import (
    OURS,
    Away,
    BadRow,
    Busy,
    Call,
    DatabaseError,
    Full,
    Lane,
    ReplyLost,
    Transaction,
    Unfit,
    no_room,
)
from retoma.db.one_thread import OneThread
from retoma.db.patience import PATIENCE, patiently
from retoma.db.rows import Row, microseconds
from retoma.db.statements import Statement
from retoma.db.wakeups import Wakeups
from retoma.db.write_lock import WriteLock
from retoma.words import say

T = TypeVar("T")

BUSY_MS = 30_000  # only strangers make us wait here: our own processes take turns
WRITE_LOCK_PATIENCE = (
    10.0  # seconds until another process that keeps the write lock makes us say Busy
)
GROUP = 64  # askers that share a commit: keeps a turn short for the other processes
CHECKPOINT_PAGES = 4_000  # 16 MB of log between checkpoints
SYNCHRONOUS = ("full", "normal", "extra")

_File = tuple[int, int]  # a device, and a file on it


class Sqlite:
    """A SQLite file shared by any number of processes of one machine."""

    dialect = "sqlite"

    def __init__(
        self,
        url: str,
        moved: Callable[[], int] | None = None,
        patience: float | None = None,
    ) -> None:
        self.url = url
        self._patience = PATIENCE if patience is None else patience
        self._path, self._synchronous = _parse(url)
        self._moved = moved
        self._asks: deque[_Ask] = deque()
        self._waiting = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._reader = OneThread("retoma-read")
        self._reading: _Opened | None = None
        self._made_wakeups: Wakeups | None = None
        self._making = threading.Lock()

    async def write(
        self,
        fn: Callable[[Transaction], T],
        *,
        verb: str,
        lane: Lane = Lane.WRITE,
        patience: float | None = None,
    ) -> T:
        failed: list[_CommitFailed] = []

        async def once() -> T:
            try:
                return await asyncio.wrap_future(self._ask(fn, verb, lane))
            except _CommitFailed as error:
                failed.append(error)
                raise

        try:
            return await patiently(once, self._patience if patience is None else patience)
        except (Away, Busy, Full) as error:
            if failed:
                raise ReplyLost(f"{error}; a crash may bring it back") from error
            raise

    async def read(
        self,
        fn: Callable[[Transaction], T],
        *,
        patience: float | None = None,
    ) -> T:
        async def once() -> T:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._reader, self._read, fn)

        return await patiently(once, self._patience if patience is None else patience)

    def write_now(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        return self._ask(fn, verb, Lane.PULSE).result()

    def wait_bell(self, seconds: float) -> set[str]:
        return self._wakeups().wait(seconds)

    def wake(self) -> None:
        self._wakeups().interrupt()

    def deaf(self) -> bool:
        return not self._wakeups().can_listen()

    def free_space(self) -> int | None:
        try:
            disk = os.statvfs(self._path.absolute().parent)
        except OSError:
            return None
        return disk.f_bavail * disk.f_frsize

    def close(self) -> None:
        with self._waiting:
            self._closing = True
            self._waiting.notify()
        if self._thread is not None:
            self._thread.join()
        self._reader.submit(self._close_reading)
        self._reader.shutdown()
        if self._made_wakeups is not None:
            self._made_wakeups.close()

    # — writing: everything goes through one thread —

    def _ask(self, fn: Callable[[Transaction], T], verb: str, lane: Lane) -> "Future[T]":
        ask = _Ask(fn, verb)
        with self._waiting:
            if self._closing:
                raise Away(f"{self._path} was closed")
            if self._thread is None:
                self._thread = self._start_writing()
            (self._asks.appendleft if lane is Lane.PULSE else self._asks.append)(ask)
            self._waiting.notify()
        return ask.future

    def _start_writing(self) -> threading.Thread:
        thread = threading.Thread(target=self._write_for_ever, name="retoma-write", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has none left; who asks next may find one
            raise Away(f"{self._path} was not asked: {error}") from error
        return thread

    def _write_for_ever(self) -> None:
        opened: _Opened | None = None
        while asks := self._next_asks():
            try:
                if opened is not None and self._replaced(opened):
                    opened.close()
                    opened = None
                if opened is None:
                    opened = self._open(to_write=True)
                self._commit_together(opened, asks)
            except BaseException as error:  # noqa: BLE001 — every asker gets an answer, also the next
                for ask in asks:
                    ask.fail(_translated(error, self._path))
        if opened is not None:
            opened.close()

    def _open(self, *, to_write: bool) -> "_Opened":
        try:
            connection = _connect(self._path, self._synchronous, self._moved)
            lock = WriteLock(self._path, WRITE_LOCK_PATIENCE) if to_write else None
        except OSError as error:
            raise _refused(error, self._path) from error
        path = self._path.absolute()  # wherever this process goes from here
        return _Opened(connection, path, _identity(path), lock)

    def _replaced(self, opened: "_Opened") -> bool:
        """Whether the name stands for another file by now, as after a restore: what is written to
        the one without a name is lost, and its runners would never hear that they are over."""
        now = _identity(opened.path)
        if now == opened.file:
            return False
        if now is None or not opened.path.stat().st_size:
            raise Away(f"{self._path} was taken away while it was in use")
        return True

    def _next_asks(self) -> "list[_Ask]":
        with self._waiting:
            while not self._asks and not self._closing:
                self._waiting.wait()
            size = min(GROUP, len(self._asks))
            return [self._asks.popleft() for _ in range(size)]

    def _commit_together(self, opened: "_Opened", asks: "list[_Ask]") -> None:
        with opened.locked():
            done = self._in_one_transaction(opened.connection, asks)
        if done:
            self._wake_others(set().union(*(ask.topics for ask in asks)))
            for ask in asks:
                ask.answer()
        else:
            # One of them undid the others' work (no room, no memory): each on its own, then.
            for ask in asks:
                self._alone(opened, ask)

    def _alone(self, opened: "_Opened", ask: "_Ask") -> None:
        try:
            self._commit_together(opened, [ask])
        except BaseException as error:  # noqa: BLE001 — its own answer, not its neighbours'
            ask.fail(_translated(error, self._path))

    def _in_one_transaction(self, connection: apsw.Connection, asks: "list[_Ask]") -> bool:
        if len(asks) == 1:
            return self._by_itself(connection, asks[0])
        connection.execute("BEGIN IMMEDIATE")
        try:
            for ask in asks:
                ask.do_among_others(connection)
                if not connection.in_transaction:
                    return False
                if ask.error is None:
                    ask.pass_point("before_commit")
            connection.execute("COMMIT")
        except BaseException:  # noqa: BLE001 — each of them is asked again, by itself
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return False
        for ask in asks:
            if ask.error is None:
                ask.pass_point("after_commit")
        return True

    def _by_itself(self, connection: apsw.Connection, ask: "_Ask") -> bool:
        try:
            ask.do(connection)
            if connection.in_transaction:
                ask.begin_commit()
                connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if ask.committing and isinstance(error, apsw.IOError):
                raise _CommitFailed(f"{self._path}: {error}") from error
            raise
        ask.pass_point("after_commit")
        return True

    # — reading —

    def _read(self, fn: Callable[[Transaction], T]) -> T:
        try:
            connection = self._read_from()
            try:
                return fn(SqliteTransaction(connection, begin="BEGIN"))
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except apsw.Error as error:
            self._close_reading()  # it may still be in a transaction: the next question begins anew
            raise _translated(error, self._path) from error

    def _read_from(self) -> apsw.Connection:
        if self._reading is not None and self._replaced(self._reading):
            self._close_reading()
        if self._reading is None:
            self._reading = self._open(to_write=False)
            self._reading.connection.execute("PRAGMA query_only = on")
        return self._reading.connection

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _wakeups(self) -> Wakeups:
        with self._making:
            if self._made_wakeups is None:
                self._path.touch(mode=0o600)
                self._made_wakeups = Wakeups(self._path.resolve())
            return self._made_wakeups

    def _wake_others(self, topics: set[str]) -> None:
        if topics:
            # The commit has happened: no open file left must not deny it.
            with suppress(OSError):
                self._wakeups().send(topics)


class _CommitFailed(Away):
    """An I/O error in the middle of a commit: undone for every process that lives. The next commit
    overwrites what is in the log; but if none comes before a crash, it may turn out to have happened."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A connection, which file it is to, and the lock of who writes."""

    connection: apsw.Connection
    path: Path
    file: _File | None
    lock: WriteLock | None

    @contextmanager
    def locked(self) -> Iterator[None]:
        assert self.lock is not None  # noqa: S101 — opened to write
        self.lock.take()
        try:
            yield
        finally:
            self.lock.release()

    def close(self) -> None:
        """Close it. A last checkpoint that fails is made by whoever opens the file next."""
        with suppress(apsw.Error):
            self.connection.close()
        if self.lock is not None:
            self.lock.close()


@dataclass(slots=True)
class _Ask:
    """One function that wants to write, and whoever waits for it."""

    fn: Callable[[Any], Any]
    verb: str
    future: "Future[Any]" = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None
    topics: set[str] = field(default_factory=set)
    committing: bool = False

    def begin_commit(self) -> None:
        self.pass_point("before_commit")
        self.committing = True

    def do(self, connection: apsw.Connection) -> None:
        """Run the function in a transaction of its own, which begins with its first statement."""
        self.error, self.committing = None, False
        transaction = SqliteTransaction(connection, "BEGIN IMMEDIATE", self.begin_commit)
        self.result = self.fn(transaction)
        self.topics = transaction.topics

    def do_among_others(self, connection: apsw.Connection) -> None:
        """Run the function; what it raised is its own, what it had changed is undone."""
        self.error = None
        transaction = SqliteTransaction(connection)
        connection.execute("SAVEPOINT ask")
        try:
            self.result = self.fn(transaction)
        except BaseException as error:
            if not connection.in_transaction:
                raise
            self.error = error
            transaction.topics.clear()
            connection.execute("ROLLBACK TO ask")
        connection.execute("RELEASE ask")
        self.topics = transaction.topics

    def pass_point(self, where: str) -> None:
        try:
            crashpoint(f"{self.verb}.{where}")
        except ReplyWithheld as error:
            self.error = ReplyLost(f"{self.verb}: the answer to the commit was lost")
            self.error.__cause__ = error
        except Exception as error:
            if where == "before_commit":
                raise
            self.error = error

    def answer(self) -> None:
        if self.error is None:
            self._settle(lambda: self.future.set_result(self.result))
        else:
            self.fail(_translated(self.error, Path()))

    def fail(self, error: BaseException) -> None:
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, tell: Callable[[], None]) -> None:
        with suppress(InvalidStateError):  # whoever asked was cancelled meanwhile
            tell()


class SqliteTransaction(Transaction):
    """A transaction of the embedded database; with `begin` it begins with its first statement."""

    dialect = "sqlite"

    def __init__(
        self,
        connection: apsw.Connection,
        begin: str = "",
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        # One cursor for all statements: making a cursor costs as much as running a short statement.
        self._cursor = connection.cursor()
        self._begin = begin
        self._before_commit = before_commit
        self.topics: set[str] = set()

    def run(self, statement: Statement, /, **params: Any) -> int:
        self.ask(statement, params)
        return self._connection.changes()

    def for_caller(self, statement: Statement, **params: Any) -> tuple[list[Row], int]:
        self._begun()
        before = self._connection.total_changes()
        rows = self.ask(statement, params)
        told = self._connection.total_changes() > before
        return rows, self._connection.changes() if told else 0

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        return [self.ask(call.statement, call.params) for call in calls]

    def ring(self, topic: str) -> None:
        self.topics.add(topic)

    def finish(self, *calls: Call) -> list[list[Row]]:
        if self._begin and len(calls) == 1 and len(calls[0].statement.sqlite) == 1:
            # A transaction in itself: an idle runner's only statements, three times as many else.
            self._begin = ""
            self._before_commit()
        return self.together(calls)

    @property
    def begun(self) -> bool:
        """Whether a statement was sent; always, where there was nothing to begin."""
        return not self._begin

    def _begun(self) -> None:
        if self._begin:
            self._cursor.execute(self._begin)
            self._begin = ""

    def ask(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        if self._begin:
            self._begun()
        bindings = _bound(params)
        cursor = self._cursor
        answer: list[Row] = []
        for text in statement.sqlite:
            rows = cursor.execute(text.sql, bindings).fetchall()
            if text.answers:
                answer = rows
        return answer


def _bound(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters with every time in microseconds; the same dict where there is none."""
    bindings = params
    for name, value in params.items():
        if isinstance(value, datetime):
            bindings = bindings | {name: microseconds(value)}
    return bindings


def _parse(url: str) -> tuple[Path, str]:
    parts = urlsplit(url)
    if parts.netloc or len(parts.path) < 2:
        raise Unfit(
            say(
                "{url}: write sqlite:///work.db, or sqlite:////folder/work.db from the root",
                url=url,
            )
        )
    synchronous = parse_qs(parts.query).get("synchronous", ["full"])[0].lower()
    if synchronous not in SYNCHRONOUS:
        raise Unfit(
            say("{url}: synchronous is one of {known}", url=url, known=", ".join(SYNCHRONOUS))
        )
    return Path(parts.path[1:]), synchronous


def _identity(path: Path) -> _File | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def path_of(url: str) -> Path:
    """The file that an address names."""
    return _parse(url)[0]


@contextmanager
def copy_file(url: str, to: Path) -> Iterator["SqliteTransaction"]:
    """Copy a database while others write to it; then ask the copy, which is closed after that."""
    path = path_of(url)
    try:
        connection = _connect(path, "full", None)
        try:
            connection.execute("VACUUM INTO ?", (str(to),))
        finally:
            connection.close()
        copy = apsw.Connection(str(to), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            clock = database_clock()
            copy.create_scalar_function("clock", lambda *_: clock(), 0)
            yield SqliteTransaction(copy)
        finally:
            copy.close()
    except apsw.Error as error:
        raise _translated(error, path) from error


def _connect(path: Path, synchronous: str, moved: Callable[[], int] | None) -> apsw.Connection:
    if not path.parent.is_dir():
        raise Unfit(say("{path}: its folder does not exist", path=path))
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    # Without it a statement whose plan might gain from a bound value is prepared anew each time.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    clock = database_clock(moved)
    flags = apsw.SQLITE_INNOCUOUS

    def now(*_: Any) -> int:
        return clock()

    def now_in(*seconds: Any) -> int:
        return clock() + int(seconds[0] * 1_000_000)

    def now_text(*_: Any) -> str:
        seconds, micros = divmod(clock(), 1_000_000)
        whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{whole}.{micros // 1000:03}"

    connection.create_scalar_function("clock", now, 0, flags=flags)
    connection.create_scalar_function("clock_in", now_in, 1, flags=flags)
    # Views that plain `sqlite3` must read ask for this one, which every SQLite has: here it is our clock.
    connection.create_scalar_function("current_timestamp", now_text, 0, flags=flags)
    if _may_be_ours(connection):
        _keep_log(connection, path)
    for pragma in (
        f"synchronous = {synchronous}",
        "foreign_keys = on",
        "trusted_schema = off",
        "temp_store = memory",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        "cache_size = -65536",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _keep_log(connection: apsw.Connection, path: Path) -> None:
    """Switch to WAL, one process at a time: here SQLite says busy at once, and waits for nobody."""
    if list(connection.execute("PRAGMA journal_mode")) == [("wal",)]:
        return
    lock = WriteLock(path, WRITE_LOCK_PATIENCE)
    try:
        lock.take()
        connection.execute("PRAGMA journal_mode = wal").fetchall()
    finally:
        lock.close()


def _may_be_ours(connection: apsw.Connection) -> bool:
    """Empty, or marked as ours: the mode is written into the file, and others' are not ours to change."""
    [[mark]] = connection.execute("PRAGMA application_id")
    return mark == OURS or not list(connection.execute("SELECT 1 FROM sqlite_master LIMIT 1"))


def _refused(error: OSError, path: Path) -> Exception:
    """What the system did not let us open, where waiting or making room helps."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return Full(no_room(f"{path}: {error}"))
        case errno.EMFILE | errno.ENFILE | errno.ENOMEM:
            return Away(f"{path}: {error}")
        case _:
            return error


def _translated(error: BaseException, path: Path) -> BaseException:
    """What happened, in the words of the seam."""
    match error:
        case apsw.NotADBError():
            kind: type[DatabaseError] = Unfit
        # Without memory, or interrupted: rolled back as a whole, whatever the statement was.
        case (
            apsw.BusyError()
            | apsw.LockedError()
            | apsw.ProtocolError()
            | apsw.InterruptError()
            | apsw.NoMemError()
        ):
            kind = Busy
        case apsw.FullError():
            kind = Full
        case apsw.IOError() | apsw.CantOpenError() | apsw.ReadOnlyError():
            kind = Away
        case apsw.ConstraintError() | apsw.MismatchError() | apsw.TooBigError():
            kind = BadRow
        case _:
            return error
    said = f"{path}: {error}" if path.name else str(error)
    told = kind(no_room(said) if kind is Full else said)
    told.__cause__ = error
    return told
