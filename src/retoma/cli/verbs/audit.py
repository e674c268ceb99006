"""`retoma audit …`"""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import LARGEST, AsJson, Database, group

audit = group("What is known of a job or a batch, signed.")

File = Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False)]


@audit.command("bundle")
def audit_bundle(
    file: File,
    job: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Of this job.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(metavar="ID", min=1, max=LARGEST, help="Of this batch and all its jobs."),
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Write all that is known of it into a file of lines that nobody can change unseen."""
    from retoma.cli.audit import write

    write(database, json, file, job=job, batch=batch)


@audit.command("verify")
def audit_verify(file: File, database: Database = None, json: AsJson = False) -> None:
    """Whether a bundle is what was signed, to the byte; needs the key and no database."""
    from retoma.cli.audit import verify

    verify(database, json, file)
