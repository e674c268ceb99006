"""A proxy before Redis that loses, doubles and shuffles what is pushed onto one list.

It reads what clients say, command by command. A message that is to be lost becomes a question for the
length of the list: the answer looks the same. One that is to be doubled is pushed twice in one command,
one that is to overtake is pushed at the other end. Everything else goes through as it came.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from tests.proxy import Proxy


class LossyRedis(Proxy):
    """with LossyRedis(url, "retoma", Random(7)) as proxy: … proxy.url"""

    def __init__(self, url: str, queue: str, rng: Random) -> None:
        super().__init__(url)
        self._list = queue.encode()
        self._rng = rng
        self.lost = self.doubled = self.overtaking = 0

    def __enter__(self) -> "LossyRedis":
        super().__enter__()
        return self

    @property
    def url(self) -> str:
        return super().url.replace("://@", "://")

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        link: Any,
        passing: asyncio.Event,
        kept: Callable[[bytes], bool] | None,
    ) -> None:
        if kept is not None:
            await super()._pump(source, target, link, passing, kept)
            return
        while command := await read_command(source):
            target.write(written(self._changed(command)))
            await target.drain()
        target.close()

    def _changed(self, command: list[bytes]) -> list[bytes]:
        """Half of all messages are lost, the other half doubled, and some of those overtake."""
        if len(command) != 3 or command[0].upper() != b"LPUSH" or command[1] != self._list:
            return command
        _, queue, message = command
        if self._rng.random() < 0.5:
            self.lost += 1
            return [b"LLEN", queue]
        self.doubled += 1
        overtakes = self._rng.random() < 0.3
        self.overtaking += overtakes
        return [b"RPUSH" if overtakes else b"LPUSH", queue, message, message]


async def read_command(source: asyncio.StreamReader) -> list[bytes]:
    """The next command of a client: an array of strings. Empty: it is gone."""
    try:
        head = await source.readuntil(b"\r\n")
        return [await read_string(source) for _ in range(int(head[1:]))]
    except asyncio.IncompleteReadError:
        return []


async def read_string(source: asyncio.StreamReader) -> bytes:
    size = int((await source.readuntil(b"\r\n"))[1:])
    return (await source.readexactly(size + 2))[:-2]


def written(command: list[bytes]) -> bytes:
    strings = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in command)
    return b"*%d\r\n%b" % (len(command), strings)
