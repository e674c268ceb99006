"""A proxy that knows PostgreSQL's protocol: it names every statement that passes, and spoils one of them.

It runs on a loop in a thread of its own. Answers that it makes up are the server's own with another
SQLSTATE: the statement is replaced by one that fails there, so that the transaction is where it would be.
"""

import asyncio
import re
import resource
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from retoma.db.statements import bare
from tests.prove.places import Place, name_of

LATE = 0.12  # seconds by which a network delivers what a dead client had sent
EMPTY = 0.25  # seconds for which no file can be opened
BAD = "SELECT 1 FROM retoma_prove_no_such_table"
MESSAGES = {
    "57014": "canceling statement due to user request",
    "57014-timeout": "canceling statement due to statement timeout",
    "40001": "could not serialize access due to concurrent update",
    "40P01": "deadlock detected",
    "53100": 'could not extend file "base/1/2": No space left on device',
    "25006": "cannot execute INSERT in a read-only transaction",
    "XX999": "an error of which nobody has heard",
    "54000": "index row size 8192 exceeds btree version 4 maximum 2704",
}


class Fault(StrEnum):
    """What happens to one statement."""

    CUT_BEFORE = "cut before"  # the server never gets it
    CUT_AFTER = "cut after"  # the server has answered, and nobody hears it
    CUT_UNSEEN = "cut unseen"  # the client is cut off at once, the server goes on
    CUT_LATE = "cut, late"  # the client is cut off, and the server gets it a moment later
    CANCEL = "57014"
    TIMEOUT = "57014-timeout"
    SERIALIZATION = "40001"
    DEADLOCK = "40P01"
    FULL = "53100"
    STANDBY = "25006"
    UNKNOWN = "XX999"
    TOO_LARGE = "54000"
    EMFILE = "EMFILE"
    RESTART = "restart"


ENDS_ONLY = (Fault.CUT_UNSEEN, Fault.CUT_LATE)  # of what ends a transaction
ERRORS = tuple(each for each in Fault if each in MESSAGES)
OF_CHANGES = (Fault.FULL, Fault.STANDBY, Fault.TOO_LARGE)  # nothing else can meet them
# The statement itself may be what is wrong, so that the one job whose it is may fail by it.
GUILTY = (Fault.UNKNOWN, Fault.TOO_LARGE)
CHANGES = re.compile(r"\b(insert|update|delete|create|drop|alter)\b", re.IGNORECASE)


