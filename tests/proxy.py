"""A small TCP proxy that misbehaves when told to: cut, delay, refuse, say nothing, keep an answer.

It runs on a loop in a thread of its own, so a test may command it from anywhere, also from inside
a transaction.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

# PostgreSQL's "ready for query" outside any transaction: what came before it is committed or gone.
IDLE_AGAIN = b"Z\0\0\0\x05I"


class Proxy:
    """Stands before a server; `url` leads through it. with Proxy(url) as proxy: …"""

    def __init__(self, url: str, listening: socket.socket | None = None) -> None:
        """`listening`: a socket somebody made elsewhere, as in another network."""
        self._upstream = urlsplit(url)
        self._listening = listening
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._refusing = False
        self._delay = 0.0
        self._swallow = False
        self._asking = asyncio.Event()  # what clients say passes
        self._answering = asyncio.Event()  # what the server says passes
        self._asking.set()
        self._answering.set()
        self.accepted = 0
        self.swallowed = threading.Event()
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def url(self) -> str:
        user, _, _ = self._upstream.netloc.rpartition("@")
        return self._upstream._replace(netloc=f"{user}@{self.host}:{self.port}").geturl()

    # — commands, from any thread —

    def lead_to(self, url: str) -> None:
        """Whoever comes now reaches another server, as after a failover."""
        self._upstream = self._upstream._replace(netloc=urlsplit(url).netloc)

    def cut(self, *, leave_server: bool = False) -> None:
        """Break every connection; with `leave_server` the server is not told."""
        self._ask(self._cut(leave_server))

    def refuse(self, refusing: bool = True) -> None:
        """Accept nobody new, or again."""
        self._refusing = refusing

    def delay(self, seconds: float) -> None:
        """Every piece of an answer takes this much longer from now on."""
        self._delay = seconds

    def silence(self, *, requests: bool = True) -> None:
        """Nothing arrives any more, and nobody is told; without `requests` only answers do not."""
        self._ask(self._silence(requests))

    def speak(self) -> None:
        """All is well again for who comes now. Who was there before waits for ever."""
        self._ask(self._speak())

    def swallow_next_end(self) -> None:
        """The answer that ends the next transaction never arrives; its connection is cut."""
        self.swallowed.clear()
        self._swallow = True

    # — the machine —

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._ask(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._ask(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        listening = self._listening or socket.create_server((self.host, 0))
        self._server = await asyncio.start_server(self._serve, sock=listening)
        self.host, self.port = listening.getsockname()

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._speak()
        for link in list(self._links):
            link.cut(leave_server=False)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    async def _silence(self, requests: bool) -> None:
        self._answering.clear()
        if requests:
            self._asking.clear()

    async def _speak(self) -> None:
        if not self._answering.is_set():
            for link in self._links:
                link.forgotten = True
        self._asking.set()
        self._answering.set()

    async def _cut(self, leave_server: bool) -> None:
        for link in list(self._links):
            link.cut(leave_server)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            up = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        except OSError:
            writer.transport.abort()
            return
        self.accepted += 1
        link = _Link(writer, up[1])
        self._links.add(link)
        try:
            with suppress(OSError):
                await asyncio.gather(
                    self._pump(reader, up[1], link, self._asking, None),
                    self._pump(up[0], writer, link, self._answering, self._kept(link)),
                )
        finally:
            if not link.left:
                link.cut(leave_server=False)
                self._links.discard(link)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        link: "_Link",
        passing: asyncio.Event,
        kept: Callable[[bytes], bool] | None,
    ) -> None:
        while data := await source.read(65536):
            if kept is not None and self._delay:
                await asyncio.sleep(self._delay)
            await passing.wait()
            if link.forgotten:
                continue
            if kept is not None and kept(data):
                continue
            target.write(data)
            await target.drain()
        await passing.wait()
        if not link.forgotten:
            target.close()

    def _kept(self, link: "_Link") -> Callable[[bytes], bool]:
        def kept(data: bytes) -> bool:
            if link.left:
                return True
            if self._swallow and data.endswith(IDLE_AGAIN) and link.ready:
                self._swallow = False
                link.cut(leave_server=False)
                self.swallowed.set()
                return True
            link.ready |= data.endswith(IDLE_AGAIN)
            return False

        return kept


class _Link:
    """One client and its server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._client = client
        self._server = server
        self.ready = False  # past its greeting
        self.left = False  # the client is gone, the server does not know
        self.forgotten = False  # open for ever, and nothing passes

    def cut(self, leave_server: bool) -> None:
        self.left = self.left or leave_server
        self._client.transport.abort()
        if not leave_server:
            self._server.transport.abort()
