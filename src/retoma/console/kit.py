"""What every verb that asks or steers needs: the database it means, and a way to answer."""

import dataclasses
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from retoma.console.exits import Exit, Stop
from retoma.words import Said, say, tell

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from rich.console import Console
    from rich.table import Table

    from retoma.access import Access
    from retoma.db import Database
    from retoma.engine.rules.job import Job
    from retoma.library import Retoma

T = TypeVar("T")

ACTOR = "cli"
PIPE_WIDTH = 200  # columns where nobody looks: a line of a table stays a line


def url_of(database: str | None) -> str:
    """What --database or the environment names."""
    from retoma import settings

    return settings.read(database_url=database).database_url


def ask(
    database: str | None,
    verb: "Callable[[Retoma], Awaitable[T]]",
    *,
    interrupted: Said | None = None,
) -> T:
    """Run one verb on a database that is there. Ctrl-C ends it in order, a second one at once;
    `interrupted` says then what that leaves behind."""
    import asyncio

    from retoma import db, settings
    from retoma.bootstrap import build_retoma

    url = url_of(database)
    must_exist(url)

    async def asked() -> T:
        async with build_retoma(settings.read(database_url=url)) as app:
            await reachable(db.open(url))
            return await verb(app)

    try:
        return asyncio.run(asked())
    except KeyboardInterrupt:
        if interrupted is not None:
            print(f"\nretoma: {tell(interrupted)}", file=sys.stderr)
        raise


def ask_service(
    database: str | None,
    function: Callable[..., Awaitable[T]],
    typed: Mapping[str, Any],
    *,
    needs: Set[str],
    prepare: "Callable[[Retoma], None] | None" = None,
    interrupted: Said | None = None,
) -> T:
    """Call one function of a service with what was typed and with what it needs, by the names of its parameters."""
    from retoma import settings

    async def called(app: "Retoma") -> T:
        parse_secret: dict[str, Any] = {"app": app, "actor": ACTOR}
        if prepare is not None:
            prepare(app)
        if needs & {"chosen", "vault"}:
            parse_secret["chosen"] = settings.read(database_url=database)
        if "access" in needs:
            parse_secret["access"] = await access_of(app)
        if "vault" in needs:
            from retoma.bootstrap import build_vault

            parse_secret["vault"] = build_vault(
                parse_secret["chosen"], await app.database(), app.ids
            )
        return await function(**{name: parse_secret[name] for name in needs}, **typed)

    return ask(database, called, interrupted=interrupted)


async def access_of(app: "Retoma") -> "Access":
    """Who may come in, on the database of `app`."""
    from retoma.access import Access

    return Access(await app.database(), app.clock, app.ids)


def must_exist(url: str) -> None:
    """A question must not make a new, empty database where somebody mistyped a path."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and len(parts.path) > 1 and not Path(parts.path[1:]).exists():
        raise Stop(
            Exit.UNAVAILABLE,
            say(
                "there is no database {path}: name one with --database or RETOMA_DATABASE_URL, or"
                " make it with `retoma db upgrade`",
                path=parts.path[1:],
            ),
        )


async def reachable(database: "Database") -> None:
    """A person waits: say at once that a server is away, where a runner would be patient."""
    try:
        if database.dialect != "sqlite":
            await database.write(lambda _: None, verb="probe", patience=0)
    finally:
        database.close()


def shown(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    secret = f":{parts.password}@"
    return url.replace(secret, ":***@", 1)


# — answering —


def console() -> "Console":
    """Standard output for people; honours NO_COLOR and COLUMNS. Text is shown as it is."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def table(*headings: str) -> "Table":
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(headings))
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table of plain values: instants by our clock, nothing for None, text that steers no terminal."""
    page = table(*map(tell, headings))
    for row in rows:
        page.add_row(*map(cell, row))
    console().print(page)


def cell(value: Any) -> str:
    if isinstance(value, datetime) or value is None:
        return at(value)
    return clean(value)


def format_counts(counts: Mapping[Any, int]) -> str:
    """Return the number of jobs in each state, as a line."""
    return " · ".join(f"{n} {state}" for state, n in counts.items()) or tell(say("empty"))


def clean(text: object) -> str:
    """What came from outside must not steer the terminal it is shown on."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in str(text)
    )


def print_json(document: Any) -> None:
    print(json.dumps(document, ensure_ascii=False, indent=2, default=_plain))


def json_line(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, default=_plain)


def job_document(job: "Job") -> dict[str, Any]:
    """A job as JSON: its payload and result as values, not as text in text."""
    document = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
    document["payload"] = json.loads(job.payload)
    document["result"] = None if job.result is None else json.loads(job.result)
    document["suspect"] = job.suspect
    return document


def _plain(value: Any) -> Any:
    from retoma.engine.rules.job import Job

    if isinstance(value, Job):
        return job_document(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value)


def at(moment: datetime | None) -> str:
    """By the house's clock, as on the pages; `--json` has it by that of the world."""
    if moment is None:
        return ""
    zone = _zone(os.environ.get("RETOMA_TIMEZONE"))
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M:%S}"


@cache
def _zone(_told: str | None) -> "ZoneInfo":
    """Read once, and anew where another was told: a table asks for every line."""
    from zoneinfo import ZoneInfo

    from retoma import settings

    return ZoneInfo(settings.read().timezone)


def read_secret(text: str | None) -> str | None:
    """Return a secret as it is typed, or read it from env:NAME or file:/path."""
    from retoma.vault.ref import SecretRef, parse_secret

    if text is None:
        return None
    found = parse_secret(text)
    return (found.read() if isinstance(found, SecretRef) else found).reveal()
