"""The command line: every verb and what it takes. What a verb does is imported when it is run,
so that `retoma --help` costs one import."""

from typing import Annotated

import typer

LARGEST = 2**63 - 1  # ids are 64 bits in both databases


def _group(help_: str) -> typer.Typer:
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None)


cli = typer.Typer(
    name="retoma",
    help="Batches of slow, flaky, expensive work; whatever stopped goes on where it stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
jobs = _group("Look at jobs, and steer them.")
batches = _group("Look at batches.")
database = _group("The schema of the database.")
cli.add_typer(jobs, name="jobs")
cli.add_typer(batches, name="batches")
cli.add_typer(database, name="db")

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="sqlite:///work.db or postgresql://… [env: RETOMA_DATABASE_URL]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Id = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST)]
Before = Annotated[
    int | None,
    typer.Option(metavar="ID", min=1, max=LARGEST, help="Older than this id: the next page."),
]
Limit = Annotated[int, typer.Option(min=1, max=200, help="How many at most.")]


def main() -> None:
    """The `retoma` program."""
    from retoma.cli.exits import end_with_the_reader, guarded

    end_with_the_reader()
    guarded(cli)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"retoma {version('retoma')}")
        raise typer.Exit


@cli.callback()
def _retoma(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")
    ] = False,
) -> None: ...


# — working —


@cli.command()
def runner(
    app: Annotated[
        str, typer.Option("--app", metavar="MODULE:NAME", help="Where your Retoma is.")
    ],
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
    with_parent: Annotated[bool, typer.Option("--leave-with-parent", hidden=True)] = False,
) -> None:
    """Claim jobs and run them, until told to stop (SIGTERM or Ctrl-C: drain, then leave)."""
    from retoma.cli.exits import leave_in_order, stay

    leave_in_order()
    stay()
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


@cli.command()
def demo(
    fast: Annotated[
        bool, typer.Option("--fast", help="A smaller world: a few seconds.")
    ] = False,
    json: AsJson = False,
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """A batch at work on this machine: a runner is killed in the middle, nothing is lost."""
    from retoma.cli.demo import run
    from retoma.cli.exits import stay

    stay()
    run(fast=fast, as_json=json, seed=seed)


@cli.command()
def up(
    seed: Annotated[int, typer.Option(help="Which world.")] = 1,
) -> None:
    """The world of the demo, kept running until Ctrl-C; the next `up` goes on from there."""
    from retoma.cli.exits import stay
    from retoma.cli.up import run

    stay()
    run(seed=seed)


# — jobs —


@jobs.command("list")
def jobs_list(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    before: Before = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Newest first, a page at a time."""
    from retoma.cli.jobs import list_

    list_(database, json, state=state, kind=kind, batch=batch, before=before, limit=limit)


@jobs.command("show")
def jobs_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Everything that is known of one job: its steps, its attempts, its timeline."""
    from retoma.cli.jobs import show

    show(database, json, id)


@jobs.command("explain")
def jobs_explain(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Why it is not running, in one sentence, and what would change it."""
    from retoma.cli.jobs import explain

    explain(database, json, id)


@jobs.command("retry")
def jobs_retry(
    id: Id,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run every step again; nothing is kept.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Try an ended job again with a fresh budget; committed steps are kept."""
    from retoma.cli.jobs import retry

    retry(database, json, id, fresh=fresh)


@jobs.command("cancel")
def jobs_cancel(id: Id, database: Database = None, json: AsJson = False) -> None:
    """End a job that has not ended; a running one ends at its next step."""
    from retoma.cli.jobs import cancel

    cancel(database, json, id)


# — batches —


@batches.command("list")
def batches_list(
    before: Before = None, limit: Limit = 50, database: Database = None, json: AsJson = False
) -> None:
    """Newest first, with how far each one is."""
    from retoma.cli.batches import list_

    list_(database, json, before=before, limit=limit)


@batches.command("show")
def batches_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """How many of its jobs are in each state."""
    from retoma.cli.batches import show

    show(database, json, id)


@batches.command("watch")
def batches_watch(id: Id, database: Database = None, json: AsJson = False) -> None:
    """A progress bar, until every job of it has ended."""
    from retoma.cli.batches import watch

    watch(database, json, id)


# — the schema —


@database.command("upgrade")
def db_upgrade(database: Database = None, json: AsJson = False) -> None:
    """Bring the schema to what this retoma needs. Safe at any time, by any number at once."""
    from retoma.cli.db import upgrade

    upgrade(database, json)


@database.command("status")
def db_status(database: Database = None, json: AsJson = False) -> None:
    """Which migrations are applied, and which are not yet. Changes nothing."""
    from retoma.cli.db import status

    status(database, json)


@database.command("downgrade")
def db_downgrade(
    to: Annotated[int, typer.Option(min=0, help="The last migration to keep; 0: none.")],
    yes: Annotated[bool, typer.Option("--yes", help="Yes, drop what is above it.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Undo migrations, newest first. What they hold is dropped: asks for --yes."""
    from retoma.cli.db import downgrade

    downgrade(database, json, to=to, yes=yes)


@database.command("sql")
def db_sql(
    dialect: Annotated[
        str | None, typer.Option(help="sqlite or postgres; else that of the database's URL.")
    ] = None,
    above: Annotated[int, typer.Option(min=0, help="Only migrations above this one.")] = 0,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Print what `upgrade` would run, for those who apply SQL by hand. Opens no database."""
    from retoma.cli.db import sql

    sql(database, json, dialect=dialect, above=above)
