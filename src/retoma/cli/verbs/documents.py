"""`retoma documents …`"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from retoma.cli.options import LARGEST, AsJson, Budget, Database, Wait, group

documents = group("Documents: each gets a label out of a closed set, in executions.")


class OcrRule(StrEnum):
    """As projects know it: `--help` imports no application."""

    NEVER = "nunca"
    WITHOUT_TEXT = "sem_texto"
    ALWAYS = "sempre"


Execution = Annotated[int, typer.Argument(metavar="EXECUTION", min=1, max=LARGEST)]
Document = Annotated[str, typer.Argument(metavar="DOCUMENT", help="The code of a document.")]
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
    ocr: Annotated[
        OcrRule, typer.Option(help="When a page of a PDF is read from its picture.")
    ] = OcrRule.NEVER,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Add a project: a closed set of labels, and when each of them is right."""
    from retoma.apps.readers.rules import Ocr
    from retoma.cli.documents import add_project

    retries = {"document_retries": document_retries, "execution_retries": execution_retries}
    add_project(database, json, name, label, ocr=Ocr(ocr), **retries)


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
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--except", metavar="DOCUMENT", help="Code of one that is left out; several times."
        ),
    ] = None,
    budget: Budget = None,
    wait: Wait = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Hand in documents as an execution, all of them or none."""
    from retoma.cli.documents import classify

    more = {"name": name, "budget": budget}
    left = frozenset(without or ())
    classify(
        database,
        json,
        paths,
        project=project,
        manifest=manifest,
        without=left,
        wait=wait,
        **more,
    )


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
def reprocess(
    execution: Execution,
    error: Annotated[
        str | None, typer.Option(metavar="CODE", help="Only what failed by this code.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Try again what failed, and nothing else."""
    from retoma.cli.documents import reprocess

    reprocess(database, json, execution, error=error)


@documents.command("retry")
def retry(
    execution: Execution, document: Document, database: Database = None, json: AsJson = False
) -> None:
    """Try one document again that failed, or that waits for a person."""
    from retoma.cli.documents import retry

    retry(database, json, execution, document)


@documents.command("skip")
def skip(
    execution: Execution,
    why: Annotated[str, typer.Option(help="It is shown and kept.")],
    document: Annotated[
        str | None, typer.Option(metavar="DOCUMENT", help="The code of one document.")
    ] = None,
    error: Annotated[
        str | None, typer.Option(metavar="CODE", help="All that failed by this code.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Leave out one document, or all that failed by a code."""
    from retoma.cli.documents import skip

    skip(database, json, execution, why=why, document=document, error=error)


@documents.command("review")
def review(
    execution: Execution,
    document: Document,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What the label is.")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Confirm or correct the label of one document."""
    from retoma.cli.documents import review

    review(database, json, execution, document, label)


@documents.command("reviews")
def reviews(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The name of a project.")],
    csv: Annotated[
        bool,
        typer.Option("--csv", help="A table without texts, in which nothing is a formula."),
    ] = False,
    database: Database = None,
) -> None:
    """Print what people reviewed as a labelled set: a line of JSON for each document, with its text."""
    from retoma.cli.documents import reviews

    reviews(database, project, as_csv=csv)


@documents.command("accuracy")
def accuracy(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The name of a project.")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Print how often each label of the model was right, where a person looked."""
    from retoma.cli.documents import accuracy

    accuracy(database, json, project)


@documents.command("original")
def original(
    execution: Execution,
    document: Document,
    to: Annotated[
        Path, typer.Option(metavar="FILE", help="Where it is written; not over a file.")
    ],
    database: Database = None,
) -> None:
    """Write the file of a document as it came in."""
    from retoma.cli.documents import original

    original(database, execution, document, to)


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
