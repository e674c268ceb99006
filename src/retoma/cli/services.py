"""`retoma worker-service` and its like: a program of ours on a socket, until told to stop."""

from collections.abc import Callable

from fastapi import FastAPI

from retoma.cli.serve import PATIENCE, Server
from retoma.console.exits import Exit, Stop
from retoma.console.listening import bound_to
from retoma.console.processes import freeze_loaded_objects, on_stop, when_parent_ends
from retoma.settings import Settings
from retoma.web import Face
from retoma.words import say, speak


def key_of(chosen: Settings) -> str:
    """What callers must bring."""
    if chosen.api_key is None:
        raise Stop(Exit.USAGE, say("set RETOMA_API_KEY: whoever calls brings it as x-api-key"))
    return chosen.api_key.get_secret_value()


async def serve(
    build: Callable[[Face], FastAPI], *, host: str, port: int, with_parent: bool
) -> None:
    """What `build` makes for the address it is reached at; its runner leaves with it."""
    listening = bound_to(host, port)
    server = Server(build(Face(host=host, port=listening.getsockname()[1])), [listening])
    on_stop(server.stop)
    if with_parent:
        when_parent_ends(server.stop)
    server.house.retoma.patience = PATIENCE

    def listening_now() -> None:
        freeze_loaded_objects()
        print(speak("retoma listens on {origin}", origin=server.origin), flush=True)

    async with server.house.retoma:
        try:
            await server.run(listening_now)
        except SystemExit:  # uvicorn's, where what lives beside it could not begin
            raise Stop(Exit.FAILED, say("it did not come up; its log says why")) from None
