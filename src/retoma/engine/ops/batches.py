"""Jobs submitted together, seen as one, and what a person may do with all of them at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from retoma.db import Busy, Database, Transaction
from retoma.engine import query, store
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.rules.reasons import check_reason
from retoma.engine.rules.states import ENDED, BatchState, State, batch_state
from retoma.engine.store import Move, Which, filling
from retoma.words import say

LOOK = 0.2  # seconds between two looks while somebody waits
PAUSE = (
    0.05  # seconds until rows that somebody else held are looked at again, doubled up to one
)
PATIENCE = 30.0  # seconds; nobody of ours holds a row that long
ACTOR = "library"
ALWAYS = datetime.max.replace(
    tzinfo=UTC
)  # since when a job may have stood so: it does not matter
OPEN = (State.WAITING, State.PARKED, State.RUNNING)
SKIPPABLE = (State.DEAD, State.PARKED, State.WAITING)
FINISHED = (BatchState.FINISHED, BatchState.FINISHED_WITH_ERRORS)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    counts: dict[State, int]
    paused: bool = False
    rate: float = 0.0  # jobs ended in a second, of late

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(n for state, n in self.counts.items() if state in ENDED)

    @property
    def done(self) -> int:
        return self.counts.get(State.DONE, 0)

    @property
    def failed(self) -> int:
        return self.counts.get(State.DEAD, 0)

    @property
    def share(self) -> float:
        return self.ended / self.total if self.total else 1.0

    @property
    def finished(self) -> bool:
        return self.ended == self.total

    @property
    def state(self) -> BatchState:
        return batch_state(self.counts, paused=self.paused)

    @property
    def eta(self) -> timedelta | None:
        """Until the last job has ended, at the pace of late; None where nobody can tell."""
        if self.finished:
            return timedelta(0)
        if self.rate <= 0 or self.state is not BatchState.RUNNING:
            return None
        moving = self.total - self.ended - self.counts.get(State.PARKED, 0)
        return timedelta(seconds=moving / self.rate)


@dataclass(frozen=True, slots=True)
class Batch:
    """One ledger. Its state is computed from its counts, never stored.

    A verb works through the batch in bites, so a claim gets its turn in between. It may be called
    by many at once, and again after it broke off: a job is moved once for all of them. Each answers
    how many jobs it moved itself.
    """

    id: int
    name: str
    kind: str
    submitted: int  # new jobs of this very submission
    already: int  # jobs that were there under the same keys, in their old batches
    _database: Database = field(repr=False)
    _clock: Clock = field(repr=False)

    async def counts(self) -> dict[State, int]:
        return await self._database.read(lambda tx: query.count_jobs(tx, self.id))

    async def progress(self) -> Progress:
        counts, pace = await self._database.read(
            lambda tx: (query.count_jobs(tx, self.id), query.batch_pace(tx, self.id))
        )
        return Progress(counts, pace.paused, pace.rate)

    async def pause(self, *, actor: str = ACTOR) -> bool:
        """Start no more of its jobs; what runs ends. Whether it went on until now."""
        return await self._database.write(
            lambda tx: store.pause_batch(tx, self.id, actor=actor), verb="pause"
        )

    async def unpause(self, *, actor: str = ACTOR) -> bool:
        """Let it go on: what was set aside stands in line again. Whether it was paused until now."""
        was_paused = await self._database.write(
            lambda tx: store.unpause_batch(tx, self.id, actor=actor), verb="unpause"
        )
        back = 0
        while bite := await self._put_back(back):
            back += bite
        return was_paused

    async def _put_back(self, offset: int) -> int:
        return await self._database.write(
            lambda tx: store.put_back_batch(tx, self.id, offset=offset), verb="put_back"
        )

    async def wait(self) -> Progress:
        """Return when every job of it has ended."""
        while True:
            progress = await self.progress()
            if progress.finished:
                return progress
            await self._clock.sleep(LOOK)

    async def resume(self, *, actor: str = ACTOR) -> int:
        """Go on where it stopped: parked jobs wait again, and nobody's pause holds it any more.

        What was merely unfinished still waits, and needs nobody to say so.
        """
        progress = await self.progress()
        if progress.state in FINISHED:
            raise IllegalMove(
                say(
                    "batch {id} has finished, nothing in it can be resumed:"
                    " retry_failed() tries its dead jobs again, again() all of them",
                    id=self.id,
                )
            )
        if progress.paused:
            await self.unpause(actor=actor)
        move = partial(store.unpark_jobs, actor=actor)
        return await self._each([State.PARKED], lambda _: move, actor, "batch.resumed")

    async def retry_failed(
        self, codes: str | Iterable[str] | None = None, *, actor: str = ACTOR
    ) -> int:
        """The next generation of its dead jobs, of all or of those with these codes.

        Committed steps are kept. A dead letter that was discarded stays where it is.
        """

        def move(was: State) -> Move:
            return partial(store.again_jobs, was=was, actor=actor)

        wanted = _codes(codes)
        return await self._each([State.DEAD], move, actor, "batch.retried", codes=wanted)

    async def again(self, *, fresh: bool = False, actor: str = ACTOR) -> int:
        """The next generation of every job of it that has ended, however it did."""

        def move(was: State) -> Move:
            return partial(store.again_jobs, was=was, actor=actor, fresh=fresh)

        ends = [state for state in State if state in ENDED]
        return await self._each(ends, move, actor, "batch.again")

    async def skip(
        self,
        why: str,
        *,
        job: int | None = None,
        codes: str | Iterable[str] | None = None,
        actor: str = ACTOR,
    ) -> int:
        """End one job, or all that failed with these codes, without doing them.

        What is dead, parked or waiting can be skipped; what is running cannot, nor what waits while
        nobody has seen one of its steps end.
        """
        said = check_reason(why)
        if (job is None) == (codes is None):
            raise BadInput(say("say what to skip: one job, or the codes of those that failed"))
        if job is not None:
            return await self._skip_one(job, said, actor)

        def move(was: State) -> Move:
            return partial(store.skip_jobs, was=was, why=said, actor=actor)

        wanted = _codes(codes)
        return await self._each(
            SKIPPABLE, move, actor, "batch.skipped", codes=wanted, all_seen=True
        )

    async def cancel(self, *, actor: str = ACTOR) -> int:
        """End everything that is still open. What is running is asked, and ends at its next step."""

        def move(was: State) -> Move:
            return partial(store.cancel_jobs, was=was, actor=actor)

        canceled = 0
        # A job may go from one open state to another behind our back: until one look finds none.
        while True:
            canceled += await self._each(OPEN, move, actor, "batch.canceled", since=ALWAYS)
            if not await self._database.read(lambda tx: store.any_open_in(tx, self.id)):
                return canceled

    async def _skip_one(self, job: int, why: str, actor: str) -> int:
        def skip(tx: Transaction) -> int:
            before = store.get_job(tx, job)
            if before.batch != self.id:
                raise NotFound(say("there is no job {job} in batch {id}", job=job, id=self.id))
            after = store.skip_job(tx, job, why, actor=actor)
            return int(after.state is not before.state)

        return await self._database.write(skip, verb="skip")

    async def _each(
        self,
        states: Iterable[State],
        move: Callable[[State], Move],
        actor: str,
        told: str,
        *,
        codes: Sequence[str] | None = None,
        since: datetime | None = None,
        all_seen: bool = False,
    ) -> int:
        """Move every job of these states; how many that was."""
        await self._all_moved_in()
        began = await self._database.read(self._now)
        moved = 0
        for was in states:
            which = Which(self.id, was, since or began, codes, all_seen)
            moved += await self._until_none_is_left(which, move(was), actor, told)
        return moved

    async def _all_moved_in(self) -> None:
        """Wait until all jobs of a large batch are there: none must escape a verb."""
        waited = 0.0
        while await self._database.read(lambda tx: filling.still_moving(tx, self.id)):
            if waited > PATIENCE:
                raise Busy(
                    say(
                        "batch {id}: its jobs are still being moved in; ask again later",
                        id=self.id,
                    )
                )
            await self._clock.sleep(PAUSE)
            waited += PAUSE

    def _now(self, tx: Transaction) -> datetime:
        query.get_batch(tx, self.id)  # says so where there is none any more
        return store.now(tx)

    async def _until_none_is_left(self, which: Which, move: Move, actor: str, told: str) -> int:
        moved, waited, pause = 0, 0.0, PAUSE
        while True:
            moved += await self._one_pass(which, move, actor, told)
            if not await self._database.read(lambda tx: store.any_left(tx, which)):
                return moved
            if waited > PATIENCE:
                raise Busy(
                    f"batch {self.id}: {moved} jobs were moved, others are held by a transaction"
                    " that does not end; ask again when it has"
                )
            await self._clock.sleep(pause)
            waited, pause = waited + pause, min(pause * 2, 1.0)

    async def _one_pass(self, which: Which, move: Move, actor: str, told: str) -> int:
        moved, after, last = 0, 0, False
        while not last:
            bite = partial(
                store.move_bite,
                which=which,
                move=move,
                after=after,
                offset=moved,
                actor=actor,
                told=told,
            )
            n, after, last = await self._database.write(bite, verb="bulk")
            moved += n
        return moved


def _codes(codes: str | Iterable[str] | None) -> Sequence[str] | None:
    if codes is None:
        return None
    given: list[object] = [codes] if isinstance(codes, str) else list(codes)
    wanted = [code for code in given if isinstance(code, str) and code]
    if not wanted or len(wanted) < len(given):
        raise BadInput(
            say("codes are names such as 'ERROR202', one at least, not {codes!r}", codes=codes)
        )
    return wanted
