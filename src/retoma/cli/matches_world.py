"""The rounds of the demo: a match site in a box, runners of their own, one of which dies, and a layout that changes.

What each match should come to is known from its making, and held against what is stored. After the layout has
changed the rest is read again from the pages that were kept; the site's own log says that nobody asked for them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from retoma import settings
from retoma.apps.matches import APP, store
from retoma.apps.matches.model import MATCH
from retoma.apps.matches.replay import Replay
from retoma.apps.matches.store.runs import Round
from retoma.bootstrap import build_tools
from retoma.cli.board import Board
from retoma.cli.boxed_world import KILL_AT, LOOK, Boxed, Left, lines_of
from retoma.cli.sandbox import HERE
from retoma.cli.world import World
from retoma.db import Transaction, verbatim
from retoma.engine.batch import Batch
from retoma.engine.ports import Clock
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.outbound import Outbound, Policy
from retoma.sandbox.matches import Match, Season

WHO: Final = "demo"
LEAGUE: Final = "brasileirao"
YEAR: Final = 2026
BOTH: Final = "modern,classic"
LAYOUT_CHANGED: Final = "LAYOUT_CHANGED"
EVERY: Final = 1_000
RUNS: Final = verbatim("SELECT count(*) FROM match_runs")
STANDS: Final = verbatim(
    "SELECT count(*) FILTER (WHERE expected IS NULL), sum(stored), sum(open) FROM scrape_jobs"
)


@dataclass(frozen=True, slots=True)
class MatchesSize:
    """How many rounds there are, and how slow their site is: 1 is as slow as a real one."""

    rounds: int
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchesAccount:
    """What became of the rounds; `problems` is what should not have."""

    matches: int
    scraped: int
    replayed: int
    asked_again: int  # of the site, for those
    taken_over: int
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Stands:
    """How the rounds stand."""

    undiscovered: int
    stored: int
    open: int


class MatchesWorld(Boxed[MatchesAccount]):
    """Around one house, in one folder of it."""

    name = "matches"
    kind = MATCH
    paid_steps = ()
    slots = 6

    def __init__(self, place: World, size: MatchesSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self._words = (*self._words, "--unfinished", "0")
        self.size = size
        self._season = Season(seed, unfinished=0.0)

    @property
    def log_file(self) -> Path:
        return self._folder / "site.jsonl"

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"RETOMA_MATCHES_URL": self.origin}

    async def begin(self, app: Retoma) -> Batch:
        """One more round, once its matches are found."""
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(RUNS)))[0]
        run = await self._start(app, before)
        while (batch := (await self._seen(app, run))["batch"]) is None:
            await Clock().sleep(LOOK)
        return await app.batch(batch)

    async def _start(self, app: Retoma, place: int) -> int:
        of = Round(LEAGUE, YEAR, place % self._season.leagues[LEAGUE].rounds + 1)
        run, _ = await app.write(lambda tx: store.runs.start(tx, of, actor=WHO))
        return run

    async def _seen(self, app: Retoma, run: int) -> dict[str, Any]:
        return await (await app.database()).read(lambda tx: store.runs.job_seen(tx, run))

    def told(self) -> str:
        rounds = "a round" if self.size.rounds == 1 else f"{self.size.rounds} rounds"
        return f"{rounds} of ten matches, and a site"

    async def show(self, app: Retoma, board: Board) -> MatchesAccount:
        """All rounds at once; when a third is stored a runner is killed, and the site is drawn anew."""
        await self.start()
        victim = await self.start_runner(f"{self.name} 1")
        began = board.clock.now()
        for place in range(self.size.rounds):
            await self._start(app, place)
        board.say(f"{self.name}: {self.told()}")
        third = KILL_AT * len(self._truth())
        await self._until(app, board, lambda now: not now.undiscovered and now.stored >= third)
        left = await self.killed(app, victim)
        await self._draw("modern")
        board.say(
            f"{victim.name} killed with kill -9, {left.held} matches in its hands;"
            " the site has another layout"
        )
        await self.start_runner(f"{self.name} 2")
        stood = await self._until(app, board, lambda now: not now.open)
        account = await self._replayed(app, stood, left)
        took = round(board.clock.now() - began, 1)
        board.say(f"{account.matches} matches are stored, in {took:.1f} s: {in_words(account)}")
        return replace(account, seconds=took)

    async def _until(
        self, app: Retoma, board: Board, holds: Callable[[Stands], bool]
    ) -> Stands:
        database = await app.database()
        while not holds(now := await database.read(_stands)):
            await board.clock.sleep(LOOK)
        return now

    async def _draw(self, layout: str) -> None:
        async with Outbound(private=frozenset({HERE})) as out:
            policy = Policy.toward("the site in a box", self.origin)
            await out.post(policy, f"{self.origin}/_sandbox/world", json={"layout": layout})

    async def _replayed(self, app: Retoma, stood: Stands, left: Left) -> MatchesAccount:
        """What the old parsers could not read, by the new ones; nobody asks the site for it."""
        asked = len(lines_of(self.log_file))
        await app.knobs.set("matches.layouts", BOTH, actor=WHO)
        pages = await Replay(app, self.origin).of_code(LAYOUT_CHANGED, apply=True, actor=WHO)
        again = len(lines_of(self.log_file)) - asked
        return MatchesAccount(
            matches=len(self._truth()),
            scraped=stood.stored,
            replayed=sum(each.promoted for each in pages),
            asked_again=again,
            taken_over=left.held,
            problems=await self._problems(app, again),
        )

    def _truth(self) -> list[Match]:
        rounds = range(1, self.size.rounds + 1)
        return [match for number in rounds for match in self._season.round(LEAGUE, number)]

    async def _problems(self, app: Retoma, again: int) -> list[str]:
        """Every match is stored as it was played."""

        def read(tx: Transaction) -> list[dict[str, Any]]:
            listed = store.games.list_matches(tx, after=0, n=EVERY)
            return [store.games.match_seen(tx, each["id"]) for each in listed]

        found = await (await app.database()).read(read)
        stored = {f"{each['home']}-x-{each['away']}": each for each in found}
        wrong = [
            f"{match.key} is not stored as it was played"
            for match in self._truth()
            if not _same(match.plain(), stored.get(match.key, {}))
        ]
        return [*wrong, *([f"{again} pages were asked for again"] if again else [])]


def _stands(tx: Transaction) -> Stands:
    [row] = tx.for_caller(STANDS)[0]
    return Stands(*(int(each or 0) for each in row))


def _same(played: dict[str, Any], stored: dict[str, Any]) -> bool:
    score = {"home": stored.get("home_score"), "away": stored.get("away_score")}
    return score == played["score"] and all(
        stored[name] == played[name] for name in ("events", "statistics", "lineups")
    )


def in_words(account: MatchesAccount) -> str:
    return f"{account.scraped} as they came, {account.replayed} from the pages that were kept"


def install(app: Retoma) -> Sequence[Application]:
    """Matches, in a house of the demo."""
    app.install(APP, build_tools(app, settings.read()))
    return [APP]


def rows_of(account: MatchesAccount) -> Sequence[tuple[str, int, str]]:
    """For the table at the end of a demo."""
    return [
        ("matches", account.matches, f"stored whole: {in_words(account)}"),
        (
            "read again",
            account.replayed,
            f"after the layout had changed; {account.asked_again} requests for them, by the site's own log",
        ),
    ]
