"""The connections themselves: each to an address that was looked at, and to no other."""

import logging
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

import httpcore2
import httpx2

from retoma.outbound.addresses import Address, literal, refusal
from retoma.outbound.policy import Blocked, Proxy
from retoma.outbound.resolver import Resolver
from retoma.words import say

A_POOL = 8  # connections: with each request a pool looks at every one it has
KEEP_ALIVE = 5.0  # seconds an idle connection stays: most servers close theirs later

# What it traces holds the headers of every answer, and the names of every host.
logging.getLogger("httpcore2").setLevel(logging.WARNING)


class NoName(httpx2.ConnectError):
    """Nobody knows where that host is."""


async def checked(
    host: str, port: int, resolver: Resolver, private: Collection[str]
) -> Sequence[Address]:
    """Where a host is, in order. One address that is refused refuses the host."""
    given = literal(host)
    texts = [host] if given is not None else await _resolved(host, port, resolver)
    found = []
    for text in dict.fromkeys(texts):
        address = literal(text)
        what = "nowhere" if address is None else refusal(address, allowed=host in private)
        if address is None or what is not None:
            raise Blocked(say("{host} is {what}: nobody connects to it", host=host, what=what))
        found.append(address)
    if not found:
        raise NoName("no address")
    return found


async def _resolved(host: str, port: int, resolver: Resolver) -> Sequence[str]:
    try:
        return await resolver.resolve(host, port)
    except (OSError, UnicodeError):
        raise NoName("no such name") from None


class Guarded(httpcore2.AsyncNetworkBackend):
    """Looks a name up, looks at every address, and connects to one it has looked at."""

    def __init__(
        self,
        network: httpcore2.AsyncNetworkBackend,
        resolver: Resolver,
        private: Collection[str],
    ) -> None:
        self._network = network
        self._resolver = resolver
        self._private = private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 — the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        connect = self._network.connect_tcp
        addresses = await checked(host, port, self._resolver, self._private)
        for address in addresses[:-1]:
            try:
                return await connect(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        last = str(addresses[-1])
        return await connect(last, port, timeout, local_address, socket_options)


class Wire(httpx2.AsyncBaseTransport):
    """Connections with nothing above them that would follow, remember or log.

    Many of them are several pools, the first filled first, so that what it costs to find one does not
    grow with how many there are.
    """

    def __init__(
        self,
        network: httpcore2.AsyncNetworkBackend,
        trust: ssl.SSLContext | None,
        connections: int,
        proxy: Proxy | None = None,
    ) -> None:
        self.busy = 0
        self._made = partial(
            httpcore2.AsyncConnectionPool,
            ssl_context=trust,
            proxy=None if proxy is None else _proxy(proxy, trust),
            keepalive_expiry=KEEP_ALIVE,
            network_backend=network,
        )
        self._left = connections  # that no pool has yet
        self._pools: list[_Pool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        asked = httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=url.raw_scheme,
                host=request.extensions.get("connect_to", url.raw_host),
                port=url.port,
                target=url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        pool = self._with_room()
        pool.busy += 1
        try:
            with _as_httpx2():
                answer = await pool.connections.handle_async_request(asked)
        except BaseException:
            pool.busy -= 1
            raise
        stream = _Stream(answer, pool)
        return httpx2.Response(answer.status, headers=answer.headers, stream=stream)

    def _with_room(self) -> "_Pool":
        """The first that has a connection to spare; else whoever is least asked for."""
        for pool in self._pools:
            if pool.busy < pool.most:
                return pool
        if not self._left:
            return min(self._pools, key=lambda pool: pool.busy)
        most = min(A_POOL, self._left)
        self._left -= most
        self._pools.append(_Pool(self._made(max_connections=most), most))
        return self._pools[-1]

    def left(self) -> None:
        self.busy -= 1

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.connections.aclose()


@dataclass(slots=True)
class _Pool:
    connections: httpcore2.AsyncConnectionPool
    most: int
    busy: int = 0  # requests, up to the end of their answers


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response, pool: _Pool) -> None:
        self._answer = answer
        self._pool: _Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async with aclosing(self._answer.aiter_stream()) as pieces:
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        try:
            await self._answer.aclose()
        finally:
            if self._pool is not None:
                self._pool.busy -= 1
                self._pool = None


@contextmanager
def _as_httpx2() -> Iterator[None]:
    """Both packages call their errors the same; above, only one of them is known."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
    ) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error


def untrusted(error: BaseException | None) -> bool:
    """Whether it came to nothing because of a certificate."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _proxy(proxy: Proxy, trust: ssl.SSLContext | None) -> httpcore2.Proxy:
    return httpcore2.Proxy(
        httpcore2.URL(
            scheme="https" if proxy.tls else "http",
            host=proxy.host,
            port=proxy.port,
            target="/",
        ),
        auth=proxy.credentials,
        ssl_context=trust if proxy.tls else None,
    )
