"""A client that is slow, or opens more than its share, costs nobody else an answer."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from retoma import settings
from retoma.console.connections import (
    LOOPBACK,
    PIECES,
    SPARE,
    WAITING,
    BoundedProtocol,
    ConnectionLimits,
    bounded,
    raise_descriptors,
)
from retoma.web.stream import PIECE
from tests.web.aids import ROOT_KEY, Served, served

MANY = 60  # answers: more than the system keeps for who does not read
FEW = ConnectionLimits(most=8, head=60.0)  # six of them for strangers


class Client:
    """A connection that says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def ask(self, path: str, *headers: str) -> bytes:
        lines = (f"GET {path} HTTP/1.1", f"Host: {self.host}", *headers, "", "")
        self.send("\r\n".join(lines).encode())
        return await self.answer()

    async def answer(self) -> bytes:
        """Head and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            line for line in head.lower().splitlines() if line.startswith(b"content-length:")
        )
        return head + await self.reader.readexactly(int(length.split(b":")[1]))

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read() == b""
        except OSError:
            return True

    @property
    def host(self) -> str:
        name, port = self.writer.get_extra_info("peername")[:2]
        return f"{name}:{port}"


@asynccontextmanager
async def connected(server: Served) -> AsyncIterator[Client]:
    host, port = server.origin.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16
    )  # what is not read stays there
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=made)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


@pytest.fixture
def url_of_one(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


KEY = f"x-api-key: {ROOT_KEY}"


async def test_a_head_that_does_not_come_to_its_end_is_answered_408(url_of_one):
    with served(url_of_one, limits=ConnectionLimits(head=0.3)) as server:
        for first in (b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n", b"G"):
            async with connected(server) as slow:
                slow.send(first)
                answer = await slow.answer()
                assert answer.startswith(b"HTTP/1.1 408 "), first
                assert b"too_slow_request" in answer
                assert await slow.is_closed()


async def test_bytes_that_trickle_do_not_win_a_head_more_time(url_of_one):
    with served(url_of_one, limits=ConnectionLimits(head=0.4)) as server:
        async with connected(server) as slow:
            await slow.ask("/livez")  # the second head of a connection has no more time either
            slow.send(b"GET /livez HTTP/1.1\r\n")

            async def trickle() -> None:
                while True:
                    slow.send(b"X: 1\r\n")
                    await asyncio.sleep(0.05)

            trickling = asyncio.create_task(trickle())
            try:
                async with asyncio.timeout(20):
                    assert (await slow.answer()).startswith(b"HTTP/1.1 408 ")
            finally:
                trickling.cancel()


async def test_the_rest_of_a_body_that_was_refused_is_not_read_for_ever(url_of_one):
    with served(url_of_one, limits=ConnectionLimits(linger=0.3)) as server:
        async with connected(server) as client:
            client.send(
                f"POST /api/jobs HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: 1000000\r\n"
                "Content-Type: application/json\r\n\r\n{".encode()
            )
            assert (await client.answer()).startswith(b"HTTP/1.1 401 ")
            async with asyncio.timeout(20):
                assert await client.is_closed()


async def test_a_connection_goes_on_after_a_body_that_was_refused_has_come(url_of_one):
    with served(url_of_one) as server:
        async with connected(server) as client:
            head = (
                f"POST /api/jobs HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: 9\r\n\r\n"
            )
            client.send(head.encode())
            assert (await client.answer()).startswith(b"HTTP/1.1 401 ")
            client.send(b"123456789")
            assert (await client.ask("/livez")).startswith(b"HTTP/1.1 200 ")


async def test_strangers_that_wait_make_room_for_who_comes(url_of_one):
    with served(url_of_one, limits=FEW) as server:
        async with AsyncExitStack() as stack:
            known = [await stack.enter_async_context(connected(server)) for _ in range(2)]
            for each in known:
                assert (await each.ask("/api/me", KEY)).startswith(b"HTTP/1.1 200 ")
            waiting = [await stack.enter_async_context(connected(server)) for _ in range(40)]
            for each in waiting:
                each.send(b"GET /api/me HTTP/1.1\r\n")
            async with connected(server) as late:
                assert (await late.ask("/api/me", KEY)).startswith(b"HTTP/1.1 200 ")

            assert await waiting[0].is_closed()
            for each in known:
                assert (await each.ask("/api/me", KEY)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("how", ["a body that never comes", "answers that nobody reads"])
async def test_strangers_that_keep_the_server_waiting_take_nobody_s_place(url_of_one, how):
    with served(url_of_one, limits=FEW) as server:
        async with AsyncExitStack() as stack:
            greedy = [await stack.enter_async_context(connected(server)) for _ in range(8)]
            for each in greedy:
                each.send(
                    f"POST /preferences HTTP/1.1\r\nHost: {each.host}\r\n"
                    "Content-Type: application/x-www-form-urlencoded\r\n"
                    "Content-Length: 1000\r\n\r\na".encode()
                    if how == "a body that never comes"
                    else asked(each) * MANY
                )
            await asyncio.sleep(1.0)

            for _ in range(3):
                async with connected(server) as late:
                    assert (await late.ask("/api/me", KEY)).startswith(b"HTTP/1.1 200 ")


async def test_who_reads_nothing_of_what_was_sent_is_let_go(url_of_one):
    limits = ConnectionLimits(unread=0.3)
    with served(url_of_one, limits=limits) as server:
        async with connected(server) as client:
            client.send(asked(client) * MANY)
            async with asyncio.timeout(60):
                while is_held(client):  # noqa: ASYNC110 — the kernel notifies nobody of it
                    await asyncio.sleep(0.1)


async def test_who_reads_slowly_is_sent_all(url_of_one):
    with served(url_of_one, limits=ConnectionLimits(unread=0.5)) as server:
        async with connected(server) as client:
            client.send(asked(client) * 9 + asked(client, "Connection: close\r\n"))
            assert await read_on(client, pause=0.02) > 10 * len(await document(server))


async def test_little_waits_in_memory_for_a_client_that_does_not_read():
    kept: list[BoundedProtocol] = []
    over = asyncio.Event()

    class Kept(bounded(ConnectionLimits())):  # type: ignore[misc]  # made as the server makes it
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            kept.append(self)

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not over.is_set():
            await send({"type": "http.response.body", "body": bytes(PIECE), "more_body": True})
            await asyncio.sleep(0)  # sending to a client that has left waits for nothing

    config = uvicorn.Config(app, log_config=None, lifespan="off", http=Kept)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Kept(config=config, server_state=ServerState(), app_state={}), "127.0.0.1", 0
    )
    host, port = server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(host, port, limit=PIECE)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readline()
        async with asyncio.timeout(60):
            while not kept[0].flow.write_paused:  # noqa: ASYNC110 — the transport notifies nobody of it
                await asyncio.sleep(0)
        assert 0 < kept[0].transport.get_write_buffer_size() <= WAITING + 2 * PIECE
    finally:
        over.set()
        kept[0].transport.abort()
        writer.close()
        server.close()
        await asyncio.sleep(0.1)


def is_held(client: Client) -> bool:
    """Whether the server has its end: the kernel knows no file of what was closed, though bytes wait in it."""
    ends = [client.writer.get_extra_info(each)[1] for each in ("peername", "sockname")]
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    theirs = [line.split() for line in lines]
    return any(
        [int(at.rpartition(":")[2], 16) for at in each[1:3]] == ends and each[9] != "0"
        for each in theirs
    )


async def document(server: Served) -> bytes:
    async with connected(server) as client:
        return (await client.ask("/openapi.json")).partition(b"\r\n\r\n")[2]


def asked(client: Client, last: str = "") -> bytes:
    """For the longest answer that anybody is given."""
    return f"GET /openapi.json HTTP/1.1\r\nHost: {client.host}\r\n{last}\r\n".encode()


async def read_on(client: Client, pause: float = 0.0) -> int:
    """How many bytes come until it is closed."""
    read = 0
    with suppress(OSError):
        async with asyncio.timeout(60):
            while piece := await client.reader.read(1 << 16):
                read += len(piece)
                await asyncio.sleep(pause)
    return read


async def test_where_all_places_are_somebody_s_one_more_is_refused_at_once(url_of_one):
    with served(url_of_one, limits=ConnectionLimits(most=4)) as server:
        async with AsyncExitStack() as stack:
            for _ in range(4):
                each = await stack.enter_async_context(connected(server))
                assert (await each.ask("/api/me", KEY)).startswith(b"HTTP/1.1 200 ")
            async with connected(server) as late:
                assert (await late.answer()).startswith(b"HTTP/1.1 503 ")


async def test_an_address_has_its_share_and_a_proxy_has_none(url_of_one):
    share = ConnectionLimits(most=100, per_address=3, exempt=())
    for limits, closed in ((share, True), (ConnectionLimits(most=100, per_address=3), False)):
        with served(url_of_one, limits=limits) as server:
            async with AsyncExitStack() as stack:
                first, *_, last = [
                    await stack.enter_async_context(connected(server)) for _ in range(4)
                ]
                assert (await last.ask("/livez")).startswith(b"HTTP/1.1 200 ")
                if closed:
                    assert await first.is_closed()
                else:
                    assert (await first.ask("/livez")).startswith(b"HTTP/1.1 200 ")


async def test_a_body_in_crumbs_is_refused(url_of_one):
    with served(url_of_one) as server:
        for size, pieces, expected in ((1, PIECES + 200, b"400"), (1_024, 500, b"422")):
            async with connected(server) as client:
                head = (
                    f"POST /api/jobs HTTP/1.1\r\nHost: {client.host}\r\n{KEY}\r\n"
                    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                piece = b"%x\r\n" % size + b" " * size + b"\r\n"
                client.send(head.encode() + piece * pieces + b"2\r\n{}\r\n0\r\n\r\n")
                answer = (
                    await client.answer() if expected == b"422" else await client.reader.read()
                )
                assert answer.startswith(b"HTTP/1.1 " + expected)


def test_connections_are_as_the_settings_say_and_fewer_than_descriptors():
    chosen = settings.read(
        serve_connections=50,
        serve_connections_each=7,
        trusted_proxies="10.1.2.3, 192.168.0.0/16",
    )
    limits = ConnectionLimits.of(chosen)
    assert (50, 7) == (limits.most, limits.per_address)
    exempt = {
        address: limits.is_exempt(address)
        for address in (
            "10.1.2.3",
            "10.1.2.4",
            "192.168.9.9",
            "127.0.0.1",
            "::ffff:10.1.2.3",
            "",
        )
    }
    assert [True, False, True, True, True, True] == list(exempt.values())
    assert (*LOOPBACK, ip_network("10.1.2.3/32"), ip_network("192.168.0.0/16")) == limits.exempt

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raised = raise_descriptors()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
        many = ConnectionLimits.of(settings.read(serve_connections=100_000))
        assert raised - SPARE == many.most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
