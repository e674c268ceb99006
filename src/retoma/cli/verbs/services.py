"""`retoma worker-service`: programs of ours that speak somebody else's API."""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import Host, Port, WithParent

Data = Annotated[
    Path,
    typer.Option("--data", metavar="FOLDER", help="Where it keeps what it must not forget."),
]


Site = Annotated[str, typer.Option(metavar="URL", help="The site it reads ads from.")]
Adapter = Annotated[str, typer.Option(help="How that site is read: gallery or archive.")]
Keys = Annotated[
    bool, typer.Option("--keys/--no-keys", help="Whether it hears of Idempotency-Key.")
]
Limit = Annotated[
    float, typer.Option(min=0.1, max=600, help="Seconds without an answer: stuck.")
]
Watch = Annotated[
    float, typer.Option(min=0.05, max=600, help="Seconds between looks at a session.")
]
Keep = Annotated[str, typer.Option(help="How long results stay.")]
Storage = Annotated[
    str | None,
    typer.Option(metavar="URL", help="s3://bucket/prefix?endpoint=… for results; else here."),
]
Browser = Annotated[
    bool, typer.Option("--browser", help="Read the site in a headless Chromium.")
]
Chromium = Annotated[
    str | None,
    typer.Option(
        metavar="PROGRAM",
        envvar="RETOMA_CHROMIUM",
        help="Which Chromium; else one on the PATH.",
    ),
]
Misbehave = Annotated[
    bool, typer.Option("--misbehave", help="Listen to POST /misbehave: for tests.")
]


def worker_service(
    site: Site,
    data: Data,
    adapter: Adapter = "gallery",
    host: Host = "127.0.0.1",
    port: Port = 8331,
    keys: Keys = True,
    limit: Limit = 30.0,
    watch: Watch = 15.0,
    keep: Keep = "30d",
    storage: Storage = None,
    browser: Browser = False,
    chromium: Chromium = None,
    misbehave: Misbehave = False,
    with_parent: WithParent = False,
) -> None:
    """Scrape ads through proxies for an orchestrator, until told to stop."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
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
