"""Open connections, only to addresses that were resolved and checked."""

import logging
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

import httpcore2
import httpx2

from retoma.outbound.addresses import Address, blocked_reason, parse_address
from retoma.outbound.policy import Blocked, Proxy
from retoma.outbound.resolver import Resolver
from retoma.words import say

A_POOL = 8  # connections: each request scans all connections of its pool
KEEP_ALIVE = 5.0  # seconds an idle connection stays open: less than most servers allow

# Its debug lines hold the headers of every answer and every host name.
logging.getLogger("httpcore2").setLevel(logging.WARNING)


class HostNotFound(httpx2.ConnectError):
    """The host name does not resolve."""


async def resolve_host(
    host: str, port: int, resolver: Resolver, private: Collection[str]
) -> Sequence[Address]:
    """Resolve a host to its addresses, in order. Blocked if any of them is not allowed."""
    texts = [host] if parse_address(host) is not None else await _resolve(host, port, resolver)
    addresses = []
    for text in dict.fromkeys(texts):
        address = parse_address(text)
        what = (
            "not an address"
            if address is None
            else blocked_reason(address, allowed=host in private)
        )
        if address is None or what is not None:
            raise Blocked(
                say("{host} is {what}; connections to it are not allowed", host=host, what=what)
            )
        addresses.append(address)
    if not addresses:
        raise HostNotFound("no address")
    return addresses


async def _resolve(host: str, port: int, resolver: Resolver) -> Sequence[str]:
    try:
        return await resolver.resolve(host, port)
    except (OSError, UnicodeError):
        raise HostNotFound("no such name") from None


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Resolves a name, checks every address, and connects to one of them."""

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
        addresses = await resolve_host(host, port, self._resolver, self._private)
        for address in addresses[:-1]:
            try:
                return await connect(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        last = str(addresses[-1])
        return await connect(last, port, timeout, local_address, socket_options)


class Wire(httpx2.AsyncBaseTransport):
    """A transport over connection pools, without redirects, cookies or logs.

    Connections are divided among small pools, filled in order, so that finding a free connection
    stays fast however many there are.
    """

    def __init__(
        self,
        network: httpcore2.AsyncNetworkBackend,
        trust: ssl.SSLContext | None,
        connections: int,
        proxy: Proxy | None = None,
    ) -> None:
        self.busy = 0
        self._new_pool = partial(
            httpcore2.AsyncConnectionPool,
            ssl_context=trust,
            proxy=None if proxy is None else _proxy(proxy, trust),
            keepalive_expiry=KEEP_ALIVE,
            network_backend=network,
        )
        self._left = connections  # not assigned to a pool yet
        self._pools: list[_Pool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        outgoing = httpcore2.Request(
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
        pool = self._pick_pool()
        pool.busy += 1
        try:
            with _translate_errors():
                answer = await pool.connections.handle_async_request(outgoing)
        except BaseException:
            pool.busy -= 1
            raise
        stream = _Stream(answer, pool)
        return httpx2.Response(answer.status, headers=answer.headers, stream=stream)

    def _pick_pool(self) -> "_Pool":
        """Return the first pool with a free connection, a new pool, or the least busy one."""
        for pool in self._pools:
            if pool.busy < pool.most:
                return pool
        if not self._left:
            return min(self._pools, key=lambda pool: pool.busy)
        most = min(A_POOL, self._left)
        self._left -= most
        self._pools.append(_Pool(self._new_pool(max_connections=most), most))
        return self._pools[-1]

    def release(self) -> None:
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
        with _translate_errors():
            async with aclosing(self._answer.aiter_stream()) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def aclose(self) -> None:
        try:
            await self._answer.aclose()
        finally:
            if self._pool is not None:
                self._pool.busy -= 1
                self._pool = None


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise httpcore2's errors as httpx2's errors of the same name."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
    ) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error


def is_certificate_error(error: BaseException | None) -> bool:
    """Whether an untrusted certificate caused the error."""
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
