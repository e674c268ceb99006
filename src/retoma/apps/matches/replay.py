"""Pages that were refused, read again as they were kept: offline, by the parsers of now.

What would change is shown first; promoted, a match is stored as if it had just come, and nothing is asked
of the site for it. A round's page that is read after all has its matches looked for from then on.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from retoma.apps.matches import store
from retoma.apps.matches.model import MatchStatus, PageRefused
from retoma.apps.matches.parsers import parse_match, parse_round
from retoma.apps.matches.schemas import MatchPage, RoundPage
from retoma.apps.matches.sites import Site, site_of
from retoma.apps.matches.steps import checked_layouts
from retoma.apps.matches.store.tasks import DeadRound, DeadTask
from retoma.engine.errors import IllegalMove, NotFound
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


class Replay:
    """Reads the dead letters of current runs again."""

    def __init__(self, retoma: Retoma, origin: str) -> None:
        self._retoma = retoma
        self._origin = origin

    async def of_code(
        self,
        code: str | None,
        *,
        league: str | None = None,
        layouts: str | None = None,
        run: int | None = None,
        task: int | None = None,
        apply: bool = False,
        actor: str,
    ) -> list[Reread]:
        """`apply`: what can be read is stored. `layouts`: by these, not by those of the knob."""
        told = layouts or (await self._retoma.knobs.get("matches.layouts")).value
        reading = _Reading(self._origin, checked_layouts(told))
        which: dict[str, Any] = {"code": code, "league": league, "run": run, "n": BITE}
        found = [] if task is not None else await self._rounds(reading, which, apply, actor)
        after = 0
        database = await self._retoma.database()
        while True:
            some = partial(store.tasks.dead_tasks, after=after, task=task, **which)
            dead = await database.read(some)
            found += [await self._task(reading, each, apply, actor) for each in dead]
            if len(dead) < BITE:
                return found
            after = dead[-1].id

    async def _task(
        self, reading: "_Reading", dead: DeadTask, apply: bool, actor: str
    ) -> Reread:
        told = partial(Reread, "task", dead.id, str(dead.of), dead.key, dead.error)
        body = await self._page(dead.snapshot)
        if body is None:
            return told("lost", None)
        try:
            page = reading.match(dead, body)
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

    async def _rounds(
        self, reading: "_Reading", which: dict[str, Any], apply: bool, actor: str
    ) -> list[Reread]:
        database = await self._retoma.database()
        found: list[Reread] = []
        after = 0
        while True:
            dead = await database.read(partial(store.tasks.dead_rounds, after=after, **which))
            found += [await self._round(reading, each, apply, actor) for each in dead]
            if len(dead) < BITE:
                return found
            after = dead[-1].run

    async def _round(
        self, reading: "_Reading", dead: DeadRound, apply: bool, actor: str
    ) -> Reread:
        told = partial(Reread, "round", dead.run, str(dead.of), "", dead.error)
        body = await self._page(dead.snapshot)
        if body is None:
            return told("lost", None)
        try:
            page = reading.round(dead, body)
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
        except IllegalMove as moved:
            return told("moved", {"why": str(moved)})
        return told("discovered", after, promoted=True)

    async def _page(self, sha256: str) -> bytes | None:
        """None: its bytes are gone, or are no longer what they were."""
        try:
            return await self._retoma.evidence_bytes(sha256)
        except NotFound:
            return None


@dataclass(frozen=True, slots=True)
class _Reading:
    """Where the pages were, and by which parsers they are read now."""

    origin: str
    layouts: tuple[str, ...]

    def site(self, league: str) -> Site:
        return site_of(league).at(self.origin).read_by(*self.layouts)

    def match(self, dead: DeadTask, body: bytes) -> MatchPage:
        return parse_match(self.site(dead.of.league), body, key=dead.key)

    def round(self, dead: DeadRound, body: bytes) -> RoundPage:
        of = dead.of
        return parse_round(self.site(of.league), body, season=of.season, round_=of.round)
