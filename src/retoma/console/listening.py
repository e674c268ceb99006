"""An ASGI application on a socket of ours, until told to stop."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from retoma.console.connections import ConnectionLimits, bounded
from retoma.console.exits import Exit, Stop
from retoma.engine.ports import Clock
from retoma.web.bounds import HEAD
from retoma.words import say

DRAIN = 3  # seconds for open answers to end
KEEP_ALIVE = 5  # seconds a connection may rest


def bound_to(host: str, port: int) -> Any:
    """A socket that listens there; 0: on a free port."""
    config = uvicorn.Config("", host=host, port=port, log_config=None)
    try:
        return config.bind_socket()
    except SystemExit:
        raise Stop(
            Exit.UNAVAILABLE,
            say(
                "cannot listen on {host} port {port}: it is taken, or not ours",
                host=host,
                port=port,
            ),
        ) from None


async def _nothing() -> None:
    """Nobody keeps a stream open."""


class Listener:
    """Serves on these sockets."""

    def __init__(
        self,
        app: Any,
        sockets: Sequence[Any],
        *,
        lifespan: str = "on",
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._sockets = list(sockets)
        self._server = _Quiet(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=bounded(limits or ConnectionLimits()),
                ws="none",
                lifespan=lifespan,  # type: ignore[arg-type]  # one of its words
                timeout_graceful_shutdown=DRAIN,
                timeout_keep_alive=KEEP_ALIVE,
                h11_max_incomplete_event_size=HEAD,
            )
        )

    async def run(
        self,
        listening: Callable[[], None] = lambda: None,
        leaving: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        """`listening` is called once somebody could be answered, `leaving` before open answers
        are waited for."""
        self._server.listening = listening
        self._server.leaving = leaving
        await self._server.serve(sockets=self._sockets)

    def stop(self) -> None:
        self._server.should_exit = True


class _Quiet(uvicorn.Server):
    """Signals are ours to hear: a SIGTERM is an end in order."""

    listening: Callable[[], None]
    leaving: Callable[[], Awaitable[None]]

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.listening()

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        await self.leaving()  # else we would wait for streams, which never end by themselves
        await super().shutdown(sockets)
        for each in list(self.server_state.connections):
            each.transport.abort()  # its client has not read what was sent, and need not
        await Clock().give_way()  # in which they are closed

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
