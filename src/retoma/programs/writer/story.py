"""The story of one request: read the source, check its items, write them group by group.

A group is the same thousands of items wherever the story was broken off: it is counted from the
beginning of the source. While one is being written the next is read and checked.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from retoma.db import crashpoint
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.rules.errors import NotFound, Permanent, Transient
from retoma.engine.rules.retry import Retry
from retoma.programs.writer.checks import Checker
from retoma.programs.writer.desk import Desk
from retoma.programs.writer.items import Broken, Found, Items, NoArray
from retoma.programs.writer.model import CODES, Order, Profile, Report
from retoma.programs.writer.target import Mark, Target, report_of
from retoma.words import say

KIND: Final = "writer.process"
GROUP: Final = 4_000  # items: a commit is dear, and so is finding one bad row among many
LARGE: Final = (
    4 * 1024 * 1024
)  # characters of a group: items of a megabyte must not come by thousands
TELL: Final = 1.0  # seconds between two words about progress
STALL: Final = "10m"  # without a group
TRIES: Final = Retry(attempts=5, base=2.0, cap=60.0)


def writer_kind(desk: Desk, *, retry: Retry = TRIES, group: int = GROUP) -> Kind:
    @job(name=KIND, retry=retry, codes=CODES, stall=STALL, application="writer")
    async def process(ctx: Context, order: Order) -> Report:
        try:
            profile = await desk.named(order.profile)
        except NotFound as error:
            raise Permanent(str(error), code="unknown_profile") from None
        target = await desk.target(profile)
        writing = _Writing(ctx, desk, profile, target, group, await desk.mark_of(ctx.job))
        try:
            done = await writing.through(order.url, order.headers)
        except Permanent:
            await _forget(desk, order)
            raise
        await _forget(desk, order)
        return done

    kind: Kind = process.kind  # type: ignore[attr-defined]
    return kind


async def _forget(desk: Desk, order: Order) -> None:
    if order.headers is not None:
        await desk.forget_headers(order.headers)


class _Changed(Exception):
    """What was read before does not begin this source."""


class _Writing:
    """One claim of one request."""

    def __init__(
        self,
        ctx: Context,
        desk: Desk,
        profile: Profile,
        target: Target,
        group: int,
        mark: str,
    ) -> None:
        self._ctx = ctx
        self._desk = desk
        self._profile = profile
        self._target = target
        self._group = group
        self._job = mark
        self._clock = desk.retoma.clock
        self._checker = Checker(profile)
        self._told = float("-inf")
        self._mark = Mark()
        self._pending: asyncio.Task[Mark] | None = None

    async def through(self, url: str, headers: str | None = None) -> Report:
        self._mark = await self._target.begin(self._job, self._ctx.epoch)
        while self._mark.total is None:
            try:
                await self._read(url, headers)
            except _Changed:
                self._ctx.log.warning("writer.source_changed", after=self._mark.processed)
                self._mark = await self._target.start_over(
                    self._job, self._ctx.epoch, self._mark
                )
            except Broken as error:
                await self._settled()
                raise Transient(
                    say("the source: {why}", why=error), code="source_broken"
                ) from None
            except NoArray:
                raise Permanent(
                    say("the source has no array {path!r}", path=self._profile.json_path),
                    code="no_such_array",
                ) from None
            finally:
                await self._drop()
        if crashpoint.live:
            crashpoint("writer.after_end")
        found = await self._target.read(self._job)
        return report_of(self._mark, [] if found is None else found[1])

    async def _read(self, url: str, headers: str | None) -> None:
        items = Items(self._profile.json_path, self._desk.caps.item)
        reader = _Reader(self._mark, self._group)
        async with await self._desk.source(self._profile, url, headers) as pieces:
            async for piece in pieces:
                # An item that comes in parts is looked through again: a thread is never too much.
                found = await asyncio.get_running_loop().run_in_executor(
                    None, items.feed, piece
                )
                for portion in reader.full(found):
                    await self._turn(portion)
        for portion in reader.full(items.end()):
            await self._turn(portion)
        await self._turn(reader.rest(), last=True)
        await self._settled()

    async def _turn(self, portion: "_Portion", *, last: bool = False) -> None:
        """Have it written once the one before is there; we need not wait for that."""
        group = self._checker.sort(portion.start, portion.found)
        await self._settled()
        self._pending = asyncio.ensure_future(
            self._target.store(
                self._job, self._ctx.epoch, self._mark, group, portion.digest, last=last
            )
        )

    async def _settled(self) -> None:
        """The group before this one is there."""
        if self._pending is None:
            return
        self._mark = await self._pending
        self._pending = None
        if self._clock.now() - self._told >= TELL:
            self._told = self._clock.now()
            note = say(
                "{stored} stored, {failed} failed",
                stored=self._mark.stored,
                failed=self._mark.failed,
            )
            await self._ctx.progress(note=str(note))

    async def _drop(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Portion:
    """What becomes a group; `digest` is of the source up to its end."""

    start: int
    found: list[Found]
    digest: str


class _Reader:
    """Passes over what is stored already, if it is still what it was; gives the rest by groups."""

    def __init__(self, mark: Mark, group: int) -> None:
        self._mark = mark
        self._most = group
        self._digest = hashlib.sha256()
        self._seen = 0
        self._count = self._size = 0  # of the group that is being read
        self._unwritten: list[Found] = []

    def full(self, found: list[Found]) -> Iterator[_Portion]:
        if self._took_whole(found):
            return
        stored = self._mark.processed
        for each in found:
            if self._seen == stored:
                self._check()
            text = each[1]
            self._digest.update(text.encode("utf-8", "surrogatepass"))
            self._seen += 1
            self._count += 1
            self._size += len(text)
            if self._seen > stored:
                self._unwritten.append(each)
            if self._count < self._most and self._size < LARGE:
                continue
            self._count = self._size = 0  # also where it is stored: groups end where they did
            if self._unwritten:
                yield self._portion()

    def _took_whole(self, found: list[Found]) -> bool:
        """All at once, where none of them is stored and no group ends among them."""
        text = "".join([text for _, text in found])
        size, count = self._size + len(text), self._count + len(found)
        stored = self._mark.processed
        if (stored and self._seen <= stored) or size >= LARGE or count >= self._most:
            return False
        self._digest.update(text.encode("utf-8", "surrogatepass"))
        self._size, self._count = size, count
        self._seen += len(found)
        self._unwritten += found
        return True

    def rest(self) -> _Portion:
        """The last one; it may be small, or empty."""
        if self._seen <= self._mark.processed:
            self._check()
        return self._portion()

    def _portion(self) -> _Portion:
        found, self._unwritten = self._unwritten, []
        return _Portion(self._seen - len(found), found, self._digest.hexdigest())

    def _check(self) -> None:
        if not self._mark.processed:
            return
        same = self._digest.hexdigest() == self._mark.digest
        if self._seen != self._mark.processed or not same:
            raise _Changed
