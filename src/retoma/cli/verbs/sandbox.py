"""`retoma sandbox …`: the outside world in a box, for tests and the demo. Loopback only."""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import Port, WithParent, group

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
def sandbox_ads(
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
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.sandbox import ads

    ads(
        port=port,
        seed=seed,
        faults=faults,
        block_after=block_after,
        log=log,
        with_parent=with_parent,
    )


@sandbox.command("quotes")
def sandbox_quotes(
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
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.sandbox import quotes

    quotes(port=port, seed=seed, faults=faults, pace=pace, logs=log, with_parent=with_parent)


@sandbox.command("documents")
def sandbox_documents(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    pace: Pace = 0.0,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """OpenRouter: /api/v1/chat/completions, by a model that labels by words."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.sandbox import documents

    documents(port=port, seed=seed, faults=faults, pace=pace, log=log, with_parent=with_parent)


@sandbox.command("embeddings")
def sandbox_embeddings(
    port: Port = 0,
    seed: Seed = 1,
    faults: Share = 0.0,
    pace: Pace = 0.0,
    log: LogFile = None,
    with_parent: WithParent = False,
) -> None:
    """An endpoint of OpenAI's shape: /v1/embeddings, by a model that counts words."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.sandbox import embeddings

    embeddings(port=port, seed=seed, faults=faults, pace=pace, log=log, with_parent=with_parent)


@sandbox.command("matches")
def sandbox_matches(
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
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.sandbox import matches

    matches(
        port=port,
        seed=seed,
        faults=faults,
        unfinished=unfinished,
        pace=pace,
        log=log,
        with_parent=with_parent,
    )


@sandbox.command("papers")
def sandbox_papers(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where they are written.")],
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many.")] = 50,
    seed: Seed = 1,
    odd: Annotated[
        int, typer.Option(min=0, help="How many of them are corrupt, endless, scanned, …")
    ] = 0,
) -> None:
    """Documents to classify, a manifest beside them, and what each should end with."""
    from retoma.cli.sandbox import papers

    papers(folder, count=count, seed=seed, odd=odd)


@sandbox.command("proxy")
def sandbox_proxy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it calls itself to sites.")],
    port: Port = 0,
    with_parent: WithParent = False,
) -> None:
    """A forward proxy that asks for RETOMA_SANDBOX_PROXY, which is user:password."""
    from retoma.cli.sandbox import proxy

    proxy(name, port=port, with_parent=with_parent)
