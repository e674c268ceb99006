"""The only HTTP client for outbound requests: it checks addresses, caps sizes and logs no content."""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Set
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import httpcore2
import httpx2

from retoma.engine.isolation.off_loop import off_loop
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import Permanent, Transient
from retoma.engine.traces import TRACES, Side, Traces
from retoma.outbound.answer import Answer
from retoma.outbound.call import REDIRECTS, Call, Failure, prepare
from retoma.outbound.failure_types import FailureType, classify_status, parse_retry_after
from retoma.outbound.policy import (
    Blocked,
    Policy,
    Proxy,
    host_of,
    port_of,
    private_hosts,
)
from retoma.outbound.proxies import environment_proxy
from retoma.outbound.resolver import Resolver, SystemResolver
from retoma.outbound.unpack import Body, TooLarge, UnexpectedType, Unreadable
from retoma.outbound.wire import (
    GuardedNetwork,
    HostNotFound,
    Wire,
    is_certificate_error,
    resolve_host,
)
from retoma.secret import Secret
from retoma.words import say

log = get_logger("retoma.outbound")

PRIVATE_HOSTS: Final = "RETOMA_PRIVATE_HOSTS"
MOST_WIRES: Final = 64  # policies whose connections stay open; beyond it, idle ones are closed
SILENCE: Final = FailureType(Transient, "no_answer")
LATE: Final = FailureType(Transient, "timeout")
BROKEN: Final = FailureType(Transient, "bad_answer")
MOST_PACKED: Final = 1_032  # the highest compression ratio of DEFLATE
LOCKED: Final = FailureType(Permanent, "config")
BLOCKED: Final = FailureType(Permanent, "ssrf_blocked")

# Exceptions that end a call, subclasses before their parents.
FAILURES: Final[Mapping[type[Exception], tuple[FailureType, str]]] = MappingProxyType(
    {
        TooLarge: (
            FailureType(Permanent, "too_large"),
            say("the answer is larger than the limit"),
        ),
        Unreadable: (BROKEN, say("the answer cannot be unpacked")),
        UnexpectedType: (BROKEN, say("the content type of the answer is not allowed")),
        HostNotFound: (SILENCE, say("host not found")),
        httpx2.ConnectTimeout: (LATE, say("the connection timed out")),
        httpx2.ConnectError: (SILENCE, say("cannot connect")),
        httpx2.TimeoutException: (LATE, say("the answer timed out")),
        httpx2.LocalProtocolError: (
            FailureType(Permanent, "bad_input"),
            say("the request is not valid HTTP"),
        ),
        httpx2.ProtocolError: (BROKEN, say("the answer is not valid HTTP or is incomplete")),
        httpx2.ProxyError: (SILENCE, say("the proxy rejected the connection")),
        httpx2.TransportError: (SILENCE, say("the connection broke")),
        TimeoutError: (LATE, say("the deadline passed")),
        OSError: (SILENCE, say("the connection broke")),
    }
)