class Wire:
    """Stands before a server; `url` leads through it. with Wire(url) as wire: …"""

    def __init__(self, url: str, restart: Callable[[], None] | None = None) -> None:
        self._upstream = urlsplit(url)
        self._restart = restart
        self._restarting: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire")
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._at: Place | None = None
        self._fault: Fault | None = None
        self._seen: Counter[tuple[str, str]] = Counter()
        self.places: list[Place] = []
        self.ends: set[Place] = set()
        self.changes: set[Place] = set()
        self.hit = False
        self.port = 0
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)

    @property
    def url(self) -> str:
        user, _, _ = self._upstream.netloc.rpartition("@")
        plain = "sslmode=disable&gssencmode=disable"
        return self._upstream._replace(
            netloc=f"{user}@127.0.0.1:{self.port}", query=plain
        ).geturl()

    def arm(self, at: Place | None, fault: Fault | None, path: str) -> None:
        """From now on count anew; spoil one place. `path`: the database, with its slash."""
        self._upstream = self._upstream._replace(path=path)
        self._at, self._fault = at, fault
        self._seen.clear()
        self.places, self.ends, self.changes, self.hit = [], set(), set(), False

    def __enter__(self) -> "Wire":
        self._thread.start()
        self._ask(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._ask(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut_all(self) -> None:
        """End every connection, so that the next scenario begins with none."""
        self._ask(self._cut_all())

    def _ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self._server = await self._loop.create_server(lambda: _Link(self), sock=listening)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut_all()

    async def _cut_all(self) -> None:
        for link in list(self._links):
            link.abort()

    # — asked by links —

    def note(self, lane: str, sql: str) -> tuple[Place, Fault | None]:
        """The name of a statement that is about to pass, and what is to happen to it."""
        name = name_of("postgres", sql)
        place = Place(lane, name, self._seen[lane, name])
        self._seen[lane, name] += 1
        self.places.append(place)
        if CHANGES.search(bare(sql)):
            self.changes.add(place)
        if place != self._at or self.hit:
            return place, None
        self.hit = True
        return place, self._fault

    def restart(self) -> None:
        if self._restart is not None:
            self._restarting = threading.Thread(target=self._restart, name="restart")
            self._restarting.start()

    def no_files(self) -> None:
        """For a moment this process can open nothing."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, self._files[1]))
        self._loop.call_later(EMPTY, self.files_again)

    def all_well(self) -> None:
        """Return when files can be opened and the server has started again."""
        self.files_again()
        if self._restarting is not None:
            self._restarting.join()
            self._restarting = None

    def files_again(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self._files)


class _Upstream(asyncio.Protocol):
    """The server's side of a link."""

    def __init__(self, link: "_Link") -> None:
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.answered(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._link.server_left()


class _Link(asyncio.Protocol):
    """One client and its server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._client: Any = None
        self._server: Any = None
        self._asked = bytearray()  # what has come of the client and is not yet a whole message
        self._told = bytearray()  # likewise of the server
        self._started = False
        self._ready = False
        self._lane = "?"
        self._prepared: dict[bytes, str] = {}
        self._parse = b""  # held back until its Bind comes
        self._last: Place | None = None
        self._swallows = False  # the answer, until the server is ready again
        self._ghost = False  # the client is gone, the server does not know
        self._instead: bytes | None = None  # of the next error, or of the end of a ROLLBACK
        self._rolls_back = False

    def connection_made(self, transport: Any) -> None:
        self._client = transport
        self._wire._links.add(self)
        transport.pause_reading()
        self._wire._loop.create_task(self._connect())

    async def _connect(self) -> None:
        up = self._wire._upstream
        try:
            self._server, _ = await self._wire._loop.create_connection(
                lambda: _Upstream(self), up.hostname or "", up.port or 0
            )
        except OSError:
            self.abort()
            return
        if not self._client.is_closing():
            self._client.resume_reading()
            self.data_received(b"")  # what came before the server was reached

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ghost:
            self.abort()

    def server_left(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._wire._links.discard(self)
        self._client.abort()
        if self._server is not None:
            self._server.abort()

    # — what the client says —

    def data_received(self, data: bytes) -> None:
        self._asked += data
        if self._server is None:
            return
        while not self._client.is_closing() and (message := self._next_asked()):
            self._pass(message)

    def _next_asked(self) -> bytes | None:
        at = 0 if not self._started else 1
        if len(self._asked) < at + 4:
            return None
        (size,) = struct.unpack_from("!i", self._asked, at)
        if len(self._asked) < at + size:
            return None
        message = bytes(self._asked[: at + size])
        del self._asked[: at + size]
        return message

    def _pass(self, message: bytes) -> None:
        if not self._started:
            self._start(message)
            return
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, sql, _ = body.split(b"\0", 2)
            self._prepared[name] = sql.decode()
            self._send_parse()
            self._parse = message
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            self._statement(message, self._prepared.get(name, "?"))
        elif kind == b"Q":
            self._statement(message, body[:-1].decode())
        else:
            self._send_parse()
            self._server.write(message)

    def _start(self, message: bytes) -> None:
        self._started = True
        words = message[8:].split(b"\0")
        told = dict(zip(words[::2], words[1::2], strict=False))
        self._lane = told.get(b"application_name", b"?").decode().removeprefix("retoma ")
        self._server.write(message)

    def _send_parse(self) -> None:
        if self._parse:
            self._server.write(self._parse)
            self._parse = b""

    def _statement(self, message: bytes, sql: str) -> None:
        self._last, fault = self._wire.note(self._lane, sql)
        match fault:
            case None:
                self._send_parse()
                self._server.write(message)
            case Fault.CUT_BEFORE:
                self.abort()
            case Fault.EMFILE:
                self._wire.no_files()
                self.abort()
            case Fault.RESTART:
                self._wire.restart()
                self._send_parse()
                self._server.write(message)
            case Fault.CUT_AFTER | Fault.CUT_UNSEEN | Fault.CUT_LATE:
                self._swallows = True
                self._send_swallowed(message, fault)
            case _:
                self._replace(message, sql, fault)

    def _send_swallowed(self, message: bytes, fault: Fault) -> None:
        """Nobody hears the answer. What follows, up to the end of the round trip, passes as it comes."""
        if fault is Fault.CUT_AFTER:
            self._send_parse()
            self._server.write(message)
            return
        self._ghost = True
        # An extended statement and its sync: the client will send nothing more.
        rest = b"" if message[:1] == b"Q" else bytes(self._asked)
        whole = self._parse + message + rest
        if message[:1] != b"Q" and b"S\0\0\0\4" not in rest:
            whole += b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\4"
        self._parse = b""
        self._client.abort()
        if fault is Fault.CUT_UNSEEN:
            self._server.write(whole)
        else:
            self._wire._loop.call_later(LATE, self._server.write, whole)

    def _replace(self, message: bytes, sql: str, fault: Fault) -> None:
        """Have it fail at the server, and give the failure another name."""
        self._rolls_back = sql.strip().upper() == "COMMIT"
        self._instead = _error(fault)
        text = "ROLLBACK" if self._rolls_back else BAD
        if message[:1] == b"Q":
            self._server.write(_message(b"Q", text.encode() + b"\0"))
            return
        if self._parse and not self._parse[5:].startswith(b"\0"):
            self._send_parse()  # a name that later statements use
        self._parse = b""
        self._server.write(_message(b"P", b"\0" + text.encode() + b"\0\0\0"))
        if self._rolls_back:
            message = _message(b"B", b"\0\0\0\0\0\0\0\0")
        self._server.write(message)

    # — what the server says —

    def answered(self, data: bytes) -> None:
        self._told += data
        passed = bytearray()
        while message := self._next_told():
            kind = message[:1]
            passed += self._renamed(kind, message)
            if kind == b"Z":
                if self._swallows:
                    self.abort()
                    return
                if self._ready and message[5:] == b"I" and self._last is not None:
                    self._wire.ends.add(self._last)
                self._ready = True
        if passed and not self._swallows and not self._client.is_closing():
            self._client.write(bytes(passed))

    def _renamed(self, kind: bytes, message: bytes) -> bytes:
        if self._instead is not None and kind == (b"C" if self._rolls_back else b"E"):
            message, self._instead = self._instead, None
        return message

    def _next_told(self) -> bytes | None:
        if len(self._told) < 5:
            return None
        (size,) = struct.unpack_from("!i", self._told, 1)
        if len(self._told) < size + 1:
            return None
        message = bytes(self._told[: size + 1])
        del self._told[: size + 1]
        return message


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _error(fault: Fault) -> bytes:
    code, text = str(fault).split("-", maxsplit=1)[0], MESSAGES[fault]
    fields = {"S": "ERROR", "V": "ERROR", "C": code, "M": text}
    body = b"".join(name.encode() + value.encode() + b"\0" for name, value in fields.items())
    return _message(b"E", body + b"\0")
