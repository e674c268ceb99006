"""`retoma sandbox …`: the outside world in a box, for tests and the demo. Loopback only."""

import asyncio
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from retoma.console.exits import Exit, Stop, stay_until_told
from retoma.console.options import Port, WithParent, group
from retoma.words import say, speak

HERE = "127.0.0.1"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

sandbox = group("Sites and proxies that stand for those of others, on this machine.")
Seed = Annotated[int, typer.Option(help="Which world.")]
Share = Annotated[
    float, typer.Option(min=0, max=1, help="The share of requests that go wrong.")
]
Pace = Annotated[
    float, typer.Option(min=0, help="0: it answers at once. 1: as slowly as the real one.")
]
LogFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where every request is written down.")
]


@sandbox.command("ads")
def ads(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    block_after: Annotated[
        int | None, typer.Option(min=1, help="Requests of one proxy; then it is blocked.")
    ] = None,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """A library of some forty thousand ads, in two layouts: /gallery and /archive."""
    stay_until_told()
    from retoma.apps.ads.sandbox import Library, build_pages
    from retoma.sandbox.box import Box
    from retoma.sandbox.faults import Faults

    wrong = Faults(seed=seed, rate=faults, block_after=block_after)
    _serve(Box(build_pages(Library(seed)), wrong, log_file=log), port, with_parent)


@sandbox.command("quotes")
def quotes(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    pace: Annotated[
        float, typer.Option(min=0, help="0: all answer at once. 1: as slowly as the real ones.")
    ] = 0.0,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where each service writes down its requests."),
    ] = None,
    with_parent: WithParent = False,
) -> None:
    """Four services: /anthropic, /serpapi, /fipe and /shops."""
    stay_until_told()
    from retoma.apps.quotes.sandbox import Catalogue, build_services

    services = build_services(Catalogue(seed), faults=faults, pace=pace, logs=log)
    _serve(services, port, with_parent)


@sandbox.command("documents")
def documents(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    pace: Pace = 0.0,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """OpenRouter: /api/v1/chat/completions, by a model that labels by words."""
    stay_until_told()
    from retoma.apps.documents.sandbox import build_service

    service = build_service(seed, faults=faults, pace=pace, log=log)
    _serve(service, port, with_parent)


@sandbox.command("embeddings")
def embeddings(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    pace: Pace = 0.0,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """An endpoint of OpenAI's shape: /v1/embeddings, by a model that counts words."""
    stay_until_told()
    from retoma.apps.embeddings.sandbox import build_service

    service = build_service(seed, faults=faults, pace=pace, log=log)
    _serve(service, port, with_parent)


@sandbox.command("matches")
def matches(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    unfinished: Annotated[
        float,
        typer.Option(min=0, max=1, help="The share of matches that are not over yet."),
    ] = 0.05,
    pace: Pace = 0.0,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """Rounds and matches of two leagues, in two layouts: /brasileirao/2026/rodada/1."""
    stay_until_told()
    from retoma.apps.matches.sandbox import Season, build_site

    season = Season(seed, unfinished=unfinished)
    site = build_site(season, faults=faults, pace=pace, log=log)
    _serve(site, port, with_parent)


@sandbox.command("papers")
def papers(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where they are written.")],
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many.")] = 50,
    seed: Seed = 1,
    odd: Annotated[
        int, typer.Option(min=0, help="How many of them are corrupt, endless, scanned, …")
    ] = 0,
) -> None:
    """Documents to classify, a manifest beside them, and what each should end with."""
    from retoma.apps.documents.sandbox import Odd, Papers

    kinds: list[Odd] = [each for each in Odd if each is not Odd.HUGE]
    wanted = {kind: len(range(place, odd, len(kinds))) for place, kind in enumerate(kinds)}
    Papers(seed).write(folder, count, wanted)
    told = {"count": count, "folder": folder, "odd": min(odd, count)}
    print(speak("{count} documents lie in {folder}, {odd} of them odd", **told))


@sandbox.command("proxy")
def proxy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it calls itself to sites.")],
    port: Port = 0,
    with_parent: WithParent = False,
) -> None:
    """A forward proxy that asks for RETOMA_SANDBOX_PROXY, which is user:password."""
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


def _serve(app: Any, port: int, with_parent: bool) -> None:
    asyncio.run(_listen(app, port, with_parent))


async def _listen(app: Any, port: int, with_parent: bool) -> None:
    from retoma.console.listening import Listener, bound_to
    from retoma.console.processes import on_stop, when_parent_ends

    socket = bound_to(HERE, port)
    listener = Listener(app, [socket], lifespan="off")
    on_stop(listener.stop)
    if with_parent:
        when_parent_ends(listener.stop)
    origin = f"http://{HERE}:{socket.getsockname()[1]}"
    await listener.run(
        lambda: print(speak("retoma listens on {origin}", origin=origin), flush=True)
    )