class Outbound:
    """Sends every request to an external service, under the policy of its purpose.

    Returns an Answer or raises one of the failures a handler may raise: Transient, Throttled,
    Permanent; Unsure if a request with a side effect was sent and its answer was lost. Opens
    connections on first use; may be used after `close`.
    """

    def __init__(
        self,
        *,
        resolver: Resolver | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        trust: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        private: Set[str] | None = None,
    ) -> None:
        """`transport` replaces the network in tests. `trust` holds the trusted certificates.

        `private`: hosts that may be at private addresses if a policy names them; by default the
        operator's `RETOMA_PRIVATE_HOSTS`.
        """
        self._resolver = resolver or SystemResolver()
        self._network = network or httpcore2.AnyIOBackend()
        self._transport = transport
        self._trust = trust
        self._clock = clock or Clock()
        private_names = (
            os.environ.get(PRIVATE_HOSTS, "") if private is None else ",".join(private)
        )
        self._private = private_hosts(private_names)
        self._wires: dict[Policy, Wire] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def retry_after(self, headers: Mapping[str, str]) -> float | None:
        """Read Retry-After, a number or a date, as seconds within bounds."""
        return parse_retry_after(headers, self._clock.wall())

    async def get(self, policy: Policy, url: str, **options: Any) -> Answer:
        return await self.request(policy, "GET", url, **options)

    async def post(self, policy: Policy, url: str, **options: Any) -> Answer:
        return await self.request(policy, "POST", url, **options)

    async def request(
        self,
        policy: Policy,
        method: str,
        url: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        json: Any = None,
        form: Mapping[str, Any] | None = None,
        content: bytes | str | None = None,
        proxy: Proxy | None = None,
        accept: Collection[int] = (),
    ) -> Answer:
        """Send a request and return its answer. Any status but 2xx and those in `accept` raises.

        Give a key as a Secret, in a header or a parameter: it is then never shown.
        """
        call = self._prepare(
            policy,
            method,
            url,
            params=params,
            headers=headers,
            json=json,
            form=form,
            content=content,
            proxy=proxy,
        )
        return await self._send_and_log(call, accept)

    @asynccontextmanager
    async def stream(
        self,
        policy: Policy,
        url: str,
        *,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the body in decompressed chunks, for bodies too large for memory. The same caps
        and failures as in `request` apply, also between two chunks; the deadline does not
        count the time that the caller spends on a chunk."""
        call = self._prepare(policy, "GET", url, headers=headers)
        until = asyncio.get_running_loop().time() + policy.deadline
        async with AsyncExitStack() as closing:
            response = await self._open_stream(call, until, closing)
            if not isinstance(response, httpx2.Response):
                log.info(
                    "outbound.failed",
                    code=response.code,
                    purpose=policy.purpose,
                    method=call.method,
                    host=call.host,
                )
                raise response
            async with aclosing(_stream_body(call, response, until)) as chunks:
                yield chunks

    async def _open_stream(
        self, call: Call, until: float, closing: AsyncExitStack
    ) -> httpx2.Response | Failure:
        try:
            async with asyncio.timeout_at(until):
                return await self._follow_redirects(call, (), closing)
        except Blocked as error:
            return call.failure(BLOCKED, str(error))
        except tuple(FAILURES) as error:
            return call.failure(*_classify_error(error))

    def _prepare(
        self,
        policy: Policy,
        method: str,
        url: str,
        **options: Any,
    ) -> Call:
        try:
            return prepare(policy.allowing(self._private), method, url, **options)
        except Blocked as error:
            log.warning("outbound.blocked", purpose=policy.purpose, why=str(error))
            failure = Permanent(error.args[0], code=BLOCKED.code)
        raise failure

    async def check(self, policy: Policy, url: str, *, names: bool = True) -> None:
        """Raise Blocked if the policy forbids the URL or an address of its host. Call it before saving a URL.

        `names`: resolve the host name. Without it, a name that only another machine resolves may be saved.
        """
        allowed = policy.allowing(self._private)
        parsed = allowed.check(url)
        if not names:
            return
        host, port = host_of(parsed), port_of(parsed)
        try:
            await resolve_host(host, port, self._resolver, allowed.private)
        except httpx2.ConnectError:
            raise Blocked(say("host {host} not found", host=host)) from None

    async def close(self) -> None:
        wires, self._wires = self._wires, {}
        for wire in wires.values():
            await wire.aclose()

    async def __aenter__(self) -> "Outbound":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send_and_log(self, call: Call, accept: Collection[int]) -> Answer:
        """Log one line for each call, without any content."""
        began = self._clock.now()
        traces = TRACES.get()
        if traces is None:
            ended = await self._send_within_deadline(call, accept)
        else:
            ended = await self._send_traced(traces, call, accept)
        fields = {
            "purpose": call.policy.purpose,
            "method": call.method,
            "host": call.host,
            "seconds": round(self._clock.now() - began, 3),
        }
        if isinstance(ended, Answer):
            log.debug("outbound.answered", status=ended.status, size=len(ended.body), **fields)
            return ended
        write_log = log.warning if ended.code == BLOCKED.code else log.info
        write_log("outbound.failed", code=ended.code, **fields)
        raise ended

    async def _send_traced(
        self, traces: Traces, call: Call, accept: Collection[int]
    ) -> Answer | Failure:
        """Send our span to the service in `traceparent`; a redirect to another host drops it."""
        name, purpose = f"{call.method} {call.host}", call.policy.purpose
        with traces.span(name, Side.CLIENT, purpose=purpose, host=call.host) as span:
            call.headers.setdefault("traceparent", span.traceparent)
            ended = await self._send_within_deadline(call, accept)
            if isinstance(ended, Answer):
                span.tell(status=ended.status)
            else:
                span.fail(ended.code)
            return ended

    async def _send_within_deadline(
        self, call: Call, accept: Collection[int]
    ) -> Answer | Failure:
        """Return the failure instead of raising it, so that no foreign exception becomes its cause."""
        try:
            async with asyncio.timeout(call.policy.deadline), AsyncExitStack() as closing:
                return await self._fetch_answer(call, accept, closing)
        except Blocked as error:
            return call.failure(BLOCKED, str(error))
        except tuple(FAILURES) as error:
            return call.failure(*_classify_error(error))

    async def _fetch_answer(
        self, call: Call, accept: Collection[int], closing: AsyncExitStack
    ) -> Answer | Failure:
        response = await self._follow_redirects(call, accept, closing)
        if not isinstance(response, httpx2.Response):
            return response
        return await _read_answer(call, response)

    async def _follow_redirects(
        self, call: Call, accept: Collection[int], closing: AsyncExitStack
    ) -> httpx2.Response | Failure:
        """Follow redirects and return the last response, its body not read yet."""
        for left in range(call.policy.redirects, -1, -1):
            response = await self._send(call, closing)
            closing.push_async_callback(response.aclose)
            location = response.headers.get("location")
            if response.status_code not in REDIRECTS or location is None or not left:
                break
            await response.aclose()
            call.follow_redirect(response.status_code, location)
        status = response.status_code
        if not (200 <= status < 300 or status in accept):
            return self._classify(call, response)
        return response

    def _classify(self, call: Call, response: httpx2.Response) -> Failure:
        status = response.status_code
        failure_type = classify_status(status, call.policy.answers)
        if failure_type.known and call.has_effect:
            call.may_have_happened = (
                False  # the service rejected this request; it had no effect
            )
        wait = parse_retry_after(response.headers, self._clock.wall())
        return call.failure(failure_type, say("answered {status}", status=status), wait)

    async def _send(self, call: Call, closing: AsyncExitStack) -> httpx2.Response:
        if self._transport is not None:
            call.mark_sent()
            return await self._transport.handle_async_request(call.request())
        proxy = call.proxy
        if proxy is None and call.policy.environment:
            proxy = environment_proxy(call.url.scheme, call.host)
        if self._trust is None and ("https" in call.policy.schemes or (proxy and proxy.tls)):
            self._trust = await _load_system_trust()
        if proxy is not None:
            return await self._send_through_proxy(proxy, call, closing)
        wire = self._get_wire(call.policy)
        wire.busy += 1
        closing.callback(wire.release)
        await self._close_idle_wires()
        return await wire.handle_async_request(call.request())

    async def _send_through_proxy(
        self, proxy: Proxy, call: Call, closing: AsyncExitStack
    ) -> httpx2.Response:
        """Open a separate connection, so that no other call uses these credentials."""
        private = call.policy.private | ({proxy.host} if call.proxy is None else set())
        wire = self._new_wire(call.policy, private, proxy)
        closing.push_async_callback(wire.aclose)
        if proxy.resolves:
            return await wire.handle_async_request(call.request())
        if call.url.scheme != "https":
            raise Blocked(say("plain http needs a proxy that resolves names itself"))
        addresses = await resolve_host(
            call.host, call.port, self._resolver, call.policy.private
        )
        to = f"[{addresses[0]}]" if addresses[0].version == 6 else str(addresses[0])
        return await wire.handle_async_request(
            call.request(connect_to=to.encode(), sni_hostname=call.host)
        )

    def _get_wire(self, policy: Policy) -> Wire:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections belong to their event loop
            self._loop, self._wires = loop, {}
        wire = self._wires.pop(policy, None) or self._new_wire(policy, policy.private)
        self._wires[policy] = wire  # the least recently used stays first
        return wire

    async def _close_idle_wires(self) -> None:
        """Close the connections of the least recently used policies, unless they are in use."""
        many = max(0, len(self._wires) - MOST_WIRES)
        for policy, wire in list(self._wires.items())[:many]:
            if not wire.busy and self._wires.pop(policy, None) is not None:
                await wire.aclose()

    def _new_wire(self, policy: Policy, private: Set[str], proxy: Proxy | None = None) -> Wire:
        guarded = GuardedNetwork(self._network, self._resolver, private)
        return Wire(guarded, self._trust, policy.connections, proxy)


async def _load_system_trust() -> ssl.SSLContext:
    """Read the system's certificates in a thread: it takes a quarter of a second."""
    read = partial(httpx2.create_ssl_context, trust_env=False)
    return await asyncio.get_running_loop().run_in_executor(None, read)


async def _stream_body(
    call: Call, response: httpx2.Response, until: float
) -> AsyncGenerator[bytes, None]:
    """Yield decompressed chunks as they arrive. Failures are raised without httpx2 as their cause."""
    try:
        body = _new_body(call, response)
        async with aclosing(_raw_chunks(response)) as chunks:
            while True:
                async with asyncio.timeout_at(until):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                await _feed(body, chunk)
                if unpacked := body.take_new():
                    yield unpacked
        if rest := body.finish():
            yield rest
    except tuple(FAILURES) as error:
        failure = call.failure(*_classify_error(error))
    else:
        return
    raise failure


def _new_body(call: Call, response: httpx2.Response) -> Body:
    """Make the reader of this body; TooLarge if Content-Length already exceeds the limit."""
    policy = call.policy
    body = Body(
        response.headers.get("content-encoding", ""),
        most_bytes=policy.most_bytes,
        most_unpacked=policy.most_unpacked,
    )
    if _content_length(response) > policy.most_bytes and call.method != "HEAD":
        raise TooLarge
    return body


async def _read_answer(call: Call, response: httpx2.Response) -> Answer:
    policy = call.policy
    body = _new_body(call, response)
    async with aclosing(_raw_chunks(response)) as chunks:
        async for chunk in chunks:
            await _feed(body, chunk)
    whole = body.finish()
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if whole and policy.types and kind not in policy.types:
        raise UnexpectedType
    return Answer(
        status=response.status_code,
        headers=MappingProxyType(dict(response.headers)),
        body=whole,
        url=str(call.url),
        where=call.where,
        changed=call.may_have_happened,
    )


async def _feed(body: Body, chunk: bytes) -> None:
    """Feed one chunk, in a thread if its decompressed size may be large."""
    await off_loop(len(chunk) * (MOST_PACKED if body.is_packed else 1), body.feed, chunk)


async def _raw_chunks(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Yield the chunks as received, still compressed."""
    stream = response.stream.__aiter__()  # type: ignore[union-attr]  # no transport here is sync
    try:
        async for chunk in stream:
            yield chunk
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _content_length(response: httpx2.Response) -> int:
    length = response.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _classify_error(error: Exception) -> tuple[FailureType, str]:
    if isinstance(error, httpx2.ProxyError) and str(error).startswith("407"):
        return LOCKED, say("the proxy rejected our user or password")
    if isinstance(error, httpx2.ConnectError) and is_certificate_error(error):
        return SILENCE, say("the certificate is not trusted")
    return next(meant for kind, meant in FAILURES.items() if isinstance(error, kind))
