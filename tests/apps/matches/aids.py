"""A house with the matches application in it, and the site in a box on loopback."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from retoma import Retoma
from retoma.apps.matches import APP, store
from retoma.apps.matches.sandbox import Match, Matches, Season, build_site
from retoma.apps.matches.service.replays import Replay, Reread
from retoma.apps.matches.store.rows import Round
from retoma.db import Call, adhoc
from retoma.engine.ports import Clock
from retoma.outbound import Outbound
from retoma.sandbox.faults import Fault, FaultKind
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools
from tests.apps.quotes.aids import serving

WHO = "ana"
LEAGUE = "brasileirao"
# R1: what is never there, not even for a moment. Who did not score may have no events at all.
PARTIAL = """SELECT p.id FROM partidas p
WHERE p.walkover = 0 AND (
    p.home_score + p.away_score > 0
    AND NOT EXISTS (SELECT 1 FROM partida_eventos e WHERE e.partida = p.id)
    OR NOT EXISTS (SELECT 1 FROM partida_estatisticas s WHERE s.partida = p.id))"""


@dataclass(frozen=True, slots=True)
class House:
    """One house and its site."""

    app: Retoma
    site: Matches
    settings: Settings

    def of(self, number: int = 1, league: str = LEAGUE) -> Round:
        return Round(league, 2026, number)

    def truth(self, number: int = 1, league: str = LEAGUE) -> tuple[Match, ...]:
        return self.site.world.season.round(league, number)

    async def start(self, number: int = 1, league: str = LEAGUE) -> tuple[int, bool]:
        of = self.of(number, league)
        return await self.app.write(lambda tx: store.runs.start(tx, of, actor=WHO))

    async def scraped(self, number: int = 1) -> int:
        run, _ = await self.start(number)
        await self.drained()
        return run

    async def drained(self) -> None:
        await drain(self.app, within=60.0)

    async def seen(self, run: int) -> dict[str, Any]:
        database = await self.app.database()
        return asdict(await database.read(lambda tx: store.runs.job_seen(tx, run)))

    async def tasks(self, run: int) -> dict[str, dict[str, Any]]:
        database = await self.app.database()
        found = await database.read(
            lambda tx: store.tasks.list_tasks(tx, run, after=0, n=1_000)
        )
        return {each.match_key: asdict(each) for each in found}

    async def statuses(self, run: int) -> Counter[str]:
        return Counter(each["status"] for each in (await self.tasks(run)).values())

    async def matches(self) -> dict[str, dict[str, Any]]:
        """All that is stored, by who played whom."""
        database = await self.app.database()

        def read(tx: Any) -> list[dict[str, Any]]:
            listed = store.games.list_matches(tx, after=0, n=1_000)
            return [asdict(store.games.match_seen(tx, each.id)) for each in listed]

        told = await database.read(read)
        return {f"{each['home']}-x-{each['away']}": each for each in told}

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        database = await self.app.database()
        return await database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def replayed(self, code: str | None = None, **how: Any) -> list[Reread]:
        replay = Replay(self.app, self.settings.matches_url)
        return await replay.of_code(code, actor=WHO, **how)

    def ill(self, path: str, status: int = 503, times: int | None = None) -> None:
        """The site answers so below this path."""
        fault = Fault(trouble=FaultKind.STATUS, status=status, path=path, times=times)
        self.site.box._faults.arm(fault)

    def asked(self) -> Counter[str]:
        """How often which page was asked for."""
        return Counter(each["input"] for each in self.site.log())


class Watched:
    """A transaction of which each statement is told before and after, those that go out together too."""

    def __init__(self, tx: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._tx = tx
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._tx, name)

        def told(*args: Any, **how: Any) -> Any:
            self._before()
            answer = verb(*args, **how)
            self._after()
            return answer

        return told

    def together(self, calls: Iterable[Call]) -> list[Any]:
        return [self.__getattr__("together")([each])[0] for each in calls]


def stored_as(match: Match, told: dict[str, Any]) -> None:
    """What is stored is the truth, whole."""
    plain = match.plain()
    assert plain["events"] == told["events"]
    assert plain["statistics"] == told["statistics"]
    assert plain["lineups"] == told["lineups"]
    assert plain["score"] == {"home": told["home_score"], "away": told["away_score"]}
    same = ("league", "season", "round", "home", "away", "stadium", "status")
    assert {name: plain[name] for name in same} == {name: told[name] for name in same}


@asynccontextmanager
async def house(
    url: str,
    *,
    unfinished: float = 0.0,
    faults: float = 0.0,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        site = build_site(Season(7, unfinished=unfinished), faults=faults)
        port = await stack.enter_async_context(serving(site))
        told = Settings(database_url=url, matches_url=f"http://127.0.0.1:{port}", **settings)
        app = await stack.enter_async_context(Retoma(url, clock=clock or FakeClock()))
        out = await stack.enter_async_context(Outbound(private=frozenset({"127.0.0.1"})))
        app.install(APP, Tools(app, out, settings=told))
        yield House(app, site, told)
