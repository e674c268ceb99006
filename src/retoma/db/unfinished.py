"""What became of a transaction whose connection to PostgreSQL broke.

A server learns late that its client is gone: it may commit seconds later what the client had begun. So
no transaction of this process begins before the server is done with those whose connection broke, and
a commit whose answer was lost is looked up by its transaction id where that is known.
"""

import threading
import time
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from retoma.db.database import Away, Busy, ReplyLost
from retoma.db.rows import Row

END_SECONDS = 5.0  # a server process that was told to end does so in milliseconds
LOOK_AGAIN = 0.01  # seconds

Connection = psycopg.Connection[Row]


class ServerRun(NamedTuple):
    """One run of one server. A crash hands out transaction ids again that were not on disk yet; it
    also resets the statistics, when a single process died and the server itself did not restart."""

    started: datetime
    counting_since: datetime


class Begun(NamedTuple):
    """A transaction that was begun: its id, and the run of the server that gave it."""

    xid: str
    server: ServerRun


class InDoubt(ReplyLost):
    """A commit without an answer, which may be looked up where `begun` is known."""

    def __init__(self, text: str, begun: Begun | None) -> None:
        super().__init__(text)
        self.begun = begun
        self.results: list[Any] = []  # of the transaction's function, if it had returned


class Backend(NamedTuple):
    """A server process that served one connection of ours."""

    pid: int
    started: datetime


ServedBy = Backend | Begun

SERVER_RUN = "SELECT pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_bgwriter)"
END_BACKEND = (
    "SELECT pg_is_in_recovery(), (SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = %s AND backend_start = %s) IS NOT NULL"
)
# Behind a pooler the process may serve somebody else by now: only one that is at this very transaction ends.
END_TRANSACTION = (
    "SELECT pg_is_in_recovery(), (SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE backend_xid = CAST(CAST(%s AS xid8) AS xid)) IS NOT NULL"
)
STANDBY = "SELECT pg_is_in_recovery()"
STATUS = "SELECT pg_is_in_recovery(), pg_xact_status(CAST(%s AS xid8))"


class Unfinished:
    """The work of this process that its server may still be at, though the connection broke."""

    def __init__(self) -> None:
        self._left: set[ServedBy] = set()
        self._changing = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._left)

    def add(self, work: ServedBy) -> None:
        with self._changing:
            self._left.add(work)

    def end(self, connection: Connection, seconds: float) -> None:
        """Return when the server is done with all of it; Away where it is not within `seconds`."""
        until = time.monotonic() + seconds
        with self._changing:
            left = list(self._left)
        for work in left:
            while _under_way(connection, work):
                if time.monotonic() > until:
                    raise Away(f"the server is still at work for a broken connection: {work}")
                threading.Event().wait(LOOK_AGAIN)
            with self._changing:
                self._left.discard(work)


def outcome(connection: Connection, begun: Begun) -> bool | None:
    """Whether the transaction was committed; None where the server cannot tell."""
    standby, status = _status(connection, begun)
    _refuse_standby(standby)
    match status:
        case "committed":
            # After a crash the id may be that of another transaction: a "no" is sure, a "yes" is not.
            return True if server_run(connection) == begun.server else None
        case "in progress":
            if _started_since(connection, begun):
                return False  # the id of a commit that survived is not handed out again
            raise Busy(f"transaction {begun.xid} is still under way")
        case "aborted":
            return False
        case _:
            return None  # so old that the server has forgotten it


def _started_since(connection: Connection, begun: Begun) -> bool:
    """Whether this server started after the transaction began, as after a crash or a promotion.

    Then nothing of the transaction is under way, and its id may belong to somebody else's.
    """
    return server_run(connection).started != begun.server.started


def server_run(connection: Connection) -> ServerRun:
    [row] = connection.execute(SERVER_RUN, prepare=False).fetchall()
    return ServerRun._make(row)


def _under_way(connection: Connection, work: ServedBy) -> bool:
    """Whether the server is at it; it is told to end."""
    if isinstance(work, Backend):
        [(standby, there)] = connection.execute(END_BACKEND, work, prepare=False).fetchall()
    elif _started_since(connection, work):
        [(standby,)] = connection.execute(STANDBY, prepare=False).fetchall()
        there = False
    else:
        [(standby, _)] = connection.execute(
            END_TRANSACTION, [work.xid], prepare=False
        ).fetchall()
        there = _status(connection, work)[1] == "in progress"
    _refuse_standby(standby)
    return bool(there)


def _status(connection: Connection, begun: Begun) -> tuple[bool, str | None]:
    try:
        [row] = connection.execute(STATUS, [begun.xid], prepare=False).fetchall()
    except psycopg.errors.InvalidParameterValue:
        return False, "aborted"  # this server has not come to that id: it never heard of it
    return row[0], row[1]


def _refuse_standby(standby: bool) -> None:
    """A standby knows nothing of what its primary is at."""
    if standby:
        raise Away(
            "only a standby answers, which cannot tell what became of a broken connection"
        )
