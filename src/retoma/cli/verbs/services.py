"""`retoma worker-service`: programs of ours that speak somebody else's API."""

from pathlib import Path
from typing import Annotated

import typer

Host = Annotated[str, typer.Option(help="Where to listen.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")]
Data = Annotated[
    Path,
    typer.Option("--data", metavar="FOLDER", help="Where it keeps what it must not forget."),
]
WithParent = Annotated[bool, typer.Option("--leave-with-parent", hidden=True)]


def worker_service(
    site: Annotated[str, typer.Option(metavar="URL", help="The site it reads ads from.")],
    data: Data,
    adapter: Annotated[
        str, typer.Option(help="How that site is read: gallery or archive.")
    ] = "gallery",
    host: Host = "127.0.0.1",
    port: Port = 8331,
    keys: Annotated[
        bool, typer.Option("--keys/--no-keys", help="Whether it hears of Idempotency-Key.")
    ] = True,
    limit: Annotated[
        float, typer.Option(min=0.1, max=600, help="Seconds without an answer: stuck.")
    ] = 30.0,
    watch: Annotated[
        float, typer.Option(min=0.05, max=600, help="Seconds between looks at a session.")
    ] = 15.0,
    keep: Annotated[str, typer.Option(help="How long results stay.")] = "30d",
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="s3://bucket/prefix?endpoint=… for results; else here."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Read the site in a headless Chromium.")
    ] = False,
    chromium: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM",
            envvar="RETOMA_CHROMIUM",
            help="Which Chromium; else one on the PATH.",
        ),
    ] = None,
    misbehave: Annotated[
        bool, typer.Option("--misbehave", help="Listen to POST /misbehave: for tests.")
    ] = False,
    with_parent: WithParent = False,
) -> None:
    """Scrape ads through proxies for an orchestrator, until told to stop."""
    from retoma.cli.exits import leave_in_order, stay

    leave_in_order()
    stay()
    from retoma.cli.worker import Wanted, run

    run(
        Wanted(
            site=site,
            data=data,
            adapter=adapter,
            host=host,
            port=port,
            keys=keys,
            limit=limit,
            watch=watch,
            keep=keep,
            storage=storage,
            browser=browser,
            chromium=chromium,
            misbehave=misbehave,
            with_parent=with_parent,
        )
    )
