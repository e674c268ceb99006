"""`retoma matches …`"""

from typing import Annotated

import typer

from retoma.cli.options import LARGEST, AsJson, Database, group

matches = group("Matches: rounds that are scraped, each match whole or named.")

League = Annotated[str, typer.Argument(metavar="LEAGUE", help="Such as brasileirao.")]
Season = Annotated[int, typer.Argument(metavar="SEASON", min=1, max=9_999)]
Round = Annotated[int, typer.Argument(metavar="ROUND", min=1, max=1_000)]
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
    from retoma.cli.matches import scrape

    scrape(database, json, league, season, round_, to_round)


@matches.command("status")
def status(run: SomeScrape = None, database: Database = None, json: AsJson = False) -> None:
    """How a scrape stands, and which matches are not stored and why."""
    from retoma.cli.matches import status

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
    from retoma.cli.matches import retry_failed

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
    from retoma.cli.matches import retry_missing

    retry_missing(database, json, league, season, round_)


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
    from retoma.cli.matches import replay

    replay(database, json, code, league=league, layouts=layouts, apply=apply)
