"""`retoma jobs …`"""

from typing import Annotated

import typer

from retoma.console.options import LARGEST, AsJson, Before, Database, Fresh, Id, Limit, group

jobs = group("Look at jobs, and steer them.")


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
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Try an ended job again with a fresh budget; committed steps are kept."""
    from retoma.cli.jobs import retry

    retry(database, json, id, fresh=fresh)


@jobs.command("cancel")
def jobs_cancel(id: Id, database: Database = None, json: AsJson = False) -> None:
    """End a job that has not ended; a running one ends at its next step."""
    from retoma.cli.jobs import cancel

    cancel(database, json, id)


@jobs.command("send-again")
def jobs_send_again(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Say that what a parked job had begun is gone, or never was: it is done anew."""
    from retoma.cli.jobs import send_again

    send_again(database, json, id)


@jobs.command("adopt")
def jobs_adopt(
    id: Id,
    found: Annotated[
        str, typer.Argument(metavar="JSON", help="The handle of its remote work, or a value.")
    ],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say what became of what a parked job had begun: it goes on with that."""
    from retoma.cli.jobs import adopt

    adopt(database, json, id, found)


@jobs.command("logs")
def jobs_logs(
    id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """The timeline of a job, a line for each event; with --follow and --json, JSON lines."""
    from retoma.cli.jobs import logs

    logs(database, json, id, follow=follow)


@jobs.command("counts")
def jobs_counts(
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """How many jobs of each kind are in each state."""
    from retoma.cli.overview import counts

    counts(database, json, batch=batch)


@jobs.command("funnel")
def jobs_funnel(
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """How many run, or are parked, at which checkpoint, and since when."""
    from retoma.cli.overview import funnel

    funnel(database, json, kind=kind)


@jobs.command("stuck")
def jobs_stuck(
    quiet: Annotated[str, typer.Option(help="Without progress for so long: 90s, 10m.")] = "10m",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What runs without progress, or on a runner whose lease is over."""
    from retoma.cli.overview import stuck

    stuck(database, json, quiet=quiet, limit=limit)


@jobs.command("pace")
def jobs_pace(
    last: Annotated[str, typer.Option(help="How far back: 15m, 6h.")] = "1h",
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What moved, minute by minute, and how long attempts took."""
    from retoma.cli.overview import pace

    pace(database, json, last=last, kind=kind)
