"""The live stream as server-sent events: bytes that are ready, written as they come."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from retoma.access import Person
from retoma.web.broadcast import Hearing
from retoma.web.house import House
from retoma.web.problems import LATER, Refusal
from retoma.web.sign_in import cookie_in, cookie_name, identified, key_in
from retoma.words import Said, say

# Bytes written at a time: what a reader does not take is copied for each, so only so much of it may be.
# With 64 KiB, 500 streams that nobody read took 190 MiB.
PIECE: Final = 8 * 1024
HEADERS: Final = {
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # a proxy that collects would make everything late
}


class EventStream(StreamingResponse):
    """An answer that goes on until the reader leaves or there is nothing more to tell.

    Plain ASGI: a framework's own takes each message apart and puts it together again.
    """

    media_type = "text/event-stream"

    def __init__(self, hearing: Hearing) -> None:
        super().__init__(hearing.chunks(), headers=HEADERS)
        self._hearing = hearing

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        listener = self._hearing.listener
        pouring = asyncio.create_task(self._pour(send))
        leaving = asyncio.create_task(_gone(receive))
        ending = asyncio.create_task(listener.over.wait())
        tasks = (pouring, leaving, ending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not (pouring.done() or leaving.done()):
                # Who does not even take its last words does not keep us.
                await asyncio.wait(
                    tasks[:2], timeout=listener.patience, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self._hearing.leave()
        if isinstance(ended[0], Exception) and not isinstance(ended[0], OSError):
            raise ended[0]

    async def _pour(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._hearing.chunks()) as chunks:
            async for chunk in chunks:
                for at in range(0, len(chunk), PIECE):
                    part = chunk[at : at + PIECE]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def check_room(house: House, who: Person) -> None:
    """Whether one more may listen, of all and of one person."""
    settings, streams = house.settings, house.broadcaster
    if streams.listeners >= settings.streams:
        raise _no_room(
            say("{most} streams are open already; come back later", most=settings.streams)
        )
    if streams.listeners_of(who.name) >= settings.streams_each:
        raise _no_room(
            say("{most} streams of yours are open already", most=settings.streams_each)
        )


def _no_room(why: Said) -> Refusal:
    return Refusal("too_many_requests", why, headers={"Retry-After": str(LATER)})


@dataclass(frozen=True, slots=True)
class Still:
    """Whether the key or the session a stream was opened with is still the same person's, with the
    same role."""

    who: Person
    credential: str  # hashed; the same one is asked about once
    house: House = field(compare=False)
    request: Request = field(compare=False)

    async def __call__(self) -> bool:
        return await identified(self.request, self.house) == self.who


def still(who: Person, house: House, request: Request) -> Still:
    given = key_in(request) or cookie_in(request, cookie_name(house)) or ""
    return Still(who, sha256(given.encode()).hexdigest(), house, request)
