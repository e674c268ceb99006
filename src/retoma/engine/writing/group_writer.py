"""The group writer: whatever waits when the last commit ends is committed next, together.

A lone job pays one commit, a thousand at once share it, and no timer decides. Every row carries its
epoch; whoever's row is not among the accepted ones gets LeaseLost. Five rules keep it from hanging
or paying twice (MECHANICS 17): nobody is left without an answer; a bad row is found by halving and
fails alone; after a lost connection the group is sent again and repeats are recognised; the order in
a group is let go, save, progress, settle, take; and a save, once asked for, is waited for even by the
cancelled.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from retoma.db import (
    Away,
    BadRow,
    Busy,
    Call,
    Database,
    Full,
    Interrupted,
    ReplyLost,
    Transaction,
    from_driver,
)
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules.cost import Bill
from retoma.engine.rules.errors import LeaseLost, NotFound
from retoma.engine.rules.job import Held, StepId
from retoma.engine.rules.pool_items import Freeing, Taking
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import State, StepState
from retoma.engine.writing.database_health import Trouble

ROWS = 500  # in one group: while one is committed, the stories of another go on
BYTES = 8 * 1024 * 1024  # characters, near enough
STATES = {str(state): state for state in State}
REFUSED = object()  # what is told of a row that is not among the accepted
WRITE = "write"  # where trouble is met
PAUSE = 0.05  # seconds before a group is sent again, doubled up to a second
PATIENCE = 30.0  # seconds a group is sent again before the database is said to be in trouble
INTERRUPTIONS = 3  # of a whole group, then it is sent in halves
REFUSALS = 3  # of a single row, for a reason that nobody knows: then it is refused for good

log = get_logger("retoma.writer")


class Answer(asyncio.Future[Any]):
    """Cannot be cancelled: a task that is cancelled while it waits here learns so afterwards."""

    def cancel(self, msg: Any = None) -> bool:  # noqa: ARG002
        return False


class Answerable(Protocol):
    """Whoever waits for a settling: a future, or what behaves as one."""

    def done(self) -> bool: ...
    def set_result(self, told: Any, /) -> None: ...
    def set_exception(self, error: BaseException, /) -> None: ...


@dataclass(slots=True, eq=False)
class _Waiter:
    held: Held
    kind: str
    row: str
    answer: Answerable
    step: tuple[StepId, StepState] | None = None  # of a save
    limit_key: str | None = None  # of a settling: what it counted under while it ran
    aside: bool = False  # of a settling: it goes behind a gate
    thing: Taking | Freeing | None = None  # of a pool: what is wanted, or let go of
    bill: Bill | None = None  # what is to be written down of money with it
    value: str | None = None  # of a save with a bill


class Writer:
    """One per boot of a runner; its groups go out under that boot."""

    def __init__(
        self, database: Database, boot: str, clock: Clock, trouble: Trouble | None = None
    ) -> None:
        self._trouble = trouble or Trouble(boot, lambda _: None)
        self.refused = 0
        self.failing = False  # whether the last group could not be written, and is tried again
        self._database = database
        self._boot = boot
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._frees: list[_Waiter] = []
        self._saves: list[_Waiter] = []
        self._reports: dict[Held, _Waiter] = {}
        self._settles: list[_Waiter] = []
        self._takes: list[_Waiter] = []
        self._busy: asyncio.Task[None] | None = None
        self._over = False

    def save(
        self,
        held: Held,
        kind: str,
        step: StepId,
        value: str | None,
        state: StepState = StepState.SAVED,
        bill: Bill | None = None,
    ) -> Answer:
        """Keep a step. The answer is whether somebody wants the job canceled, or LeaseLost."""
        came_from = None if bill is None else bill.reused_from
        row = store.step_fields(step, value, state, reused_from=came_from)
        answer = Answer(loop=self._loop)
        waiter = _Waiter(held, kind, row, answer, (step, state))
        if bill is not None:
            waiter.bill, waiter.value = bill, value
        self._saves.append(waiter)
        self._start()
        return answer

    def settle(
        self,
        held: Held,
        kind: str,
        end: Settlement,
        answer: Answerable,
        limit_key: str | None = None,
        bill: Bill | None = None,
    ) -> None:
        """End a claim. The answer is the state the job is in now, or LeaseLost."""
        row = store.settle_row(held, end)
        aside = end.aside is not None
        waiter = _Waiter(held, kind, row, answer, None, limit_key, aside, bill=bill)
        self._settles.append(waiter)
        self._start()

    def report(self, held: Held, kind: str, progress: float | None, note: str | None) -> Answer:
        """Tell how far a job is; of several in one group only the last is written."""
        row = store.report_row(held, progress, note)
        before = self._reports.pop(held, None)
        answer = Answer(loop=self._loop) if before is None else cast("Answer", before.answer)
        self._reports[held] = _Waiter(held, kind, row, answer)
        self._start()
        return answer

    def take(self, kind: str, taking: Taking) -> Answer:
        """Hold a thing of a pool. The answer is the thing, None where none is free, or LeaseLost."""
        answer = Answer(loop=self._loop)
        self._takes.append(_Waiter(taking.held, kind, "", answer, thing=taking))
        self._start()
        return answer

    def free(self, freeing: Freeing) -> Answer:
        """Let go of a thing. The answer is whether it was still held by this job, or LeaseLost."""
        answer = Answer(loop=self._loop)
        self._frees.append(_Waiter(freeing.held, freeing.kind, "", answer, thing=freeing))
        self._start()
        return answer

    def give_up(self) -> None:
        """This boot is over: nobody's write counts any more."""
        self._over = True
        for waiter in self._take_all():
            _fail(waiter, LeaseLost(waiter.held.job))

    async def refuse(self, kind: str) -> None:
        """Count a late write that did not go through a group."""
        self.refused += 1
        await self._count({kind: 1})

    async def flush(self) -> None:
        while self._busy is not None:
            await asyncio.shield(self._busy)

    def _start(self) -> None:
        if self._busy is None:
            self._busy = self._loop.create_task(self._write_until_empty())

    async def _write_until_empty(self) -> None:
        try:
            while group := self._next_group():
                if self._over:
                    group.fail_all()
                else:
                    await self._commit(group)
        finally:
            self._busy = None

    def _next_group(self) -> "_Group":
        # All that is let go of: a claim that ends must not overtake what it held.
        frees, self._frees = self._frees, []
        reports, self._reports = [*self._reports.values()], {}
        return _Group(
            frees,
            _first_rows(self._saves),
            reports,
            _first_rows(self._settles),
            _first_rows(self._takes),
        )

    def _take_all(self) -> list[_Waiter]:
        waiters = [*self._frees, *self._saves, *self._reports.values()]
        waiters += [*self._settles, *self._takes]
        for queue in (self._frees, self._saves, self._reports, self._settles, self._takes):
            queue.clear()
        return waiters

    async def _commit(self, group: "_Group", *, unsure: bool = False) -> None:
        """Send the group until the database has answered for each of its rows. `unsure`: it may have
        been written already."""
        pause, began, tries = PAUSE, self._clock.now(), 0
        while group:
            try:
                if unsure:
                    # However long it is away: not looked up, a repeat would count as refused.
                    group.drop(await self._database.read(group.repeats, patience=0))
                    unsure = False
                    continue
                answers = await self._database.write(
                    lambda tx: group.write(tx, self._boot), verb=group.verb, patience=0
                )
            except (Away, Busy, Full) as error:
                tries += isinstance(error, Interrupted)
                if tries > INTERRUPTIONS and not unsure and (halves := group.halves()):
                    await self._commit_halves(halves)  # what is smaller takes less time
                    return
                late = self._clock.now() - began > PATIENCE
                if isinstance(error, Full) or (late and isinstance(error, Busy)):
                    self._trouble.met(WRITE, error)
                self.failing = True
                unsure = unsure or isinstance(error, ReplyLost)
                await self._clock.sleep(pause)
                pause = min(pause * 2, 1.0)
                if self._over:
                    group.fail_all()
                    return
            except Exception as error:  # noqa: BLE001 — rule one: everybody gets an answer
                if halves := group.halves():
                    await self._commit_halves(halves, unsure=unsure)
                    return
                tries += 1
                if isinstance(error, BadRow) or not from_driver(error):
                    group.fail_all(error)
                elif tries > REFUSALS:
                    group.fail_all(_refusal(error))
                else:
                    await self._clock.sleep(pause)
            else:
                self.failing = False
                self._trouble.over(WRITE)
                await self._tell(group.answered(answers))
                return

    async def _commit_halves(
        self, halves: "tuple[_Group, _Group]", *, unsure: bool = False
    ) -> None:
        """Find the row that the database refuses: it fails alone, whatever the reason is."""
        for half in halves:
            await self._commit(half, unsure=unsure)

    async def _tell(self, refused: list[_Waiter]) -> None:
        if not refused:
            return
        self.refused += len(refused)
        for waiter in refused:
            _fail(waiter, LeaseLost(waiter.held.job))
        await self._count(Counter(waiter.kind for waiter in refused))

    async def _count(self, kinds: Mapping[str, int]) -> None:
        try:
            await self._database.write(
                lambda tx: store.count_refused(tx, self._boot, kinds), verb="count_refused"
            )
        except Exception:  # rule one: a count for the board must not hold up those who wait
            log.exception("writer.count_failed", runner=self._boot, refused=dict(kinds))


