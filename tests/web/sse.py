"""A reader of server-sent events on a socket of its own, which can be cut, slowed and looked into."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PATIENCE = 60.0  # seconds; a busy machine is slow
AGAIN = 0.05  # seconds until a server that is not there is asked again
SMALL = 4096  # bytes of a receive buffer that is soon full


class Heard(NamedTuple):
    id: str | None
    name: str
    data: Any


class Cut(Exception):
    """The stream did not end as an answer does: somebody was killed, or cut."""


class Ear:
    """One request for a stream; messages as they come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._text = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last: str | None = None

    @classmethod
    async def open(
        cls, address: str, headers: Mapping[str, str], *, slow: bool = False
    ) -> "Ear":
        at = urlsplit(address)
        plain = socket.socket()
        if slow:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        plain.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(plain, (at.hostname, at.port))
        except BaseException:
            plain.close()
            raise
        ear = cls(*await asyncio.open_connection(sock=plain, limit=SMALL if slow else 2**20))
        try:
            await ear._ask(f"{at.path}?{at.query}", {"Host": at.netloc, **headers})
        except BaseException:  # also whoever is stopped while it asks leaves nothing open
            ear.close()
            raise
        return ear

    async def _ask(self, target: str, headers: Mapping[str, str]) -> None:
        lines = [f"GET {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode())
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Cut from error
        self.status = int(head[0].split()[1])
        self.headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in head[1:])
        }

    async def messages(self) -> AsyncIterator[Heard]:
        """Until the stream has ended as it should; raises Cut where it did not."""
        while (chunk := await self._chunk()) is not None:
            *whole, self._text = (self._text + chunk).split(b"\n\n")
            for one in whole:
                if (heard := _read(one)) is not None:
                    self.last = heard.id or self.last
                    yield heard

    async def next(self) -> Heard | None:
        """The next message by itself; None: the stream has ended."""
        async with asyncio.timeout(PATIENCE):
            while b"\n\n" not in self._text:
                chunk = await self._chunk()
                if chunk is None:
                    return None
                self._text += chunk
        one, _, self._text = self._text.partition(b"\n\n")
        heard = _read(one)
        if heard is None:
            return await self.next()
        self.last = heard.id or self.last
        return heard

    async def to_the_end(self) -> None:
        """Whatever is still told; raises Cut where the stream does not end as it should."""
        while await self.next() is not None:
            pass

    async def problem(self) -> dict[str, Any]:
        """The answer of somebody who was refused."""
        body = await self._reader.readexactly(int(self.headers["content-length"]))
        self.close()
        return dict(json.loads(body))

    def cut(self) -> None:
        """As a cable that is pulled: no farewell."""
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()

    async def _chunk(self) -> bytes | None:
        try:
            size = int(await self._reader.readline() or b"x", 16)
            chunk = await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        except (asyncio.IncompleteReadError, OSError, ValueError) as error:
            raise Cut from error
        return chunk if size else None


def _read(one: bytes) -> Heard | None:
    fields = dict(line.split(": ", 1) for line in one.decode().split("\n"))
    if "event" not in fields:
        return None
    return Heard(fields.get("id"), fields["event"], json.loads(fields["data"]))


class Follower:
    """Hears on whatever happens: comes back with its cursor, and keeps each event once."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self._address = address
        self._headers = dict(headers)
        self._ear: Ear | None = None
        self.last: str | None = None
        self.heard: dict[int, int] = {}  # by job, the last of its events
        self.events = 0
        self.doubled = 0
        self.opened = 0
        self.amiss: list[Any] = []  # a gap, a reset, a refusal

    async def follow(self) -> None:
        """For ever."""
        while True:
            with suppress(Cut, OSError):
                await self._hear()
            await asyncio.sleep(AGAIN)

    def cut(self) -> None:
        if self._ear is not None:
            self._ear.cut()

    async def _hear(self) -> None:
        back = {} if self.last is None else {"Last-Event-ID": self.last}
        self._ear = ear = await Ear.open(self._address, {**self._headers, **back})
        try:
            if ear.status != 200:
                self.amiss.append((ear.status, await ear.problem()))
                return
            self.opened += 1
            async for heard in ear.messages():
                self.last = ear.last
                self._keep(heard)
        finally:
            ear.close()

    def _keep(self, heard: Heard) -> None:
        if heard.name == "reset":
            self.amiss.append(heard)
        if heard.name != "job":
            return
        job, seq = heard.data["job"], heard.data["seq"]
        before = self.heard.get(job, 0)
        if seq <= before:
            self.doubled += 1
        elif seq == before + 1:
            self.heard[job] = seq
            self.events += 1
        else:
            self.amiss.append(("gap", job, before, seq))
