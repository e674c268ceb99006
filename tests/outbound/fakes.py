"""Servers that say whatever they like, names that change, and a spy at the sockets."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpcore2

PUBLIC = "93.184.216.34"  # somebody's; nobody here ever connects to it
OTHER = "93.184.216.35"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Says = bytes | AsyncIterator[bytes]


class Server:
    """Answers each request by what `answer` makes of it: bytes, or pieces without an end."""

    def __init__(self, answer: Callable[[Asked], Says]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                while True:
                    asked = await _read(reader)
                    self.asked.append(asked)
                    await self._say(writer, self.answer(asked))
        finally:
            writer.transport.abort()

    async def _say(self, writer: asyncio.StreamWriter, says: Says) -> None:
        if isinstance(says, bytes):
            writer.write(says)
            await writer.drain()
            return
        async for piece in says:
            writer.write(piece)
            await writer.drain()
        raise EOFError  # such an answer ends with its connection

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)


@asynccontextmanager
async def serving(
    answer: Callable[[Asked], Says] | bytes = OK, **options: Any
) -> AsyncIterator[Server]:
    server = Server((lambda _: answer) if isinstance(answer, bytes) else answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, **options)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A well-formed answer; the names of headers have _ for -."""
    lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return answer(status, location=location)


async def endless(begin: bytes, piece: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    yield begin
    while True:
        await asyncio.sleep(pause)
        yield piece


class Names:
    """A resolver whose answer for a name is what comes next on its list, the last one for ever."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if answers is None:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Streets(httpcore2.AsyncNetworkBackend):
    """Public addresses lead to servers of this test; who dialled what is written down."""

    def __init__(self, **ports: int) -> None:
        self.ports = {PUBLIC: 0, **ports}
        self.dialled: list[tuple[str, int]] = []

    def leads(self, address: str, server: Server) -> "Streets":
        self.ports[address] = server.port
        return self

    async def connect_tcp(
        self, host: str, port: int, *options: Any, **more: Any
    ) -> httpcore2.AsyncNetworkStream:
        self.dialled.append((host, port))
        if not self.ports.get(host):
            raise httpcore2.ConnectError("nobody lives there")
        return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self.ports[host], 5)


# --- the spy: a hook cannot be taken out again, so there is one, and it listens when asked

_listeners: list[list[tuple[Any, ...]]] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for seen in _listeners:
            seen.append(args[1])


sys.addaudithook(_hear)


@contextmanager
def spying() -> Iterator[list[tuple[Any, ...]]]:
    """Every address that a socket of this process is told to connect to."""
    seen: list[tuple[Any, ...]] = []
    _listeners.append(seen)
    try:
        yield seen
    finally:
        _listeners.remove(seen)
