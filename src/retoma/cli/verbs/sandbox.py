"""`retoma sandbox …`: the outside world in a box, for tests and the demo. Loopback only."""

from pathlib import Path
from typing import Annotated

import typer

from retoma.cli.options import group

sandbox = group("Sites and proxies that stand for those of others, on this machine.")
Port = Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")]
WithParent = Annotated[bool, typer.Option("--leave-with-parent", hidden=True)]


@sandbox.command("ads")
def sandbox_ads(
    port: Port = 0,
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
    faults: Annotated[
        float, typer.Option(min=0, max=1, help="The share of requests that go wrong.")
    ] = 0.0,
    block_after: Annotated[
        int | None, typer.Option(min=1, help="Requests of one proxy; then it is blocked.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where every request is written down.")
    ] = None,
    with_parent: WithParent = False,
) -> None:
    """A library of some forty thousand ads, in two layouts: /gallery and /archive."""
    from retoma.cli.exits import leave_in_order, stay

    leave_in_order()
    stay()
    from retoma.cli.sandbox import ads

    ads(
        port=port,
        seed=seed,
        faults=faults,
        block_after=block_after,
        log=log,
        with_parent=with_parent,
    )


@sandbox.command("proxy")
def sandbox_proxy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it calls itself to sites.")],
    port: Port = 0,
    with_parent: WithParent = False,
) -> None:
    """A forward proxy that asks for RETOMA_SANDBOX_PROXY, which is user:password."""
    from retoma.cli.sandbox import proxy

    proxy(name, port=port, with_parent=with_parent)
