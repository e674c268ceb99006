"""The live stream as server-sent events: bytes that are ready, written as they come."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy that collects would make everything late
]


class EventStream:
    """An answer that goes on until the reader leaves or there is nothing more to tell.

    Raw ASGI: a framework's own takes each message apart and puts it together again.
    """

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def __call__(self, _scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        pouring = asyncio.create_task(self._pour(send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({pouring, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pouring, leaving):
                task.cancel()
            ended = await asyncio.gather(pouring, leaving, return_exceptions=True)
        if isinstance(ended[0], Exception) and not isinstance(ended[0], OSError):
            raise ended[0]

    async def _pour(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
