"""The one client: checks where it goes, takes no more than agreed, tells nobody what it carried."""

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
from retoma.outbound.sorting import Sort, asked_wait, sort_of
from retoma.outbound.unpack import Body, TooLarge, Unasked, Unreadable
from retoma.outbound.wire import Guarded, NoName, Wire, checked, untrusted
from retoma.secret import Secret
from retoma.words import say

log = get_logger("retoma.outbound")

PRIVATE_HOSTS: Final = "RETOMA_PRIVATE_HOSTS"
MOST_WIRES: Final = 64  # policies whose connections are kept; idle ones beyond it are closed
SILENCE: Final = Sort(Transient, "no_answer")
LATE: Final = Sort(Transient, "timeout")
BROKEN: Final = Sort(Transient, "bad_answer")
MOST_PACKED: Final = 1_032  # bytes that one of DEFLATE's may stand for
LOCKED: Final = Sort(Permanent, "config")
BLOCKED: Final = Sort(Permanent, "ssrf_blocked")

# What ends a call, the narrower before the wider.
FAILURES: Final[Mapping[type[Exception], tuple[Sort, str]]] = MappingProxyType(
    {
        TooLarge: (Sort(Permanent, "too_large"), say("the answer is larger than agreed")),
        Unreadable: (BROKEN, say("the answer cannot be unpacked")),
        Unasked: (BROKEN, say("the answer is not of a type it takes")),
        NoName: (SILENCE, say("no such name")),
        httpx2.ConnectTimeout: (LATE, say("no connection in time")),
        httpx2.ConnectError: (SILENCE, say("no connection")),
        httpx2.TimeoutException: (LATE, say("nothing came for too long")),
        httpx2.LocalProtocolError: (
            Sort(Permanent, "bad_input"),
            say("HTTP cannot carry that"),
        ),
        httpx2.ProtocolError: (BROKEN, say("what came is not HTTP, or broke off")),
        httpx2.ProxyError: (SILENCE, say("the proxy does not let us through")),
        httpx2.TransportError: (SILENCE, say("the connection broke")),
        TimeoutError: (LATE, say("no end within its time")),
        OSError: (SILENCE, say("the connection broke")),
    }
)


