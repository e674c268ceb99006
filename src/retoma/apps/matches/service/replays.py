"""Pages that were refused, read again as they were kept: offline, by the parsers of now.

What would change is shown first; promoted, a match is stored as if it had just come, and nothing is asked
of the site for it. A round's page that is read after all has its matches looked for from then on.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from retoma.apps.matches import store
from retoma.apps.matches.clients.parsers import checked_layouts
from retoma.apps.matches.clients.parsers.apart import ReadApart, read_match, read_round
from retoma.apps.matches.model import MatchStatus, PageRefused, RoundShort, SchemaInvalid
from retoma.apps.matches.schemas import MatchPage, RoundPage
from retoma.apps.matches.service.snapshots import charset_in
from retoma.apps.matches.sites import Site, site_of
from retoma.apps.matches.store.tasks import DeadRound, DeadTask
from retoma.db import Transaction
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.library import Retoma

BITE: Final = 100
WHY: Final = "lida de novo"


@dataclass(frozen=True, slots=True)
class Reread:
    """What a kept page comes to now. `change`: stored, discovered, not_yet, refused, lost or moved."""

    what: str  # task or round
    id: int
    round: str
    key: str
    before: Any
    change: str
    after: Any
    promoted: bool = False

    @property
    def readable(self) -> bool:
        return self.change in ("stored", "discovered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which pages are read again, and by which parsers; else by those of the knob."""

    code: str | None = None
    league: str | None = None
    run: int | None = None
    task: int | None = None
    layouts: str | None = None

    def parameters(self) -> dict[str, Any]:
        return {"code": self.code, "league": self.league, "run": self.run}


class Place(NamedTuple):
    """The pages of rounds come first, then those of tasks, each by its number."""

    what: str
    id: int


FIRST: Final = Place("round", 0)


class Replay:
    """Reads the dead letters of current runs again."""

    def __init__(self, retoma: Retoma, origin: str) -> None:
        self._retoma = retoma
        self._origin = origin

    async def of_code(
        self, code: str | None, *, apply: bool = False, actor: str, **which: Any
    ) -> list[Reread]:
        """All there are, bite by bite; for whoever need not answer anybody meanwhile."""
        found: list[Reread] = []
        place: Place | None = FIRST
        wanted = Which(code=code, **which)
        while place is not None:
            some, place = await self.bite(wanted, place, BITE, apply=apply, actor=actor)
            found += some
        return found

    async def bite(
        self, which: Which, after: Place, n: int, *, apply: bool, actor: str
    ) -> tuple[list[Reread], Place | None]:
        """The next of them, and after which the rest comes; None: there are no more. `apply`: what can
        be read is stored."""
        told = which.layouts or (await self._retoma.knobs.get("matches.layouts")).value
        reading = _Reading(self._retoma.isolate.read, self._origin, checked_layouts(told))
        rounds, tasks = await self._dead(which, after, n)
        found = [await self._round(reading, each, apply, actor) for each in rounds]
        found += [await self._task(reading, each, apply, actor) for each in tasks]
        if len(found) < n:
            return found, None
        return found, Place("task", tasks[-1].id) if tasks else Place("round", rounds[-1].run)

    async def count(self, which: Which) -> int:
        """How many pages there are."""
        database = await self._retoma.database()
        return await database.read(
            partial(store.tasks.count_dead, task=which.task, **which.parameters())
        )

    async def _dead(
        self, which: Which, after: Place, n: int
    ) -> tuple[list[DeadRound], list[DeadTask]]:
        def read(tx: Transaction) -> tuple[list[DeadRound], list[DeadTask]]:
            how, rounds = which.parameters(), list[DeadRound]()
            if after.what == "round" and which.task is None:
                rounds = store.tasks.dead_rounds(tx, after=after.id, n=n, **how)
            if len(rounds) == n:
                return rounds, []
            last, left = after.id if after.what == "task" else 0, n - len(rounds)
            tasks = store.tasks.dead_tasks(tx, after=last, n=left, task=which.task, **how)
            return rounds, tasks

        return await (await self._retoma.database()).read(read)

    async def _task(
        self, reading: "_Reading", dead: DeadTask, apply: bool, actor: str
    ) -> Reread:
        told = partial(Reread, "task", dead.id, str(dead.of), dead.key, dead.error)
        body = await self._page(dead.snapshot)
        if body is None:
            return told("lost", None)
        try:
            page = await reading.match(dead, body)
        except PageRefused as refused:
            return told("refused", refused.evidence())
        if page.status is not MatchStatus.FINISHED:
            return told("not_yet", {"status": str(page.status)})
        after = page.model_dump(mode="json", exclude={"lineups"})
        if not apply:
            return told("stored", after)
        try:
            await self._retoma.write(
                lambda tx: store.tasks.promote(tx, dead.id, page, WHY, actor=actor)
            )
        except IllegalMove as moved:
            return told("moved", {"why": str(moved)})
        return told("stored", after, promoted=True)

    async def _round(
        self, reading: "_Reading", dead: DeadRound, apply: bool, actor: str
    ) -> Reread:
        told = partial(Reread, "round", dead.run, str(dead.of), "", dead.error)
        body = await self._page(dead.snapshot)
        if body is None:
            return told("lost", None)
        try:
            page = await reading.round(dead, body)
            await self._check_whole(dead, page)
        except PageRefused as refused:
            return told("refused", refused.evidence())
        after = {"matches": [each.key for each in page.matches]}
        if not apply:
            return told("discovered", after)
        matches = list(page.matches)
        try:
            await self._retoma.write(
                lambda tx: store.tasks.promote_round(tx, dead, matches, WHY, actor=actor)
            )
        except SchemaInvalid as refused:
            return told("refused", refused.evidence())
        except IllegalMove as moved:
            return told("moved", {"why": str(moved)})
        return told("discovered", after, promoted=True)

    async def _check_whole(self, dead: DeadRound, page: RoundPage) -> None:
        look = partial(store.runs.shortfall, run=dead.run, found=page.matches)
        short = await (await self._retoma.database()).read(look)
        if short is not None:
            raise RoundShort(problems=[short])

    async def _page(self, sha256: str) -> bytes | None:
        """None: its bytes are gone, or are no longer what they were."""
        try:
            return await self._retoma.evidence.read(sha256)
        except NotFound:
            return None


@dataclass(frozen=True, slots=True)
class _Reading:
    """Where the pages were, and by which parsers they are read now."""

    read: ReadApart
    origin: str
    layouts: tuple[str, ...]

    def site(self, league: str) -> Site:
        return site_of(league).at(self.origin).read_by(*self.layouts)

    async def match(self, dead: DeadTask, body: bytes) -> MatchPage:
        site, charset = self.site(dead.of.league), charset_in(dead.error)
        return await read_match(self.read, site, body, wanted=dead.wanted, charset=charset)

    async def round(self, dead: DeadRound, body: bytes) -> RoundPage:
        of, charset = dead.of, charset_in(dead.error)
        site = self.site(of.league)
        return await read_round(
            self.read, site, body, season=of.season, round_=of.round, charset=charset
        )
