"""`retoma runner`, `serve`, `demo`, `up`, `doctor`: what keeps running, and who does."""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, WithParent


def runner(
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:NAME",
            help="Where your Retoma is; nothing: the house's own. [env: RETOMA_APPLICATIONS]",
        ),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=1024, help="Runner processes.")] = 1,
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="Jobs at a time in each process. [env: RETOMA_SLOTS]"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call it. [env: RETOMA_RUNNER_NAME]")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Instead of the one the app names."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Leave when nothing waits any more.")
    ] = False,
    with_parent: WithParent = False,
) -> None:
    """Claim jobs and run them, until told to stop (SIGTERM or Ctrl-C: drain, then leave)."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.runner import Wanted, run

    run(
        Wanted(
            app=app,
            processes=processes,
            slots=slots,
            name=name,
            database=database,
            until_idle=until_idle,
            with_parent=with_parent,
        )
    )


def serve(
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:NAME",
            help="Where your Retoma is: its jobs can be submitted.",
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Where to listen. [env: RETOMA_SERVE_HOST]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="0: a free one. [env: RETOMA_SERVE_PORT]"),
    ] = None,
    database: Database = None,
    link: Annotated[
        bool, typer.Option("--link/--no-link", help="Print a sign-in link, good once.")
    ] = True,
    with_parent: WithParent = False,
) -> None:
    """Serve the API, until told to stop (SIGTERM or Ctrl-C)."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.serve import Wanted, run

    run(
        Wanted(
            app=app,
            host=host,
            port=port,
            database=database,
            link=link,
            with_parent=with_parent,
        )
    )


def demo(
    fast: Annotated[
        bool, typer.Option("--fast", help="A smaller world: a few seconds.")
    ] = False,
    json: AsJson = False,
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """Five applications at work on this machine: a runner and a service are killed, nothing is lost."""
    from retoma.cli.demo import run
    from retoma.console.exits import stay

    stay()
    run(fast=fast, as_json=json, seed=seed)


def up(
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """The world of the demo, kept running until Ctrl-C; the next `up` goes on from there."""
    from retoma.cli.up import run
    from retoma.console.exits import stay

    stay()
    run(seed=seed)


def doctor(
    database: Database = None,
    json: AsJson = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Check every job, event and total as well.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="With --deep: compare with the effect ledger that handlers wrote there.",
        ),
    ] = None,
) -> None:
    """Look for what may be wrong, and say what to do about it. Changes nothing."""
    from retoma.cli.doctor import doctor as examine

    examine(database, json, deep=deep or ledger is not None, ledger=ledger)
