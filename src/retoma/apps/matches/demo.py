"""The rounds: a match site in a box, and a layout that changes half way.

What each match should come to is known from its making, and held against what is stored. After the layout has
changed the rest is read again from the pages that were kept; the site's own log says that nobody asked for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from retoma.apps.matches import APP, service
from retoma.apps.matches.model import MATCH
from retoma.apps.matches.sandbox import Match, Season
from retoma.apps.matches.service.replays import Replay
from retoma.apps.matches.store.games import WholeMatch
from retoma.apps.matches.store.rows import Round
from retoma.db import Transaction, verbatim
from retoma.demo.account import Witness
from retoma.demo.board import Bar, Board
from retoma.demo.boxed_world import LOOK, WHO, BoxedWorld, Counts, lines_of
from retoma.demo.world import World
from retoma.library import Retoma
from retoma.words import Said, say

LEAGUE: Final = "brasileirao"
YEAR: Final = 2026
A_ROUND: Final = 10  # matches
BOTH: Final = "modern,classic"
LAYOUT_CHANGED: Final = "LAYOUT_CHANGED"
AS_PLAYED: Final = "as it was played"
PATIENCE: Final = "15s"
RUNS: Final = verbatim("SELECT count(*) FROM match_runs")
STANDS: Final = verbatim(
    "SELECT count(*) FILTER (WHERE expected IS NULL), sum(stored) FROM scrape_jobs"
)


@dataclass(frozen=True, slots=True)
class MatchesSize:
    """How many rounds there are, and how slow their site is: 1 is as slow as a real one."""

    rounds: int
    pace: float


class MatchesWorld(BoxedWorld):
    """Around one house, in one folder of it."""

    application = APP
    kind = MATCH

    def __init__(self, place: World, size: MatchesSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._season = Season(seed, unfinished=0.0)
        self._asked_again = 0

    def _words(self) -> tuple[str, ...]:
        return (*super()._words(), "--unfinished", "0")

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"RETOMA_MATCHES_URL": self.origin}

    async def begin(self, app: Retoma) -> None:
        # Nobody who looks on waits minutes for an outage to pass.
        await app.knobs.set("matches.patience", PATIENCE, actor=WHO)
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(RUNS)))[0]
        for place in range(before, before + self.size.rounds):
            of = Round(LEAGUE, YEAR, place % self._season.leagues[LEAGUE].rounds + 1)
            await app.write(partial(service.scrapes.start_rounds, rounds=[of], actor=WHO))
        self.begun += self.size.rounds * A_ROUND

    def told(self) -> Said:
        n = self.size.rounds * A_ROUND
        return say("matches: {n} of them, in rounds of ten, and a site", n=n)

    def stands(self, tx: Transaction, counts: Counts) -> Bar:
        """A round whose matches are not known yet is open."""
        undiscovered, _ = _stands(tx)
        return Bar(self.begun, counts.get(self.kind, {}), undiscovered)

    async def misfortune(self, app: Retoma, board: Board) -> None:
        """When a third is stored, the site is drawn anew."""
        database = await app.database()
        while True:
            undiscovered, stored = await database.read(_stands)
            if not undiscovered and 3 * stored >= self.begun:
                break
            await board.clock.sleep(LOOK)
        await self._post("/_sandbox/world", {"layout": "modern"})
        board.tell(say("matches: the site has another layout"))

    async def mend(self, app: Retoma, board: Board) -> None:
        """What the old parsers could not read, by the new ones; nobody asks the site for it."""
        asked = len(lines_of(self.log_file))
        await app.knobs.set("matches.layouts", BOTH, actor=WHO)
        pages = await Replay(app, self.origin).of_code(LAYOUT_CHANGED, apply=True, actor=WHO)
        self._asked_again = len(lines_of(self.log_file)) - asked
        n = sum(each.promoted for each in pages)
        board.tell(
            say("matches: {n} read by the new parsers, from the pages that were kept", n=n)
        )

    async def witness(self, app: Retoma, recovered: int) -> Witness:  # noqa: ARG002 — nothing is paid
        pages = [page async for page in service.games.list_all_matches(app)]
        stored = [
            await service.games.get_match(app, each.id) for page in pages for each in page
        ]
        truth = {match.key: match for match in self._truth()}
        again = self._asked_again
        return Witness(
            wanted=dict.fromkeys(truth, AS_PLAYED),
            found=[(each.key, _ended(truth.get(each.key), each)) for each in stored],
            also=[f"{again} kept pages were asked for again"] if again else [],
        )

    def _truth(self) -> list[Match]:
        rounds = range(1, self.size.rounds + 1)
        return [match for number in rounds for match in self._season.round(LEAGUE, number)]


def _stands(tx: Transaction) -> tuple[int, int]:
    """How many rounds are not discovered, how many matches are stored."""
    [(undiscovered, stored)] = tx.for_caller(STANDS)[0]
    return int(undiscovered or 0), int(stored or 0)


def _ended(match: Match | None, stored: WholeMatch) -> str:
    if match is None:
        return "of no round of ours"
    played = match.plain()
    score = {"home": stored.home_score, "away": stored.away_score}
    same = score == played["score"] and all(
        getattr(stored, name) == played[name] for name in ("events", "statistics", "lineups")
    )
    return AS_PLAYED if same else "otherwise than it was played"
