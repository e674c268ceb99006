"""Bound the connections of a server: how many there may be, from where, and how slowly they may speak.

A client that is slow costs a descriptor for as long as it likes, so each part of a request and of an answer
has its time, and clients that nobody knows yet never take the last quarter of the places.
"""

import asyncio
import json
import resource
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, Final

import h11
import structlog
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from retoma.settings import Settings, networks_of
from retoma.web.sign_in import ADMITTED

LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
STRANGERS: Final = (
    0.75  # of all places may be taken by connections that nobody has signed in on
)
TELL: Final = 60.0  # seconds between two log lines about connections that were refused
SPARE: Final = 200  # descriptors for files, databases and children
WANTED: Final = 65_536  # descriptors, where the system allows so many
SLOWEST: Final = 1_024  # bytes a second that a client reads at least
WAITING: Final = (
    16 * 1024
)  # bytes that wait for a client before its answer does; each connection may hold so many
SMALL: Final = 64  # bytes that a piece of a body has on average at least …
PIECES: Final = 1_000  # … once there were so many: each piece costs time, however small it is

log = structlog.get_logger("retoma.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections there may be, and how long one may take."""

    most: int = 1_000
    per_address: int = 100
    exempt: tuple[IPv4Network | IPv6Network, ...] = (
        LOOPBACK  # addresses of many people: proxies
    )
    head: float = 30.0  # seconds for a request to arrive up to its body
    linger: float = 5.0  # seconds for the rest of a body that was answered before its end
    unread: float = 30.0  # seconds for a client to read on in what was sent to it

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        """As the settings say, and no more than this process has descriptors for."""
        return cls(
            most=max(min(settings.serve_connections, raise_descriptors() - SPARE), 20),
            per_address=settings.serve_connections_each,
            exempt=(*LOOPBACK, *networks_of(settings.trusted_proxies)),
        )

    def is_exempt(self, address: str) -> bool:
        try:
            known: IPv4Address | IPv6Address = ip_address(address)
        except ValueError:
            return True  # no address of the internet: a socket file
        if isinstance(known, IPv6Address) and known.ipv4_mapped is not None:
            known = known.ipv4_mapped
        return any(known in each for each in self.exempt)


@dataclass(slots=True)
class Connections:
    """All that are open on one server; the oldest stranger is first."""

    limits: ConnectionLimits
    strangers: "OrderedDict[BoundedProtocol, str]" = field(default_factory=OrderedDict)
    known: set["BoundedProtocol"] = field(default_factory=set)
    addresses: dict[str, int] = field(default_factory=dict)
    refused: int = 0  # since the log was told
    _told_at: float = float("-inf")

    def admit(self, connection: "BoundedProtocol", address: str) -> bool:
        """Take one more, in place of a stranger where there is no room; False: refuse it."""
        if not self.limits.is_exempt(address):
            if self.addresses.get(address, 0) >= self.limits.per_address:
                self._let_go(address)
            if self.addresses.get(address, 0) >= self.limits.per_address:
                return self._refuse()
        if self._is_full():
            self._let_go(None)
        if self._is_full():
            return self._refuse()
        self.strangers[connection] = address
        self.addresses[address] = self.addresses.get(address, 0) + 1
        return True

    def know(self, connection: "BoundedProtocol") -> None:
        """Somebody has signed in on it."""
        if connection in self.strangers:
            connection.address = self.strangers.pop(connection)
            self.known.add(connection)

    def forget(self, connection: "BoundedProtocol") -> None:
        address = self.strangers.pop(connection, None)
        if address is None and connection in self.known:
            self.known.discard(connection)
            address = connection.address
        if address is not None:
            self.addresses[address] -= 1
            if not self.addresses[address]:
                del self.addresses[address]

    def _is_full(self) -> bool:
        most = self.limits.most
        is_full = len(self.strangers) + len(self.known) >= most
        return is_full or len(self.strangers) >= int(most * STRANGERS)

    def _let_go(self, address: str | None) -> None:
        """Close the oldest stranger that keeps the server waiting, else the oldest; of this address, if one is named."""
        theirs = [each for each, of in self.strangers.items() if address in (None, of)]
        oldest = next((each for each in theirs if each.is_awaited), next(iter(theirs), None))
        if oldest is not None:
            self.forget(oldest)
            oldest.transport.abort()
            self._tell()

    def _refuse(self) -> bool:
        self._tell()
        return False

    def _tell(self) -> None:
        self.refused += 1
        now = asyncio.get_running_loop().time()
        if now >= self._told_at + TELL:
            log.warning(
                "connections.refused",
                refused=self.refused,
                strangers=len(self.strangers),
                known=len(self.known),
                most=self.limits.most,
            )
            self._told_at, self.refused = now, 0


class _Parser(h11.Connection):
    """Refuses a body in crumbs: a megabyte in pieces of one byte would hold the loop for seconds."""

    def __init__(self, most: int) -> None:
        super().__init__(h11.SERVER, most)
        self._pieces = 0
        self._size = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._pieces += 1
            self._size += len(event.data)
            if self._pieces > PIECES + self._size // SMALL:
                raise h11.RemoteProtocolError("the pieces of the body are too small")
        return event

    def start_next_cycle(self) -> None:
        self._pieces = self._size = 0
        super().start_next_cycle()


class BoundedProtocol(H11Protocol):
    """One connection, within the limits of its server."""

    connections_: Connections  # set by the class that `bounded` makes

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.conn = _Parser(self.config.h11_max_incomplete_event_size or 0)
        self.address = ""
        self._serve = self.app
        self.app = self._answer
        self._head: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ADMITTED] = self._is_admitted
        try:
            await self._serve(scope, receive, send)
        finally:
            self.loop.call_soon(self._await_close)  # once the answer is over, it may be closed

    def _is_admitted(self) -> None:
        self.connections_.know(self)

    @property
    def is_awaited(self) -> bool:
        """Whether the server waits for the client: for a request, for the rest of its body, or until it reads."""
        cycle: Any = self.cycle  # None before the first request
        is_answering = cycle is not None and not cycle.response_complete
        return not is_answering or cycle.more_body or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WAITING)
        if self.connections_.admit(self, self.client[0] if self.client else ""):
            self._await_head()
        else:
            self._end(HTTPStatus.SERVICE_UNAVAILABLE, "too_many_connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections_.forget(self)
        self._stop_timers()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None and not self.transport.is_closing():
            self._unread.cancel()
            self._unread = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        elif self._head is not None:
            self._head.cancel()
            self._head = None
        self._await_close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.conn.their_state is h11.SEND_BODY:
            # It was answered without its body, or before its end: what still comes is thrown away.
            self._unset_keepalive_if_required()
            if self._rest is None:
                self._rest = self.loop.call_later(
                    self.connections_.limits.linger, self.transport.abort
                )

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._await_close()

    def _await_close(self) -> None:
        """What is closed is open until its client has read what was sent, or its time is over."""
        if self.transport.is_closing():
            self._await_reader()

    def _await_reader(self) -> None:
        if self._unread is None:
            self._look_at_reader(None)

    def _look_at_reader(self, before: int | None) -> None:
        """Abort a client that has not read enough since the last look, else look again later."""
        left = self.transport.get_write_buffer_size()
        limit = self.connections_.limits.unread
        if before is not None and left > before - SLOWEST * limit:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(limit, self._look_at_reader, left)

    def _await_head(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if self._head is None:
            limit = self.connections_.limits.head
            self._head = self.loop.call_later(limit, self._head_too_slow)

    def _head_too_slow(self) -> None:
        self._head = None
        self._end(HTTPStatus.REQUEST_TIMEOUT, "too_slow_request")

    def _end(self, status: HTTPStatus, code: str) -> None:
        """Answer what nobody has read, and close."""
        if self.transport.is_closing():
            return
        problem = {
            "type": "about:blank",
            "title": status.phrase,
            "status": status,
            "code": code,
        }
        body = json.dumps(problem).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/problem+json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self._await_close()

    def _stop_timers(self) -> None:
        for each in (self._head, self._rest, self._unread):
            if each is not None:
                each.cancel()


def raise_descriptors() -> int:
    """As many as the system gives this process without asking anybody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return WANTED if soft == resource.RLIM_INFINITY else soft


def bounded(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The protocol of one server."""
    return type("Bounded", (BoundedProtocol,), {"connections_": Connections(limits)})
