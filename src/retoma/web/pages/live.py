"""What a page shows, kept right while somebody looks: drawn once for all who are shown the same.

An event says that something has moved; nothing is drawn from it. The page asks anew, as it did when it
was opened, and what now looks different goes out as partials. So a browser that comes back after
a silence is simply shown everything once more, and what moves without an event is seen too.
"""

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from retoma.db import DatabaseError
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.query.tail import Slice, Told
from retoma.engine.rules.errors import RetomaError
from retoma.web.broadcast import Broadcaster, Guard, Hearing, Listener, Why

PAUSE: Final = 0.4  # seconds between two drawings: quicker than that nobody can read
ANYWAY: Final = (
    10.0  # seconds after which time itself has changed something: a beat, an estimate
)
AWAY: Final = 1.0  # seconds until a database that did not answer is asked again
MOVED: Final = b"event: moved\ndata: \n\n"

log = get_logger("retoma.web")


@dataclass(frozen=True, slots=True)
class Region:
    """An element of a page by its id, whole; `rows` are those elements in it that are drawn alone."""

    id: str
    html: str
    rows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Concern:
    """Which events move a page: of any job, of those of some kinds or a batch, of one."""

    kind: str | None = None
    kinds: tuple[str, ...] = ()  # none: of any
    batch: int | None = None
    job: int | None = None
    pause: float = PAUSE
    silence: float = (
        ANYWAY  # seconds without an event after which the page is drawn all the same
    )

    def met(self, part: Slice) -> bool:
        return any(self._wants(event) for event in part.events)

    def _wants(self, event: Told) -> bool:
        return (
            (self.kind is None or event.kind == self.kind)
            and (not self.kinds or event.kind in self.kinds)
            and (self.batch is None or event.batch == self.batch)
            and (self.job is None or event.job == self.job)
        )


class Shown(Protocol):
    """Something to look at."""

    @property
    def key(self) -> Hashable:
        """Whoever has the same is shown the same bytes."""

    @property
    def concern(self) -> Concern: ...

    async def draw(self) -> Sequence[Region]: ...


class Screens:
    """All that is looked at now; one for each site."""

    def __init__(self, broadcaster: Broadcaster, clock: Clock) -> None:
        self._broadcaster = broadcaster
        self._clock = clock
        self._stages: dict[Hashable, Stage] = {}

    async def watch(self, shown: Shown, guard: Guard, owner: str) -> Hearing:
        """All of it, then whatever changes, until the listener leaves."""
        stage = self._stages.get(shown.key)
        if stage is None:
            stage = self._stages[shown.key] = Stage(shown, self._clock)
        stage.looking += 1
        try:
            hearing = await self._broadcaster.listen(stage, guard=guard, owner=owner)
        except BaseException:
            self._leave(stage)
            raise
        # From here on no event is missed: what is drawn now is right until the next one.
        stage.show(hearing.listener)

        def leave() -> None:
            hearing.leave()
            stage.audience.discard(hearing.listener)
            self._leave(stage)

        return Hearing(hearing.listener, hearing.first, leave)

    def _leave(self, stage: "Stage") -> None:
        stage.looking -= 1
        if not stage.looking and self._stages.get(stage.key) is stage:
            del self._stages[stage.key]
            stage.close()


class Stage:
    """One thing that is looked at, and whoever looks. A channel: events ring it."""

    def __init__(self, shown: Shown, clock: Clock) -> None:
        self.looking = 0
        self.audience: set[Listener] = set()
        self._shown = shown
        self._clock = clock
        self._drawn: Sequence[Region] | None = None
        self._new: set[Listener] = set()  # have seen nothing yet
        self._ring = asyncio.Event()
        self._drawing = asyncio.create_task(self._draw_while_looked_at())

    @property
    def key(self) -> Hashable:
        return self._shown.key

    def messages(self, part: Slice) -> list[bytes]:
        moved = self._shown.concern.met(part)
        if moved or part.lines:
            self._ring.set()
        return [MOVED] if moved else []

    def show(self, listener: Listener) -> None:
        self.audience.add(listener)
        self._new.add(listener)
        self._ring.set()

    def close(self) -> None:
        self._drawing.cancel()

    async def _draw_while_looked_at(self) -> None:
        try:
            while True:
                await self._rung()
                await self._draw()
        except RetomaError:
            self._let_go()  # it is gone: whoever asks again is told so
        except Exception:
            log.exception("page.broken")
            self._let_go()

    async def _rung(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._shown.concern.silence):
                await self._ring.wait()
        self._ring.clear()

    async def _draw(self) -> None:
        try:
            drawn = await self._shown.draw()
        except DatabaseError as error:
            log.warning("page.trouble", error=str(error))
            self._ring.set()
            await self._clock.sleep(AWAY)
            return
        news = packed(changes(self._drawn or (), drawn))
        for listener in self.audience:
            listener.tell(packed(drawn) if listener in self._new else news)
        self._new.clear()
        self._drawn = drawn
        await self._clock.sleep(self._shown.concern.pause)

    def _let_go(self) -> None:
        for listener in self.audience:
            listener.drop(Why.BROKEN)


# — what has changed —


def changes(old: Iterable[Region], new: Iterable[Region]) -> Iterator[Region]:
    """What must be sent so that whoever sees the old sees the new."""
    before = {region.id: region for region in old}
    for region in new:
        was = before.get(region.id)
        if was is None:
            yield region
        elif region.html != was.html:
            yield from _parts(was, region)


def _parts(was: Region, region: Region) -> Iterator[Region]:
    """Its changed rows, where it has the same ones in the same order; else all of it."""
    if not region.rows or list(region.rows) != list(was.rows):
        yield region
        return
    for name, html in region.rows.items():
        if was.rows[name] != html:
            yield Region(name, html)


def partials(regions: Iterable[Region]) -> str:
    """Each goes to where it is shown."""
    return "\n".join(
        f'<hx-partial hx-target="#{region.id}" hx-swap="outerMorph">{region.html}</hx-partial>'
        for region in regions
    )


def packed(regions: Iterable[Region]) -> bytes:
    """One message for all of them; nothing, where there are none."""
    html = partials(regions)
    if not html:
        return b""
    lines = html.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
