"""`retoma dead …`"""

from typing import Annotated

import typer

from retoma.console.options import LARGEST, AsJson, Before, Database, Fresh, Id, Limit, group

dead = group("Dead letters: jobs that ended in failure.")


@dead.command("list")
def dead_list(
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="Only those with this code.")] = None,
    before: Before = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Dead letters that nobody has discarded, newest first."""
    from retoma.cli.dead import list_

    list_(database, json, kind=kind, batch=batch, code=code, before=before, limit=limit)


@dead.command("show")
def dead_show(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Why it is dead: the error, its stack, what to do."""
    from retoma.cli.dead import show

    show(database, json, id)


@dead.command("retry")
def dead_retry(
    id: Id, fresh: Fresh = False, database: Database = None, json: AsJson = False
) -> None:
    """Try a dead job again with a fresh budget; committed steps are kept."""
    from retoma.cli.dead import retry

    retry(database, json, id, fresh=fresh)


@dead.command("discard")
def dead_discard(
    id: Id,
    why: Annotated[str | None, typer.Option(help="A reason, for the timeline.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Put a dead letter away: off this list, its history kept."""
    from retoma.cli.dead import discard

    discard(database, json, id, why=why)
