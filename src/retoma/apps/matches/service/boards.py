"""What the grid of seasons and the board of one round show, each read in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retoma.apps.matches import store
from retoma.apps.matches.sites import known_league, league_name
from retoma.apps.matches.store.boards import Refused
from retoma.apps.matches.store.runs import Scrape
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.db import Transaction
from retoma.library import Retoma


@dataclass(frozen=True, slots=True)
class Season:
    """A season of a league, and the current scrape of each of its rounds."""

    league: str
    year: int
    rounds: Mapping[int, Scrape]

    @property
    def id(self) -> str:
        return f"{self.league}-{self.year}"

    @property
    def name(self) -> str:
        return league_name(self.league)

    @property
    def numbers(self) -> range:
        """Numbers of all rounds, also of those that nobody has scraped."""
        known = known_league(self.league)
        return range(1, (max(self.rounds, default=0) if known is None else known.rounds) + 1)

    @property
    def complete(self) -> int:
        return sum(each.complete for each in self.rounds.values())

    @property
    def stored(self) -> int:
        return sum(each.stored for each in self.rounds.values())

    @property
    def expected(self) -> int:
        return sum(each.expected or 0 for each in self.rounds.values())


@dataclass(frozen=True, slots=True)
class RoundBoard:
    """A scrape, each of its matches with its score, and the current scrapes of this round and its neighbours."""

    scrape: Scrape
    cells: Sequence[tuple[ScrapeTask, tuple[int, int] | None]]
    near: Mapping[int, int]


async def get_seasons(
    retoma: Retoma, *, league: str | None = None, season: int | None = None
) -> tuple[list[Season], list[Refused]]:
    """Seasons of which something was scraped, the newest first; and what pages are refused for."""

    def read(tx: Transaction) -> tuple[list[Season], list[Refused]]:
        found = store.boards.seasons(tx, league=league, season=season)
        seasons = [Season(*each, store.boards.rounds_of(tx, *each)) for each in found]
        return seasons, store.boards.refused(tx)

    return await (await retoma.database()).read(read)


async def get_round(retoma: Retoma, run: int) -> RoundBoard:
    """One scrape with all its matches; NotFound where there is none."""

    def read(tx: Transaction) -> RoundBoard:
        scrape = store.runs.job_seen(tx, run)
        cells = store.boards.cells_of(tx, run)
        return RoundBoard(scrape, cells, store.boards.runs_near(tx, scrape.of))

    return await (await retoma.database()).read(read)
