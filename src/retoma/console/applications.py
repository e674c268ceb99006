"""What verbs of the applications share: a database that has one in it, an answer as a page, how far it is."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from retoma import settings
from retoma.bootstrap import build_tools
from retoma.console.kit import ask, at, clean, console, print_json, table
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.toolkit.tools import Tools
from retoma.words import Said, speak

T = TypeVar("T")


def ask_in(
    application: Application,
    database: str | None,
    verb: Callable[[Tools], Awaitable[T]],
    *,
    interrupted: Said | None = None,
) -> T:
    """One verb on a database that has this application in it."""
    chosen = settings.read(database_url=database)

    async def asked(app: Retoma) -> T:
        tools = build_tools(app, chosen)
        app.install(application, tools)
        try:
            return await verb(tools)
        finally:
            await tools.close()

    return ask(database, asked, interrupted=interrupted)


def print_page(told: Mapping[str, Any], as_json: bool) -> None:
    """One thing, a line for each of its names."""
    if as_json:
        print_json(told)
        return
    page = table()
    for name, value in told.items():
        page.add_row(name, shown_cell(value))
    console().print(page)


def shown_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return speak("yes") if value else speak("no")
        case dict():
            return clean(", ".join(f"{name} {each}" for name, each in value.items() if each))
        case list():
            return clean(", ".join(str(each) for each in value))
        case _ if hasattr(value, "tzinfo"):
            return at(value)
        case _:
            return clean(value)


@contextmanager
def bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """How many have come, and of how many, where somebody looks."""
    out = console()
    columns = (
        TextColumn(title, markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal) as shown:
        task = shown.add_task("", total=None)
        yield lambda came, of: shown.update(task, completed=came, total=of)
