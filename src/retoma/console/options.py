"""What many verbs take, said once."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

LARGEST = 2**63 - 1  # ids are 64 bits in both databases

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
OfBatch = Annotated[
    int | None, typer.Option(metavar="ID", min=1, max=LARGEST, help="Only of this batch.")
]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Why = Annotated[str, typer.Option(help="The reason; it is shown and kept.")]
Thing = Annotated[str, typer.Argument(metavar="THING")]
Things = Annotated[list[str], typer.Argument(metavar="THING…")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run every step again; nothing is kept.")]
Codes = Annotated[
    list[str] | None,
    typer.Option(metavar="CODE", help="Only those with this code; may be given several times."),
]
Budget = Annotated[
    str | None, typer.Option(metavar="MONEY", help="Such as '25 USD': it stops there.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Watch it until it has ended.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="How many at most.")]
Who = Annotated[str, typer.Argument(metavar="PERSON")]
Key = Annotated[str, typer.Argument(metavar="KEY")]
Role = Annotated[str, typer.Option(help="viewer, operator or admin.")]
Host = Annotated[str, typer.Option(help="Where to listen.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")]
WithParent = Annotated[bool, typer.Option("--leave-with-parent", hidden=True)]

# By the name of a service's parameter: what must be typed, and what may be.
ARGUMENTS: Mapping[str, Any] = {
    **dict.fromkeys(("job", "batch", "alert"), Id),
    **dict.fromkeys(("name", "pool", "schedule", "breaker"), Name),
    "person": Who,
    "key": Key,
    "thing": Thing,
    "things": Things,
    "why": Why,
}
OPTIONS: Mapping[str, Any] = {
    "before": Before,
    "limit": Limit,
    "fresh": Fresh,
    "codes": Codes,
    "role": Role,
    "batch": OfBatch,
}


def group(about: str) -> typer.Typer:
    """Verbs below a word, such as `retoma jobs …`."""
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
