"""What pages ask besides: seasons with all their rounds, a round with all its matches, what was refused."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from retoma.apps.matches.store.rows import SQL, Round
from retoma.apps.matches.store.runs import Scrape
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.db import Transaction

MOST_SEASONS: Final = 12
MOST_CELLS: Final = 500  # of a round: what was put off is played with others
MOST_FIELDS: Final = 100


@dataclass(frozen=True, slots=True)
class Refused:
    """Pages of a league that were refused for the same field, and wait for a person."""

    league: str
    code: str
    field: str
    pages: int


class _Cell(NamedTuple):
    task: ScrapeTask
    home: int | None
    away: int


def seasons(
    tx: Transaction, *, league: str | None = None, season: int | None = None
) -> list[tuple[str, int]]:
    rows = tx.all(SQL.list_seasons, league=league, season=season, n=MOST_SEASONS)
    return [(str(of), int(year)) for of, year in rows]


def rounds_of(tx: Transaction, league: str, season: int) -> dict[int, Scrape]:
    """How each round of a season stands, by its number; those that nobody has scraped are not there."""
    found = tx.all(SQL.season_jobs, into=Scrape, league=league, season=season)
    return {each.round: each for each in found}


def runs_near(tx: Transaction, of: Round) -> dict[int, int]:
    """The current runs of a round and its neighbours, by their numbers."""
    return {int(number): int(run) for number, run in tx.all(SQL.near_runs, **of.parameters())}


def cells_of(tx: Transaction, run: int) -> list[tuple[ScrapeTask, tuple[int, int] | None]]:
    """Its tasks, each with the score of its match, once that is stored."""
    return [
        (task, None if home is None else (home, away))
        for task, home, away in tx.all(SQL.list_cells, into=_Cell, run=run, n=MOST_CELLS)
    ]


def refused(tx: Transaction) -> list[Refused]:
    rows = tx.all(SQL.refused_fields, n=MOST_FIELDS)
    return [Refused(league, code, field, int(pages)) for league, code, field, pages, _ in rows]
