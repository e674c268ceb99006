"""`retoma serve`: the API, and what it needs beside it, until told to stop."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI

from retoma import logs, settings
from retoma.access import Access, Role
from retoma.bootstrap import build_retoma, build_traces, install_applications
from retoma.cli.runner import load, run_on_the_quickest_loop
from retoma.console.connections import ConnectionLimits
from retoma.console.exits import Exit, Stop
from retoma.console.listening import Listener, bound_to
from retoma.console.processes import freeze_loaded_objects, on_stop, when_parent_ends
from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.settings import Settings
from retoma.web import Bound, House, build_site, face_of
from retoma.words import say, speak

PATIENCE = 5.0  # seconds for a database that is away: somebody waits for an answer
GRACE = 1.0  # seconds for the jobs of the house
SLOTS = 4  # jobs of the house at a time
TIDY = 3600.0  # seconds between two looks for answers nobody asks for any more
ALONE = "admin"  # who signs in where this machine has no name for whoever started us
ACTOR = "cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asked for; None: as the settings say."""

    app: str | None
    host: str | None
    port: int | None
    database: str | None
    link: bool
    with_parent: bool


def run(wanted: Wanted) -> None:
    chosen = settings.read(
        database_url=wanted.database, serve_host=wanted.host, serve_port=wanted.port
    )
    logs.configure(chosen.log_level)
    run_on_the_quickest_loop(_serve(wanted, chosen))


async def _serve(wanted: Wanted, chosen: Settings) -> None:
    retoma, applications = _what(wanted, chosen)
    async with retoma:
        server = await prepare(retoma, chosen, applications)
        on_stop(server.stop)
        if wanted.with_parent:
            when_parent_ends(server.stop)
        link = await sign_in_link(server) if wanted.link else None
        await server.run(lambda: _tell(server, link))


def _tell(server: "Server", link: str | None) -> None:
    freeze_loaded_objects()
    print(speak("retoma listens on {origin}", origin=server.origin), flush=True)
    if link is not None:
        print(speak("sign in, once, within an hour: {link}", link=link), flush=True)


def _what(wanted: Wanted, chosen: Settings) -> tuple[Retoma, Sequence[Application]]:
    """The app of whoever starts us, all of whose kinds may be submitted; else a bare house."""
    if wanted.app is None:
        retoma = build_retoma(chosen)
        retoma.patience = PATIENCE
        return retoma, install_applications(retoma, chosen)
    retoma = load(wanted.app)
    retoma.patience = PATIENCE
    retoma.traces = retoma.traces or build_traces(chosen)
    if wanted.database is not None:
        retoma.url = wanted.database
    own = Application(name="app", kinds=list(retoma.kinds))
    return retoma, [own, *install_applications(retoma, chosen)]


class Server:
    """A site on a socket, and the house's own runner beside it."""

    def __init__(
        self, site: FastAPI, sockets: Sequence[Any], limits: ConnectionLimits | None = None
    ) -> None:
        self.site = site
        self.house: House = site.state.house
        self.origin = self.house.face.origin
        limits = limits or ConnectionLimits.of(self.house.settings)
        self._listener = Listener(site, sockets, limits=limits)

    async def run(self, listening: Callable[[], None] = lambda: None) -> None:
        """Until told to stop; open answers have a few seconds to end. `listening` is called once
        somebody could be answered."""
        await self._listener.run(listening, self.house.broadcaster.close)

    def stop(self) -> None:
        self._listener.stop()


async def prepare(
    retoma: Retoma,
    chosen: Settings,
    applications: Sequence[Application],
    *,
    bound: Bound | None = None,
    routers: Sequence[APIRouter] = (),
    limits: ConnectionLimits | None = None,
) -> Server:
    """Listening already, and serving nobody yet."""
    await _check_open(retoma, chosen)
    listening = bound_to(chosen.serve_host, chosen.serve_port)
    port: int = listening.getsockname()[1]
    site = build_site(
        retoma,
        chosen.model_copy(update={"serve_port": port}),
        applications,
        bound=bound,
        routers=routers,
        lives=(own_runner, housekeeping),
    )
    return Server(site, [listening], limits)


async def _check_open(retoma: Retoma, chosen: Settings) -> None:
    """Whoever can be reached from elsewhere must be able to tell people apart."""
    if face_of(chosen).is_loopback:
        return
    key = None if chosen.api_key is None else chosen.api_key.get_secret_value()
    access = Access(await retoma.database(), retoma.clock, retoma.ids, env_key=key)
    if not await access.any_keys():
        raise Stop(
            Exit.USAGE,
            say(
                "{host} can be reached from elsewhere, and there is no key yet: make one with"
                " `retoma keys create`, or listen on 127.0.0.1",
                host=chosen.serve_host,
            ),
        )


async def sign_in_link(server: Server) -> str:
    """For whoever started us, who is an admin of this house."""
    access = await server.house.access()
    try:
        token = await access.invite(_me(), Role.ADMIN, ACTOR)
    except BadInput:
        token = await access.invite(ALONE, Role.ADMIN, ACTOR)
    return f"{server.origin}/enter/{token}"


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ALONE


# — what lives beside the site —


@asynccontextmanager
async def own_runner(house: House) -> AsyncIterator[None]:
    """Runs the jobs of the house itself: orders that are too large to wait for."""
    retoma, told, leaving = house.retoma, house.settings, asyncio.Event()

    async def kept() -> None:
        # One that was drained begins anew: it leaves with the server.
        while not leaving.is_set():
            await retoma.run(
                kinds=house.own,
                name="server",
                host=told.host,
                slots=SLOTS,
                lease=told.lease,
                beat=told.beat,
                tick=told.tick,
                grace=GRACE,
                let_go=GRACE / 2,
                keep=told.keep,
            )

    run = asyncio.create_task(kept())
    try:
        yield
    finally:
        leaving.set()
        retoma.stop()
        await asyncio.wait({run}, timeout=2 * GRACE)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


@asynccontextmanager
async def housekeeping(house: House) -> AsyncIterator[None]:
    tidying = asyncio.create_task(_tidy(house))
    try:
        yield
    finally:
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)


async def _tidy(house: House) -> None:
    while True:
        while await house.retoma.retention.forget_answers():
            await house.retoma.clock.give_way()
        await house.retoma.clock.sleep(TIDY)
