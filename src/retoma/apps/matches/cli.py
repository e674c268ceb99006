"""`retoma matches …`"""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import LARGEST, AsJson, Database, group

matches = group("Matches: rounds that are scraped, each match whole or named.")

League = Annotated[str, typer.Argument(metavar="LEAGUE", help="Such as brasileirao.")]
Season = Annotated[int, typer.Argument(metavar="SEASON", min=1, max=9_999)]
Round = Annotated[int, typer.Argument(metavar="ROUND", min=1, max=1_000)]
SomeMatch = Annotated[int, typer.Argument(metavar="MATCH", min=1, max=LARGEST)]
SomeTask = Annotated[int, typer.Argument(metavar="TASK", min=1, max=LARGEST)]
Why = Annotated[str, typer.Option("--why", help="The reason: it is kept in the audit.")]
SomeScrape = Annotated[
    int | None,
    typer.Argument(metavar="SCRAPE", min=1, max=LARGEST, help="None: the newest ones."),
]


@matches.command("scrape")
def scrape(
    league: League,
    season: Season,
    round_: Round,
    to_round: Annotated[
        int | None,
        typer.Option(metavar="ROUND", min=1, max=1_000, help="The last of a range of them."),
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Scrape a round, or a range of them; one that is open already is not begun twice."""
    from retoma.apps.matches.commands import scrape

    scrape(database, json, league, season, round_, to_round)


@matches.command("status")
def status(run: SomeScrape = None, database: Database = None, json: AsJson = False) -> None:
    """How a scrape stands, and which matches are not stored and why."""
    from retoma.apps.matches.commands import status

    status(database, json, run)


@matches.command("retry-failed")
def retry_failed(
    scrape: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Only of this scrape.")
    ] = None,
    league: Annotated[str | None, typer.Option(help="Only of this league.")] = None,
    season: Annotated[
        int | None, typer.Option(min=1, max=9_999, help="Only of this season.")
    ] = None,
    round_: Annotated[
        int | None, typer.Option("--round", min=1, max=1_000, help="Only of this round.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Try again what failed, and nothing else; asked twice it is one."""
    from retoma.apps.matches.commands import retry_failed

    retry_failed(database, json, scrape, league=league, season=season, round_=round_)


@matches.command("retry-missing")
def retry_missing(
    league: League,
    season: Season,
    round_: Round,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Try again what is not stored of a round, and look at its page once more."""
    from retoma.apps.matches.commands import retry_missing

    retry_missing(database, json, league, season, round_)


@matches.command("show")
def show(match: SomeMatch, database: Database = None) -> None:
    """Print a stored match as JSON, to be put right in a file."""
    from retoma.apps.matches.commands import show

    show(database, match)


@matches.command("correct")
def correct(
    match: SomeMatch,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The whole match as JSON, as show prints it.")
    ],
    why: Why,
    revision: Annotated[
        int | None, typer.Option(min=1, help="Refuse it where somebody has changed it since.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Put a stored match right, by the same rules as a page; what it was is in the audit."""
    from retoma.apps.matches.commands import correct

    correct(database, json, match, file, why, revision)


@matches.command("delete")
def delete(match: SomeMatch, why: Why, database: Database = None, json: AsJson = False) -> None:
    """Delete a stored match: its round is not complete until it is stored again."""
    from retoma.apps.matches.commands import delete

    delete(database, json, match, why)


@matches.command("refresh")
def refresh(
    match: SomeMatch, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Ask the site for a stored match again; it stays as it is until its page was read."""
    from retoma.apps.matches.commands import refresh

    refresh(database, json, match, why)


@matches.command("hurry")
def hurry(
    task: Annotated[
        int | None, typer.Argument(metavar="TASK", min=1, max=LARGEST, help="Only this one.")
    ] = None,
    scrape: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="All that waits of this scrape.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Look now at what waits for a time: a match that is not over, or a next attempt."""
    from retoma.apps.matches.commands import hurry

    hurry(database, json, task, scrape)


@matches.command("drop")
def drop(task: SomeTask, why: Why, database: Database = None, json: AsJson = False) -> None:
    """Drop a match that never was: its round expects it no longer."""
    from retoma.apps.matches.commands import drop

    drop(database, json, task, why)


@matches.command("restore")
def restore(task: SomeTask, database: Database = None, json: AsJson = False) -> None:
    """Look again for a match that was dropped."""
    from retoma.apps.matches.commands import restore

    restore(database, json, task)


@matches.command("confirm")
def confirm(
    league: League,
    season: Season,
    round_: Round,
    matches: Annotated[int, typer.Option(min=1, max=50, help="How many the round has.")],
    why: Why,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Confirm how many matches a round has, where its league says another number."""
    from retoma.apps.matches.commands import confirm

    confirm(database, json, league, season, round_, matches=matches, why=why)


@matches.command("replay")
def replay(
    code: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Such as LAYOUT_CHANGED; else whatever was refused."),
    ] = None,
    league: Annotated[str | None, typer.Option(help="Only of this league.")] = None,
    layouts: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="By these parsers; else by the setting's."),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; else it is a dry run.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Read pages that were refused again, as they were kept; no request is made."""
    from retoma.apps.matches.commands import replay

    replay(database, json, code, league=league, layouts=layouts, apply=apply)
