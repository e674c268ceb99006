"""`retoma embed` and `retoma search`."""

from pathlib import Path
from typing import Annotated

import typer

from retoma.cli.options import AsJson, Database

Metadata = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata", metavar="KEY=VALUE", help="Metadata of documents; may be repeated."
    ),
]
Collection = Annotated[str, typer.Option(metavar="NAME", help="The name of a collection.")]


def embed(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="PDF, DOCX, HTML and text files, at any depth."),
    ],
    collection: Collection,
    metadata: Metadata = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Watch until all are embedded.")
    ] = True,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Have the files of a folder embedded; here and now where no runner is at work."""
    from retoma.cli.embeddings import embed

    embed(database, json, folder, collection, wait=wait, metadata=metadata or ())


def search(
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    collection: Collection,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="`hybrid`: by meaning and words; `vector`: by meaning."
        ),
    ] = "hybrid",
    metadata: Metadata = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What is nearest to a question in a collection."""
    from retoma.cli.embeddings import search

    search(database, json, text, collection, limit=limit, mode=mode, metadata=metadata or ())