@dataclass(slots=True)
class _Written:
    """What the database answered: rows of each sort that has waiters, and what became of things."""

    rows: list[list[Any]]
    things: dict[_Waiter, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Group:
    """What is committed together, in this order."""

    frees: list[_Waiter]
    saves: list[_Waiter]
    reports: list[_Waiter]
    settles: list[_Waiter]
    takes: list[_Waiter]

    @property
    def _sorts(self) -> tuple[list[_Waiter], ...]:
        return self.frees, self.saves, self.reports, self.settles, self.takes

    def __bool__(self) -> bool:
        return any(self._sorts)

    @property
    def verb(self) -> str:
        if self.saves and self.settles:
            return "save_and_settle"
        if self.takes or self.frees:
            return "take" if self.takes else "free"
        if self.saves or self.settles:
            return "save" if self.saves else "settle"
        return "report"

    def write(self, tx: Transaction, boot: str) -> _Written:
        """In one round trip, unless jobs with limits end: what they leave free is given to others.
        Or unless a job goes behind a gate that may have opened before it got there, things of
        pools change hands, or money is to be written down."""
        limited = {w.held: w.limit_key for w in self.settles if w.limit_key is not None}
        aside = any(waiter.aside for waiter in self.settles)
        bills = self._bills(tx)
        calls = self._calls(boot, bills)
        if not (limited or aside or self.frees or self.takes or bills):
            return _Written(tx.finish(*calls))
        # The rights of all first: jobs are locked before limits, and limits before things.
        fences = self._fences(boot)
        may, rows = _parted(tx.together([*fences, *calls]), len(fences))
        if limited:
            ended = (Held(job, epoch) for job, epoch, _ in rows[-1])
            store.give_back(tx, [limited[held] for held in ended if held in limited])
        things = self._change_hands(tx, boot, [{Held(*row) for row in each} for each in may])
        if bills:
            self._write_down(tx, bills, {Held(row[0], row[1]) for each in rows for row in each})
        if aside:
            store.open_gates(tx)
        elif self.frees:
            store.pool.let_in(tx, Counter(_freeing(w).item.pool for w in self.frees))
        return _Written(rows, things)

    def _bills(self, tx: Transaction) -> dict[_Waiter, Bill]:
        """What is to be written down of money, at the prices of now."""
        found = {w: w.bill for w in (*self.saves, *self.settles) if w.bill is not None}
        if not found:
            return {}
        return dict(zip(found, store.cost.with_prices(tx, found.values()), strict=True))

    def _write_down(
        self, tx: Transaction, bills: Mapping[_Waiter, Bill], accepted: set[Held]
    ) -> None:
        ours = {waiter: bill for waiter, bill in bills.items() if waiter.held in accepted}
        store.cost.add_charges(tx, [*ours.values()])
        store.reuse.offer(
            tx, [(bill, waiter.value) for waiter, bill in ours.items() if waiter.value]
        )

    def _calls(self, boot: str, bills: Mapping[_Waiter, Bill]) -> list[Call]:
        calls = []
        if self.saves:
            rows = [
                (w.held, w.step[0], _with_cost(w.row, bills.get(w)) if bills else w.row)
                for w in self.saves
                if w.step is not None
            ]
            calls.append(store.saves(boot, rows))
        if self.reports:
            calls.append(store.reports(boot, [waiter.row for waiter in self.reports]))
        if self.settles:
            calls.append(store.settles(boot, [waiter.row for waiter in self.settles]))
        return calls

    def _fences(self, boot: str) -> list[Call]:
        calls = []
        if self.frees:
            frees = [_freeing(waiter) for waiter in self.frees]
            calls.append(store.pool.letting_go(boot, frees))
        if self.takes:
            takings = [_taking(waiter) for waiter in self.takes]
            calls.append(store.pool.may_hold(boot, takings))
        return calls

    def _change_hands(
        self, tx: Transaction, boot: str, may: list[set[Held]]
    ) -> dict[_Waiter, Any]:
        """Let go first: what one lets go of another may get."""
        told: dict[_Waiter, Any] = {}
        if self.frees:
            theirs = [waiter for waiter in self.frees if waiter.held in may[0]]
            freed = store.pool.let_go(tx, boot, [_freeing(waiter) for waiter in theirs])
            for waiter in theirs:
                told[waiter] = _freeing(waiter).item.id in freed
                freed.discard(_freeing(waiter).item.id)  # who says so twice is told no
        if self.takes:
            wanting = {_taking(w): w for w in self.takes if w.held in may[-1]}
            found = store.pool.hand_out(tx, boot, [*wanting])
            told |= {wanting[taking]: item for taking, item in found.items()}
        return told

    def answered(self, written: _Written) -> list[_Waiter]:
        """Tell the accepted; give back the refused."""
        refused: list[_Waiter] = []
        sorts = filter(None, (self.saves, self.reports, self.settles))
        for waiters, rows in zip(sorts, written.rows, strict=True):
            # By job *and* epoch: one runner may hold a zombie and the new attempt of one job.
            accepted = {(job, epoch): told for job, epoch, told in rows}
            for waiter in waiters:
                told = accepted.get(waiter.held, REFUSED)
                if told is REFUSED:
                    refused.append(waiter)
                else:
                    _succeed(waiter, told)
        for waiter in (*self.frees, *self.takes):
            if waiter in written.things:
                _succeed(waiter, written.things[waiter])
            else:
                refused.append(waiter)
        return refused

    def repeats(self, tx: Transaction) -> list[tuple[_Waiter, Any]]:
        """Whose row is there already, and what they are to be told."""
        # Row by row: this is asked only after a connection broke in the middle of a commit.
        saved = [(w, False) for w in self.saves if store.saved_already(tx, w.held, *_step(w))]
        ended = [(w, store.ended_already(tx, w.held)) for w in self.settles]
        freed = [(w, True) for w in self.frees if store.pool.freed_already(tx, _freeing(w))]
        asked = {_taking(waiter): waiter for waiter in self.takes}
        taken = store.pool.taken_already(tx, [*asked])
        return [
            *saved,
            *((waiter, state) for waiter, state in ended if state is not None),
            *freed,
            *((asked[taking], item) for taking, item in taken.items()),
        ]

    def drop(self, answered: list[tuple[_Waiter, Any]]) -> None:
        """What a lost commit did after all is answered now and not sent again."""
        for waiter, told in answered:
            for waiters in self._sorts:
                if waiter in waiters:
                    waiters.remove(waiter)
            _succeed(waiter, told)

    def halves(self) -> "tuple[_Group, _Group] | None":
        """Two smaller groups, one after the other; None where there is only one row left."""
        sorts = [sort for sort in self._sorts if sort]
        if len(sorts) > 1:  # the first sort by itself: their order stays
            parts = [(sort, []) if sort is sorts[0] else ([], sort) for sort in self._sorts]
        elif len(sorts[0]) > 1:
            parts = [(sort[: len(sort) // 2], sort[len(sort) // 2 :]) for sort in self._sorts]
        else:
            return None
        first, second = zip(*parts, strict=True)
        return _Group(*first), _Group(*second)

    def fail_all(self, error: BaseException | None = None) -> None:
        for waiters in self._sorts:
            for waiter in waiters:
                _fail(waiter, error or LeaseLost(waiter.held.job))
            waiters.clear()


def _refusal(error: Exception) -> BadRow:
    """What the database alone knows the reason of: nothing else was wrong with this row."""
    refused = BadRow(f"{type(error).__name__}: {error}")
    refused.__cause__ = error
    return refused


def _step(waiter: _Waiter) -> tuple[StepId, StepState]:
    """What a save is of; only saves are asked."""
    return cast("tuple[StepId, StepState]", waiter.step)


def _freeing(waiter: _Waiter) -> Freeing:
    return cast("Freeing", waiter.thing)


def _taking(waiter: _Waiter) -> Taking:
    return cast("Taking", waiter.thing)


def _parted(answers: list[list[Any]], first: int) -> tuple[list[list[Any]], list[list[Any]]]:
    return answers[:first], answers[first:]


def _with_cost(row: str, bill: Bill | None) -> str:
    kept = None if bill is None else bill.kept()
    return row if kept is None else f'{row},"cost":{kept}'


def _first_rows(queue: list[_Waiter]) -> list[_Waiter]:
    """As many from the front as one group may carry, taken out of the queue."""
    size = count = 0
    for waiter in queue:
        size += len(waiter.row)
        if count == ROWS or (count and size > BYTES):
            break
        count += 1
    taken = queue[:count]
    del queue[:count]
    return taken


def _succeed(waiter: _Waiter, told: Any) -> None:
    if waiter.answer.done():
        return
    if waiter.thing is None:
        waiter.answer.set_result(STATES[told] if isinstance(told, str) else bool(told))
    elif isinstance(told, NotFound):
        waiter.answer.set_exception(told)
    else:
        waiter.answer.set_result(told)


def _fail(waiter: _Waiter, error: BaseException) -> None:
    if not waiter.answer.done():
        waiter.answer.set_exception(error)
