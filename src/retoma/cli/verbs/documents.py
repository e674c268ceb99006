"""`retoma documents …`"""

from pathlib import Path
from typing import Annotated

import typer

from retoma.cli.options import LARGEST, AsJson, Budget, Database, Wait, group

documents = group("Documents: each gets a label out of a closed set, in executions.")

Execution = Annotated[int, typer.Argument(metavar="EXECUTION", min=1, max=LARGEST)]
SomeExecution = Annotated[
    int | None,
    typer.Argument(metavar="EXECUTION", min=1, max=LARGEST, help="None: the newest ones."),
]


@documents.command("project")
def project(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    label: Annotated[
        list[str],
        typer.Option(metavar="'NAME: WHEN'", help="One of the closed set; several times."),
    ],
    document_retries: Annotated[
        int, typer.Option(min=0, max=10, help="How often a document is tried again.")
    ] = 2,
    execution_retries: Annotated[
        int, typer.Option(min=0, max=10, help="How often a stuck execution is resumed.")
    ] = 3,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Add a project: a closed set of labels, and when each of them is right."""
    from retoma.cli.documents import add_project

    retries = {"document_retries": document_retries, "execution_retries": execution_retries}
    add_project(database, json, name, label, **retries)


@documents.command("projects")
def projects(database: Database = None, json: AsJson = False) -> None:
    """Every project, and its labels."""
    from retoma.cli.documents import list_projects

    list_projects(database, json)


@documents.command("classify")
def classify(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="Files, folders, .zip archives.")
    ],
    project: Annotated[str, typer.Option(metavar="NAME", help="By whose labels.")],
    manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="codigo,arquivo; else manifesto.csv, if there."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the execution is called.")] = None,
    budget: Budget = None,
    wait: Wait = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Hand in documents as an execution, all of them or none."""
    from retoma.cli.documents import classify

    more = {"name": name, "budget": budget}
    classify(database, json, paths, project=project, manifest=manifest, wait=wait, **more)


@documents.command("status")
def status(
    execution: SomeExecution = None, database: Database = None, json: AsJson = False
) -> None:
    """How far an execution is, when it last moved and what holds it back."""
    from retoma.cli.documents import status

    status(database, json, execution)


@documents.command("errors")
def errors(execution: Execution, database: Database = None, json: AsJson = False) -> None:
    """Documents that failed: by what, how often, when."""
    from retoma.cli.documents import errors

    errors(database, json, execution)


@documents.command("resume")
def resume(
    execution: Execution,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also where it was resumed too often.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Go on where it stopped."""
    from retoma.cli.documents import resume

    resume(database, json, execution, anyway=anyway)


@documents.command("reprocess")
def reprocess(execution: Execution, database: Database = None, json: AsJson = False) -> None:
    """Try again what failed, and nothing else."""
    from retoma.cli.documents import reprocess

    reprocess(database, json, execution)


@documents.command("cancel")
def cancel(execution: Execution, database: Database = None, json: AsJson = False) -> None:
    """End what has not ended; what runs ends at its next step."""
    from retoma.cli.documents import cancel

    cancel(database, json, execution)


@documents.command("results")
def results(
    execution: Execution,
    csv: Annotated[
        bool, typer.Option("--csv", help="A table in which nothing is a formula.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What came of its documents, in the order in which they were handed in."""
    from retoma.cli.documents import results

    results(database, json, execution, as_csv=csv)
