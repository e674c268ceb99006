"""`retoma batches …`"""

from typing import Annotated

import typer

from retoma.console.options import (
    LARGEST,
    AsJson,
    Before,
    Codes,
    Database,
    Fresh,
    Id,
    Limit,
    group,
)

batches = group("Look at batches, and steer all jobs of one at once.")


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
    from retoma.console.batch_progress import watch

    watch(database, json, id)


@batches.command("resume")
def batches_resume(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Its parked jobs go on where they stopped."""
    from retoma.cli.batches import resume

    resume(database, json, id)


@batches.command("retry-failed")
def batches_retry_failed(
    id: Id, code: Codes = None, database: Database = None, json: AsJson = False
) -> None:
    """Try its dead jobs again with a fresh budget; committed steps are kept."""
    from retoma.cli.batches import retry_failed

    retry_failed(database, json, id, code or [])


@batches.command("again")
def batches_again(
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Run every job of it that has ended once more, however it ended."""
    from retoma.cli.batches import again

    again(database, json, id, fresh=fresh)


@batches.command("skip")
def batches_skip(
    id: Id,
    why: Annotated[str, typer.Option(help="The reason; it stands in each timeline.")],
    job: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only this job.")
    ] = None,
    code: Codes = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """End one job of it, or those that failed with a code, without doing them."""
    from retoma.cli.batches import skip

    skip(database, json, id, why=why, job=job, codes=code or [])


@batches.command("pause")
def batches_pause(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Start no more of its jobs; what runs ends."""
    from retoma.cli.batches import pause

    pause(database, json, id)


@batches.command("unpause")
def batches_unpause(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Let it go on where it was paused."""
    from retoma.cli.batches import unpause

    unpause(database, json, id)


@batches.command("cancel")
def batches_cancel(id: Id, database: Database = None, json: AsJson = False) -> None:
    """End every job of it that has not ended; running ones end at their next step."""
    from retoma.cli.batches import cancel

    cancel(database, json, id)