class Outbound:
    """Every request to somebody else's service goes through here, under the policy of its purpose.

    What comes back is an Answer, or one of the failures a story may raise: Transient, Throttled,
    Permanent; Unsure where something that changes things was sent and its reply was lost. Opens
    nothing before it is first used; may be used again after it was closed.
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
        """`transport`: answers in the place of the network, for tests. `trust`: whose certificates.

        `private`: hosts that any policy which names them may find at a private address; else those
        of `RETOMA_PRIVATE_HOSTS`, which is the operator's word.
        """
        self._resolver = resolver or SystemResolver()
        self._network = network or httpcore2.AnyIOBackend()
        self._transport = transport
        self._trust = trust
        self._clock = clock or Clock()
        told = os.environ.get(PRIVATE_HOSTS, "") if private is None else ",".join(private)
        self._private = private_hosts(told)
        self._wires: dict[Policy, Wire] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def asked_wait(self, headers: Mapping[str, str]) -> float | None:
        """Seconds that an answer's Retry-After asks for, as a number or a date, within bounds."""
        return asked_wait(headers, self._clock.wall())

    async def get(self, policy: Policy, url: str, **asked: Any) -> Answer:
        return await self.request(policy, "GET", url, **asked)

    async def post(self, policy: Policy, url: str, **asked: Any) -> Answer:
        return await self.request(policy, "POST", url, **asked)

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
        """The answer; any status but 2xx and those in `accept` is a failure.

        A key is best given as a Secret, as a header or a parameter: it is seen by nobody else.
        """
        call = self._prepared(
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
        return await self._told(call, accept)

    @asynccontextmanager
    async def stream(
        self,
        policy: Policy,
        url: str,
        *,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of what is at an address, piece by piece, unpacked: for what is larger than
        memory should be. The same caps hold, and the same failures are raised, also between two
        pieces; its deadline is for the way, not for what is done with a piece meanwhile."""
        call = self._prepared(policy, "GET", url, headers=headers)
        until = asyncio.get_running_loop().time() + policy.deadline
        async with AsyncExitStack() as closing:
            response = await self._begun(call, until, closing)
            if not isinstance(response, httpx2.Response):
                log.info(
                    "outbound.failed",
                    code=response.code,
                    purpose=policy.purpose,
                    method=call.method,
                    host=call.host,
                )
                raise response
            async with aclosing(_flowing(call, response, until)) as pieces:
                yield pieces

    async def _begun(
        self, call: Call, until: float, closing: AsyncExitStack
    ) -> httpx2.Response | Failure:
        try:
            async with asyncio.timeout_at(until):
                return await self._arrived(call, (), closing)
        except Blocked as error:
            return call.failed(BLOCKED, str(error))
        except tuple(FAILURES) as error:
            return call.failed(*_meaning(error))

    def _prepared(
        self,
        policy: Policy,
        method: str,
        url: str,
        **asked: Any,
    ) -> Call:
        try:
            return prepare(policy.allowing(self._private), method, url, **asked)
        except Blocked as error:
            log.warning("outbound.blocked", purpose=policy.purpose, why=str(error))
            refused = Permanent(error.args[0], code=BLOCKED.code)
        raise refused

    async def check(self, policy: Policy, url: str, *, names: bool = True) -> None:
        """Blocked where the address, or one its name has now, is refused. For whoever saves it.

        `names`: whether names are looked up; else what is a name only elsewhere may be saved.
        """
        allowed = policy.allowing(self._private)
        parsed = allowed.check(url)
        if not names:
            return
        host, port = host_of(parsed), port_of(parsed)
        try:
            await checked(host, port, self._resolver, allowed.private)
        except httpx2.ConnectError:
            raise Blocked(say("{host}: no such name", host=host)) from None

    async def close(self) -> None:
        wires, self._wires = self._wires, {}
        for wire in wires.values():
            await wire.aclose()

    async def __aenter__(self) -> "Outbound":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _told(self, call: Call, accept: Collection[int]) -> Answer:
        """One line in the log for each call, and nothing in it that was carried."""
        began = self._clock.now()
        traces = TRACES.get()
        if traces is None:
            ended = await self._ended(call, accept)
        else:
            ended = await self._traced(traces, call, accept)
        told = {
            "purpose": call.policy.purpose,
            "method": call.method,
            "host": call.host,
            "seconds": round(self._clock.now() - began, 3),
        }
        if isinstance(ended, Answer):
            log.debug("outbound.answered", status=ended.status, size=len(ended.body), **told)
            return ended
        tell = log.warning if ended.code == BLOCKED.code else log.info
        tell("outbound.failed", code=ended.code, **told)
        raise ended

    async def _traced(
        self, traces: Traces, call: Call, accept: Collection[int]
    ) -> Answer | Failure:
        """Whoever is called may go on with our span; where a redirect leads, it stays behind."""
        name, purpose = f"{call.method} {call.host}", call.policy.purpose
        with traces.span(name, Side.CLIENT, purpose=purpose, host=call.host) as span:
            call.headers.setdefault("traceparent", span.traceparent)
            ended = await self._ended(call, accept)
            if isinstance(ended, Answer):
                span.tell(status=ended.status)
            else:
                span.fail(ended.code)
            return ended

    async def _ended(self, call: Call, accept: Collection[int]) -> Answer | Failure:
        """Raised outside of here, so that no text of another package comes along as its cause."""
        try:
            async with asyncio.timeout(call.policy.deadline), AsyncExitStack() as closing:
                return await self._followed(call, accept, closing)
        except Blocked as error:
            return call.failed(BLOCKED, str(error))
        except tuple(FAILURES) as error:
            return call.failed(*_meaning(error))

    async def _followed(
        self, call: Call, accept: Collection[int], closing: AsyncExitStack
    ) -> Answer | Failure:
        response = await self._arrived(call, accept, closing)
        if not isinstance(response, httpx2.Response):
            return response
        return await _taken(call, response)

    async def _arrived(
        self, call: Call, accept: Collection[int], closing: AsyncExitStack
    ) -> httpx2.Response | Failure:
        """The answer that was meant, its body not read yet."""
        for left in range(call.policy.redirects, -1, -1):
            response = await self._sent(call, closing)
            closing.push_async_callback(response.aclose)
            location = response.headers.get("location")
            if response.status_code not in REDIRECTS or location is None or not left:
                break
            await response.aclose()
            call.send_on(response.status_code, location)
        status = response.status_code
        if not (200 <= status < 300 or status in accept):
            return self._sorted(call, response)
        return response

    def _sorted(self, call: Call, response: httpx2.Response) -> Failure:
        status = response.status_code
        sort = sort_of(status, call.policy.answers)
        if sort.known and call.is_deed:
            call.maybe = False  # the deed itself was refused, not what a redirect led to
        wait = asked_wait(response.headers, self._clock.wall())
        return call.failed(sort, say("answered {status}", status=status), wait)

    # — which way —

    async def _sent(self, call: Call, closing: AsyncExitStack) -> httpx2.Response:
        if self._transport is not None:
            call.sent()
            return await self._transport.handle_async_request(call.request())
        proxy = call.proxy
        if proxy is None and call.policy.environment:
            proxy = environment_proxy(call.url.scheme, call.host)
        if self._trust is None and ("https" in call.policy.schemes or (proxy and proxy.tls)):
            self._trust = await _machine_trust()
        if proxy is not None:
            return await self._sent_through(proxy, call, closing)
        wire = self._wire(call.policy)
        wire.busy += 1
        closing.callback(wire.left)
        await self._let_go()
        return await wire.handle_async_request(call.request())

    async def _sent_through(
        self, proxy: Proxy, call: Call, closing: AsyncExitStack
    ) -> httpx2.Response:
        """A connection of its own: nobody else may come to speak under these credentials."""
        private = call.policy.private | ({proxy.host} if call.proxy is None else set())
        wire = self._new_wire(call.policy, private, proxy)
        closing.push_async_callback(wire.aclose)
        if proxy.resolves:
            return await wire.handle_async_request(call.request())
        if call.url.scheme != "https":
            raise Blocked(
                say("plain http goes only through a proxy that resolves names itself")
            )
        found = await checked(call.host, call.port, self._resolver, call.policy.private)
        to = f"[{found[0]}]" if found[0].version == 6 else str(found[0])
        return await wire.handle_async_request(
            call.request(connect_to=to.encode(), sni_hostname=call.host)
        )

    def _wire(self, policy: Policy) -> Wire:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections of another loop cannot be used here
            self._loop, self._wires = loop, {}
        wire = self._wires.pop(policy, None) or self._new_wire(policy, policy.private)
        self._wires[policy] = wire  # the last used is the last to go
        return wire

    async def _let_go(self) -> None:
        """Close what is kept for too many policies, but for those in use."""
        many = max(0, len(self._wires) - MOST_WIRES)
        for policy, wire in list(self._wires.items())[:many]:
            if not wire.busy and self._wires.pop(policy, None) is not None:
                await wire.aclose()

    def _new_wire(self, policy: Policy, private: Set[str], proxy: Proxy | None = None) -> Wire:
        guarded = Guarded(self._network, self._resolver, private)
        return Wire(guarded, self._trust, policy.connections, proxy)


async def _machine_trust() -> ssl.SSLContext:
    """Beside the loop: reading all certificates of a machine takes a quarter of a second."""
    read = partial(httpx2.create_ssl_context, trust_env=False)
    return await asyncio.get_running_loop().run_in_executor(None, read)


async def _flowing(
    call: Call, response: httpx2.Response, until: float
) -> AsyncGenerator[bytes, None]:
    """Piece by piece, each as it comes; a failure is raised outside of what knows httpx2."""
    try:
        body = _body_of(call, response)
        async with aclosing(_pieces(response)) as pieces:
            while True:
                async with asyncio.timeout_at(until):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                await _fed(body, piece)
                if drawn := body.drawn():
                    yield drawn
        if rest := body.whole():
            yield rest
    except tuple(FAILURES) as error:
        failed = call.failed(*_meaning(error))
    else:
        return
    raise failed


def _body_of(call: Call, response: httpx2.Response) -> Body:
    """Where its bytes go; TooLarge where it says already that they are too many."""
    policy = call.policy
    body = Body(
        response.headers.get("content-encoding", ""),
        most_bytes=policy.most_bytes,
        most_unpacked=policy.most_unpacked,
    )
    if _length(response) > policy.most_bytes and call.method != "HEAD":
        raise TooLarge
    return body


async def _taken(call: Call, response: httpx2.Response) -> Answer:
    policy = call.policy
    body = _body_of(call, response)
    async with aclosing(_pieces(response)) as pieces:
        async for piece in pieces:
            await _fed(body, piece)
    whole = body.whole()
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if whole and policy.types and kind not in policy.types:
        raise Unasked
    return Answer(
        status=response.status_code,
        headers=MappingProxyType(dict(response.headers)),
        body=whole,
        url=str(call.url),
        where=call.where,
        changed=call.maybe,
    )


async def _fed(body: Body, piece: bytes) -> None:
    """What is packed may be a thousand times as much unpacked."""
    await off_loop(len(piece) * (MOST_PACKED if body.is_packed else 1), body.feed, piece)


async def _pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """As they came. A response that a test has made whole gives what it was made of."""
    stream = response.stream.__aiter__()  # type: ignore[union-attr]  # no transport here is sync
    try:
        async for piece in stream:
            yield piece
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _length(response: httpx2.Response) -> int:
    said = response.headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() else 0


def _meaning(error: Exception) -> tuple[Sort, str]:
    if isinstance(error, httpx2.ProxyError) and str(error).startswith("407"):
        return LOCKED, say("the proxy does not know us")
    if isinstance(error, httpx2.ConnectError) and untrusted(error):
        return SILENCE, say("its certificate is not trusted")
    return next(meant for kind, meant in FAILURES.items() if isinstance(error, kind))
