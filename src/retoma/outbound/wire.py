"""The connections themselves: each to an address that was looked at, and to no other."""

import logging
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager

import httpcore2
import httpx2

from retoma.outbound.addresses import Address, literal, refusal
from retoma.outbound.policy import Blocked, Proxy
from retoma.outbound.resolver import Resolver
from retoma.words import say

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
    """A pool of connections with nothing above it that would follow, remember or log."""

    def __init__(
        self,
        network: httpcore2.AsyncNetworkBackend,
        trust: ssl.SSLContext | None,
        connections: int,
        proxy: Proxy | None = None,
    ) -> None:
        self.busy = 0
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust,
            proxy=None if proxy is None else _proxy(proxy, trust),
            max_connections=connections,
            keepalive_expiry=KEEP_ALIVE,
            network_backend=network,
        )

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
        with _as_httpx2():
            answer = await self._pool.handle_async_request(asked)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Stream(answer))

    def left(self) -> None:
        self.busy -= 1

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async with aclosing(self._answer.aiter_stream()) as pieces:
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


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
