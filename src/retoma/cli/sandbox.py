"""`retoma sandbox ads`, `quotes` and the others: pieces of the outside world, as programs."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from retoma.console.exits import Exit, Stop
from retoma.console.listening import Listener, bound_to
from retoma.console.processes import on_stop, when_parent_ends
from retoma.words import say, speak

HERE = "127.0.0.1"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def ads(
    *,
    port: int,
    seed: int,
    faults: float,
    block_after: int | None,
    log: Path | None,
    with_parent: bool,
) -> None:
    from retoma.apps.ads.sandbox import Library, build_pages
    from retoma.sandbox.box import Box
    from retoma.sandbox.faults import Faults

    wrong = Faults(seed=seed, rate=faults, block_after=block_after)
    asyncio.run(_serve(Box(build_pages(Library(seed)), wrong, log_file=log), port, with_parent))


def quotes(
    *, port: int, seed: int, faults: float, pace: float, logs: Path | None, with_parent: bool
) -> None:
    from retoma.apps.quotes.sandbox import Catalogue, build_services

    services = build_services(Catalogue(seed), faults=faults, pace=pace, logs=logs)
    asyncio.run(_serve(services, port, with_parent))


def documents(
    *, port: int, seed: int, faults: float, pace: float, log: Path | None, with_parent: bool
) -> None:
    from retoma.apps.documents.sandbox import build_service

    service = build_service(seed, faults=faults, pace=pace, log=log)
    asyncio.run(_serve(service, port, with_parent))


def embeddings(
    *, port: int, seed: int, faults: float, pace: float, log: Path | None, with_parent: bool
) -> None:
    from retoma.apps.embeddings.sandbox import build_service

    service = build_service(seed, faults=faults, pace=pace, log=log)
    asyncio.run(_serve(service, port, with_parent))


def matches(
    *,
    port: int,
    seed: int,
    faults: float,
    unfinished: float,
    pace: float,
    log: Path | None,
    with_parent: bool,
) -> None:
    from retoma.apps.matches.sandbox import Season, build_site

    season = Season(seed, unfinished=unfinished)
    site = build_site(season, faults=faults, pace=pace, log=log)
    asyncio.run(_serve(site, port, with_parent))


def papers(folder: Path, *, count: int, seed: int, odd: int) -> None:
    from retoma.apps.documents.sandbox import Odd, Papers

    kinds: list[Odd] = [each for each in Odd if each is not Odd.HUGE]
    wanted = {kind: len(range(place, odd, len(kinds))) for place, kind in enumerate(kinds)}
    Papers(seed).write(folder, count, wanted)
    told = {"count": count, "folder": folder, "odd": min(odd, count)}
    print(speak("{count} documents lie in {folder}, {odd} of them odd", **told))


async def _serve(app: Any, port: int, with_parent: bool) -> None:
    socket = bound_to(HERE, port)
    listener = Listener(app, [socket], lifespan="off")
    on_stop(listener.stop)
    if with_parent:
        when_parent_ends(listener.stop)
    origin = f"http://{HERE}:{socket.getsockname()[1]}"
    await listener.run(
        lambda: print(speak("retoma listens on {origin}", origin=origin), flush=True)
    )


def proxy(name: str, *, port: int, with_parent: bool) -> None:
    if not NAME.fullmatch(name):
        raise Stop(
            Exit.USAGE,
            say("a proxy is called by letters, digits, - and _, not {name!r}", name=name),
        )
    from retoma.sandbox import proxies

    if ":" not in os.environ.get(proxies.CREDENTIALS, ""):
        raise Stop(
            Exit.USAGE,
            say(
                "set {name} to user:password, which the proxy asks for",
                name=proxies.CREDENTIALS,
            ),
        )

    def listening(port: int) -> None:
        print(speak("retoma listens on {origin}", origin=f"http://{HERE}:{port}"), flush=True)

    proxies.run(name, port, listening, with_parent=with_parent)
