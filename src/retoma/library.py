"""The library face: register, submit, run, ask. Opens nothing until it is used."""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from importlib.metadata import version
from inspect import iscoroutinefunction
from itertools import chain
from random import Random
from typing import Any, TypeVar, cast, overload

from retoma import db
from retoma.codec import Unstorable, encode
from retoma.db import Database, DatabaseError, Full, ReplyLost, Unfit, migrations
from retoma.db.database import no_room
from retoma.db.migrations import ENGINE, PublicViews, Room
from retoma.dispatch.polling import Dispatcher, Polling
from retoma.engine import query, store
from retoma.engine.costs.accounts import BudgetsDesk, Costs, Prices, Reuse
from retoma.engine.handlers.kinds import Kind, Kinds, LogFields, job
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.limits.controls import BreakersDesk, KnobsDesk, Pools, RatesDesk
from retoma.engine.ops import alerts, retention
from retoma.engine.ops.batches import Batch
from retoma.engine.ops.pauses import PausesDesk
from retoma.engine.ops.retention import Keep, Retention, Retired
from retoma.engine.ops.schedules import TIMEZONE, plan
from retoma.engine.ports import Clock, Ids, chance
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, Code, IllegalMove, NotFound, Unsure
from retoma.engine.rules.gates import Limit, check_cap, check_key
from retoma.engine.rules.job import Job
from retoma.engine.rules.live_settings import Declared
from retoma.engine.rules.money import money
from retoma.engine.rules.reasons import check_reason
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.engine.run.filling import LARGE, Filling, LargeBatch
from retoma.engine.run.hinted import HintedRunner
from retoma.engine.run.runner import House, Knobs, Runner
from retoma.engine.run.submission import (
    ACTOR,
    Submitted,
    batch_name,
    checked,
    head,
    jobs_of,
    new_batch,
    new_job,
    spans,
    submission,
)
from retoma.engine.run.transaction import Carried, Transaction
from retoma.engine.store import (
    Asked,
    Command,
    Drained,
    Missed,
    NewJob,
    Plan,
    Reference,
    Refers,
    Schedule,
    Submission,
    Verb,
    hints,
)
from retoma.engine.store.alerts import Alert
from retoma.engine.store.hints import Hint
from retoma.engine.traces import Submitting, Traces
from retoma.engine.writing.evidence import Keeper, Writes
from retoma.engine.writing.once import Once
from retoma.engine.writing.submitter import Submitter
from retoma.manifest import Application, load
from retoma.shelves import DATABASE, shelf_at
from retoma.words import say

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

REGISTERED = ("kinds", "tools", "_plans", "_references", "_rooms", "_knobs")  # of a Retoma
FILLER = 16 << 10  # bytes, that nothing makes smaller: more than what is left of any page
# Bytes on the disk of a file: what is written to it between two checkpoints.
LEAST_FREE = 16 << 20
DIGEST = re.compile(r"[0-9a-f]{64}")


def room_of(application: Application, public_views: str) -> Room:
    """Whose tables an application has, and whether `public` shows them."""
    if public_views not in [*PublicViews]:
        raise BadInput(
            say("RETOMA_PUBLIC_VIEWS is auto, on or off, not {value!r}", value=public_views)
        )
    public = PublicViews(public_views)
    views = tuple(application.views)
    return Room(application.name, application.migrations or "", views, public)


class Retoma:
    """Jobs of named steps on one database."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        rng: Random | None = None,
        timezone: str | None = None,
        evidence: str | None = None,
        patience: float | None = None,
        traces: Traces | None = None,
        version: str | None = None,
        public_views: str | None = None,
    ) -> None:
        """`timezone`: of schedules that name none, and of the days and months by which costs are
        counted; else `RETOMA_TIMEZONE`, else São Paulo's.

        `evidence`: where its bytes lie: `database`, `folder:///path` or
        `s3://bucket/prefix?endpoint=https://…`; else `RETOMA_EVIDENCE`, else the database.

        `patience`: for how many seconds a database that is away is asked again (30).

        `traces`: where spans go, such as `retoma.otel.OpenTelemetry()`; else nowhere.

        `version`: of the application, shown where its runners are.

        `public_views`: whether the tables of a design document are seen in the schema `public` too,
        `auto`, `on` or `off`; else `RETOMA_PUBLIC_VIEWS`, else `auto`: where nothing else is there.
        """
        self._public_views = public_views or os.environ.get("RETOMA_PUBLIC_VIEWS") or "auto"
        self.url = url
        self.timezone = timezone or os.environ.get("RETOMA_TIMEZONE") or TIMEZONE
        self.kinds = Kinds()
        self.dispatcher: Dispatcher = Polling()
        self._clock = clock or Clock()
        self._ids = ids or Ids()
        self._rng = rng
        self.patience = None if patience is None else seconds(patience)
        self.traces = traces
        self.version = checked("version", version)
        where = evidence or os.environ.get("RETOMA_EVIDENCE") or DATABASE
        self._keeper = Keeper(shelf_at(where), self._ids)
        self.isolate = Isolate()  # for what reads bytes of strangers outside of a job
        self._database: Database | None = None
        self._inherited: Database | None = None
        self._owner = 0
        # By process: a forked one inherits no lock that a thread of its parent may hold just then.
        self._opening: dict[int, threading.Lock] = {}
        self._ready = False
        self._plans: dict[str, Plan] = {}
        self._references: list[Reference] = []
        self._rooms: list[Room] = []
        self.tools: dict[str, Any] = {}  # of installed applications, by name
        self._undeclared = False
        self._knobs = Declared((*alerts.KNOBS, *retention.KNOBS), rule=retention.go_together)
        self._runners: dict[Runner, asyncio.Task[Any] | None] = {}
        self._hinted: list[HintedRunner] = []

    @property
    def clock(self) -> Clock:
        """Decides when to look; a test may hand in one of its own."""
        return self._clock

    @property
    def ids(self) -> Ids:
        """Names nobody has had before."""
        return self._ids

    @property
    def pools(self) -> Pools:
        """Shared exclusive things."""
        return Pools(self._open, ACTOR)

    @property
    def rates(self) -> RatesDesk:
        """How often something may be called."""
        return RatesDesk(self._open, ACTOR)

    @property
    def breakers(self) -> BreakersDesk:
        """What guards services that may be down."""
        return BreakersDesk(self._open, ACTOR)

    @property
    def knobs(self) -> KnobsDesk:
        """What an admin may change while work goes on."""
        return KnobsDesk(self._open, ACTOR, self._knobs)

    @property
    def pauses(self) -> PausesDesk:
        """Applications, kinds and queues of which nothing is claimed for a while."""
        return PausesDesk(self._open, ACTOR, self.kinds, self._clock)

    @property
    def costs(self) -> Costs:
        """What was spent and saved."""
        return Costs(self._open, self.timezone)

    @property
    def budgets(self) -> BudgetsDesk:
        """How much may be spent."""
        return BudgetsDesk(self._open, ACTOR, self.timezone)

    @property
    def prices(self) -> Prices:
        """What units cost."""
        return Prices(self._open, ACTOR)

    @property
    def reuse(self) -> Reuse:
        """Results that other jobs may use again."""
        return Reuse(self._open, ACTOR)

    # — registering —

    @overload
    def job(self, fn: F, /) -> F: ...
    @overload
    def job(
        self,
        *,
        name: str | None = None,
        version: int = 1,
        queue: str | None = None,
        priority: int = 0,
        limit: "int | Limit | Sequence[int | Limit] | None" = None,
        holds: "str | Sequence[str]" = (),
        timeout: Any = None,
        stall: Any = None,
        cpu: Any = None,
        memory: Any = None,
        retry: Retry | None = None,
        codes: Mapping[str, Code] | None = None,
        application: str | None = None,
        log_fields: LogFields | None = None,
    ) -> Callable[[F], F]: ...
    def job(self, fn: Any = None, /, **how: Any) -> Any:  # type: ignore[misc]
        """Make a job of a function and remember it: `@app.job` or `@app.job(timeout="5m")`."""

        def registered(story: Any) -> Any:
            made = job(**how)(story)
            self.kinds.add(made.kind)
            return made

        return registered if fn is None else registered(fn)

    def schedule(
        self,
        name: str,
        kind: "Kind | Callable[..., Any] | str",
        *,
        cron: str,
        payload: Any = None,
        timezone: str | None = None,
        missed: Missed | str = Missed.ONE,
    ) -> None:
        """Submit a job at every tick of a cron line (minute hour day month weekday), each tick once.

        Written down when the database is first used; a changed declaration changes the schedule.
        Ticks that nobody could do in time are made up for by one run, or with `missed="skip"` by
        none.
        """
        if name in self._plans:
            raise BadInput(say("there is already a schedule {name}", name=name))
        wanted = self.kinds.of(kind)
        made = plan(
            name,
            wanted,
            cron=cron,
            payload=new_job(wanted, payload, None).payload,
            timezone=timezone or self.timezone,
            missed=missed,
        )
        self._plans[made.name] = made
        self._undeclared = True

    def install(self, application: Application, tools: Any = None) -> None:
        """Take an application in: its kinds, its knobs, its tables. `tools`: for its stories."""
        self.tools[application.name] = tools
        made = [] if application.stories is None else load(application.stories)(tools)
        for kind in (*application.own_kinds(), *made):
            self.kinds.add(kind, application.name)
        if application.watch is not None:
            self.kinds.watches[application.name] = load(application.watch)
        if application.mend is not None:
            self.kinds.mends[application.name] = partial(load(application.mend), tools)
        self.knobs.declare(application.name, application.knobs)
        for kind_name, cron in application.schedules:
            self.schedule(kind_name, kind_name, cron=cron)
        for table, column in application.refers:
            self.refers(table, column)
        if application.migrations is not None:
            self._rooms.append(room_of(application, self._public_views))
            self._ready = False

    def register_all_of(self, other: "Retoma") -> None:
        """Register what is registered with `other`, which has opened nothing yet."""
        for name in REGISTERED:
            setattr(self, name, getattr(other, name))
        self._undeclared = bool(self._plans or self._references)

    def refers(self, table: str, column: str, to: Refers | str = Refers.JOB) -> None:
        """Say that a column of yours holds ids of jobs, or of batches: what it names is never
        deleted by retention. On PostgreSQL name the schema too, if it is not `public`."""
        if to not in list(Refers):
            raise BadInput(say("a column refers to a 'job' or a 'batch', not {to!r}", to=to))
        self._references.append(Reference(table, column, Refers(to)))
        self._undeclared = True

    # — submitting —

    async def submit(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payload: Any = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Any = None,
        deadline: Any = None,
        correlation: str | None = None,
        traceparent: str | None = None,
        actor: str = ACTOR,
    ) -> Job:
        """One job, committed when this returns. The same key and payload give the same job.

        `deadline`: a length of time from now, waits and all attempts included; a job that has not
        ended by then is buried. `traceparent`: the span it belongs to, kept with it.
        """
        wanted = self.kinds.of(kind)
        with self._submitting()(wanted.name, traceparent) as kept:
            about = submission(
                wanted,
                priority=priority,
                run_at=run_at,
                delay=delay,
                deadline=deadline,
                correlation=correlation,
                traceparent=kept,
                actor=actor,
            )
            made = await self._submit(wanted, about, new_job(wanted, payload, key))
        self._hint([made])
        return made

    async def _submit(self, wanted: Kind, about: Submission, new: NewJob) -> Job:
        database = await self._open()
        try:
            made = await self._submitter.submit(about, new)
        except ReplyLost as error:
            if new.key is None:
                raise Unsure(
                    say(
                        "{name}: the connection broke while the job was being committed; it"
                        " may have been accepted. Submit with key=… and asking again is"
                        " safe",
                        name=wanted.name,
                    )
                ) from error
            made = None
        if made is None:
            made = await database.write(
                lambda tx: store.submit_job(tx, about, new), verb="submit"
            )
        return made

    def _submitting(self) -> Submitting:
        return spans(self.traces)

    async def submit_many(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payloads: Iterable[Any],
        *,
        name: str | None = None,
        key: str | None = None,
        keys: Sequence[str] | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Any = None,
        deadline: Any = None,
        correlation: str | None = None,
        traceparent: str | None = None,
        budget: str | None = None,
    ) -> Batch:
        """A batch of jobs, all of them or none. `budget`: what they may spend together, such as
        "25 USD".

        Up to 100,000 jobs are one transaction. More come in by slices, so that no other writer waits
        long: none of them is there before all have come in, and where this process dies meanwhile,
        the same key submits them again.
        """
        wanted = self.kinds.of(kind)
        batch_key = checked("key", key) or self._ids.new()
        with self._submitting()(wanted.name, traceparent) as kept:
            about = submission(
                wanted,
                priority=priority,
                run_at=run_at,
                delay=delay,
                deadline=deadline,
                correlation=correlation,
                traceparent=kept,
            )
            allowed = None if budget is None else money(say("a budget"), budget)
            few, more = head(payloads, LARGE)
            if more is None:
                submit = new_batch(
                    wanted, few, about, name=name, key=batch_key, keys=keys, budget=allowed
                )
                made = await self._submit_batch(submit)
            else:
                large = LargeBatch(
                    about=about,
                    name=batch_name(wanted, name, batch_key),
                    key=batch_key,
                    budget=allowed,
                    jobs=jobs_of(wanted, chain(few, more), keys),
                )
                made = await self._fill(large)
        await self._hint_batch(made.id)
        return made

    async def _submit_batch(self, submit: Callable[[db.Transaction], Submitted]) -> Batch:
        database = await self._open()
        while True:
            with suppress(ReplyLost):  # the batch's key tells whether it happened
                return self._submitted(await database.write(submit, verb="submit_many"))

    async def _fill(self, large: LargeBatch) -> Batch:
        filling = Filling(await self._open(), self._clock, self._ids.new(), large)
        return self._submitted(await filling.submit())

    async def write(self, fn: Callable[[Transaction], T]) -> T:
        """Your own statements and submissions in one transaction: all of it, or nothing.

        `fn` is a plain function and does nothing but ask its transaction: it runs where all writes
        of this process go through, and is called again where the database was away or busy and
        nothing had been changed. What it raises undoes everything: no job, no event, no bell.
        """
        return await self._write(await self._open(), fn)

    async def write_once(
        self, asked: Asked, fn: Callable[[Transaction], T], answer: Callable[[T], Any]
    ) -> T:
        """As `write`, but only for the first who asks so; any other is told by `Answered` what
        `answer` made of what the first one got."""
        return await self._write(Once(await self._open(), asked, answer), fn)

    async def _write(self, database: Writes, fn: Callable[[Transaction], T]) -> T:
        if iscoroutinefunction(fn):
            raise BadInput(say("{fn!r} is async; app.write takes a plain function", fn=fn))

        last: list[Transaction] = []
        submitting = self._submitting()  # out here: what is open now is not open where we write

        def lent(tx: db.Transaction) -> T:
            last[:] = [
                Transaction(tx, self.kinds, self._ids, self._submitted, submitting, self._knobs)
            ]
            return last[0].lend(fn)

        try:
            given = await database.write(lent, verb="write")
        except Carried as carried:
            raise carried.error from None
        except ReplyLost as error:
            raise Unsure(
                say(
                    "the connection broke while app.write was being committed; it may"
                    " have happened. Look for what it wrote before you ask again"
                )
            ) from error
        self._hint(last[0].jobs)
        for batch in last[0].batches:
            await self._hint_batch(batch)
        return given

    def submit_on(
        self,
        connection: Any,
        kind: "Kind | Callable[..., Any] | str",
        payload: Any = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Any = None,
        deadline: Any = None,
        correlation: str | None = None,
        traceparent: str | None = None,
    ) -> Job:
        """One job in the open transaction of your own psycopg connection (PostgreSQL only).

        Not async, and commits nothing: the job is there when you commit, and its bell rings then.
        If it is refused, your transaction goes on as if it had not been asked.
        """
        wanted = self.kinds.of(kind)
        with self._submitting()(wanted.name, traceparent) as kept:
            about = submission(
                wanted,
                priority=priority,
                run_at=run_at,
                delay=delay,
                deadline=deadline,
                correlation=correlation,
                traceparent=kept,
            )
        new = new_job(wanted, payload, key)
        if self.url.startswith("sqlite:"):
            raise BadInput(
                say(
                    "submit_on needs PostgreSQL: a SQLite file must not be opened by"
                    " two copies of SQLite in one process. Use app.write"
                )
            )
        try:
            with db.borrow(connection) as tx:
                migrations.check(tx)
                return store.submit_job(tx, about, new)
        except Unfit as error:
            raise BadInput(
                say("{name} was not submitted: {error}", name=wanted.name, error=error)
            ) from error

    def _hint(self, jobs: Iterable[Job]) -> None:
        """After their commit: whoever else is to wake somebody learns of what may run now."""
        ready = [Hint(job.queue, job.id) for job in jobs if job.due]
        if ready and self.dispatcher.most:
            self.dispatcher.hint(ready)

    async def _hint_batch(self, batch: int) -> None:
        most = self.dispatcher.most
        if most:
            with suppress(DatabaseError):  # they are submitted, and found without a hint too
                database = await self._open()
                ready = await database.read(lambda tx: hints.ready_in_batch(tx, batch, most))
                self.dispatcher.hint(ready)

    def _submitted(self, made: Submitted) -> Batch:
        return self._batch(made.batch, made.name, made.kind, made.new, made.already)

    def _batch(self, id_: int, name: str, kind: str, new: int, already: int) -> Batch:
        return Batch(id_, name, kind, new, already, self._opened(), self._clock)

    # — running —

    async def run(
        self, *, until_idle: bool = False, kinds: Kinds | None = None, **knobs: Any
    ) -> None:
        """One runner in this process; see Knobs. Returns when stopped, or when nothing waits.

        `kinds`: only these, instead of all that are registered.
        """
        runner = Runner(await self._house(self.kinds if kinds is None else kinds, knobs))
        self._runners[runner] = asyncio.current_task()
        try:
            await runner.run(until_idle=until_idle)
        finally:
            del self._runners[runner]

    async def hinted(self, **knobs: Any) -> HintedRunner:
        """A runner that claims only what it is told of; for dispatchers."""
        runner = HintedRunner(await self._house(self.kinds, knobs))
        self._hinted.append(runner)
        return runner

    async def _house(self, kinds: Kinds, knobs: Mapping[str, Any]) -> House:
        """What a runner of this app works with."""
        kinds.check_children()
        return House(
            database=await self._open(),
            kinds=kinds,
            knobs=self._told(knobs),
            clock=self._clock,
            ids=self._ids,
            rng=self._rng or chance(),
            keeper=self._keeper,
            traces=self.traces,
            declared=self._knobs,
        )

    def _told(self, knobs: Mapping[str, Any]) -> Knobs:
        """What a runner is told: what this object knows, and over it what was said of this one."""
        program = _own_version()
        known = {
            "timezone": self.timezone,
            "version": program if self.version is None else f"{program}, app {self.version}",
        }
        return Knobs(**{**known, **knobs})

    def stop(self) -> None:
        """Ask every runner of this object to leave: nothing more is claimed."""
        for runner in self._runners:
            runner.stop()

    # — asking and steering —

    async def get(self, job: int) -> Job:
        _check_id("job", job)
        return await self._read(lambda tx: store.get_job(tx, job))

    async def see(
        self, job: int, *, before: int | None = None, limit: int = 100
    ) -> query.JobSeen:
        """A job with the newest of its timeline, attempts and steps, at one instant; `before`: its
        timeline before that line."""
        _check_id("job", job)
        return await self._read(lambda tx: query.see_job(tx, job, before=before, limit=limit))

    async def jobs(
        self,
        *,
        state: State | str | None = None,
        kind: str | None = None,
        batch: int | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Newest first, a page at a time."""
        wanted = None if state is None else _state(state)
        return await self._read(
            lambda tx: query.list_jobs(
                tx, state=wanted, kind=kind, batch=batch, before=before, limit=limit
            )
        )

    async def search(
        self, search: query.Search, *, before: int | None = None, limit: int = 50
    ) -> query.Page:
        """Jobs as somebody wants them, newest first, and where the next look begins."""
        return await self._read(
            lambda tx: query.search_jobs(tx, search, before=before, limit=limit)
        )

    async def count(self, search: query.Search) -> query.Count:
        """How many there are; beyond what is worth looking at: at least how many."""
        return await self._read(lambda tx: query.count_search(tx, search))

    async def counts(self) -> dict[State, int]:
        return await self._read(query.count_jobs)

    async def counts_by_kind(self, batch: int | None = None) -> dict[str, dict[State, int]]:
        return await self._read(lambda tx: query.count_kinds(tx, batch))

    async def dead_codes(self, batch: int | None = None) -> dict[str, int]:
        """How many are dead by which code, the most first."""
        return await self._read(lambda tx: query.count_codes(tx, batch))

    async def funnel(self, kind: str | None = None) -> list[query.Stand]:
        """How many run, or are parked, at which checkpoint, and since when."""
        return await self._read(lambda tx: query.funnel(tx, kind))

    async def stuck(
        self,
        *,
        quiet: Any = query.QUIET,
        kind: str | None = None,
        batch: int | None = None,
        limit: int = 50,
    ) -> list[query.Stuck]:
        """Running without progress for that long, or on a runner whose lease is over."""
        asked: dict[str, Any] = {"quiet": quiet, "kind": kind, "batch": batch}
        return await self._read(lambda tx: query.stuck(tx, **asked, limit=limit))

    async def count_stuck(
        self,
        *,
        quiet: Any = query.QUIET,
        kind: str | None = None,
        batch: int | None = None,
    ) -> int:
        """How many those are."""
        asked: dict[str, Any] = {"quiet": quiet, "kind": kind, "batch": batch}
        return await self._read(lambda tx: query.count_stuck(tx, **asked))

    async def take_back(
        self,
        *,
        actor: str = ACTOR,
        count: Callable[[db.Transaction, Sequence[int]], int] | None = None,
    ) -> int:
        """Declare runners lost whose lease is over and take their jobs back, now; how many. Every
        runner does so at its next tick: this is for whoever cannot wait, or has none alive.

        `count`: how many of these jobs are to be told of; None: all.
        """
        database = await self._open()

        def take(tx: db.Transaction) -> tuple[int, int]:
            store.declare_lost(tx, actor=actor)
            back = [held.job for held, _ in store.take_back(tx, actor)]
            return len(back), len(back) if count is None else count(tx, back)

        bite, taken = await database.write(take, verb="take_back")
        while bite == store.BITE:
            bite, more = await database.write(take, verb="take_back")
            taken += more
        return taken

    async def throughput(
        self, *, last: Any = "1h", kind: str | None = None
    ) -> list[query.Minute]:
        """How many came to which state, minute by minute."""
        return await self._read(lambda tx: query.throughput(tx, last=last, kind=kind))

    async def durations(
        self, *, last: Any = "1h", kind: str | None = None, state: State | str = State.DONE
    ) -> list[query.Durations]:
        """How long attempts that ended so took, for each kind."""
        ended = _state(state)
        return await self._read(
            lambda tx: query.durations(tx, last=last, kind=kind, state=ended)
        )

    async def events(
        self, job: int, *, after: int = 0, limit: int | None = None
    ) -> list[query.Event]:
        """The timeline of a job; `after`: only what follows that line of it."""
        _check_id("job", job)
        return await self._read(lambda tx: query.job_events(tx, job, after=after, limit=limit))

    async def attempts(self, job: int) -> list[query.AttemptSeen]:
        _check_id("job", job)
        return await self._read(lambda tx: query.job_attempts(tx, job))

    async def steps(self, job: int) -> list[query.StepSeen]:
        _check_id("job", job)
        return await self._read(lambda tx: query.job_steps(tx, job))

    async def evidence(self, job: int) -> list[query.EvidenceSeen]:
        """What its attempts have attached, the oldest first."""
        _check_id("job", job)
        return await self._read(lambda tx: query.job_evidence(tx, job))

    async def evidence_bytes(self, sha256: str) -> bytes:
        """The bytes of a piece of evidence, wherever they lie."""
        if not isinstance(cast("object", sha256), str) or not DIGEST.fullmatch(sha256):
            raise BadInput(
                say(
                    "evidence is asked for by its sha256, 64 hex digits, not {sha256!r}",
                    sha256=sha256,
                )
            )
        return await self._keeper.get(await self._open(), sha256)

    async def runners(self) -> list[query.RunnerSeen]:
        return await self._read(query.list_runners)

    async def drain_runner(self, boot: str, *, actor: str = ACTOR) -> Drained:
        """Ask a runner to leave as on SIGTERM: it claims nothing more, finishes or gives back what
        it has, and its process ends. It hears of it at once, or with its next beat."""
        who = checked("actor", actor) or ACTOR
        database = await self._open()
        return await database.write(
            lambda tx: store.drain_runner(tx, boot, actor=who), verb="drain_runner"
        )

    async def ready(self) -> None:
        """Return if work could be written down now; else raise what keeps it from being."""
        await can_write(await self._open(), self._ids)

    async def meter(self) -> query.Meter:
        """Everything that is counted, for whoever asks again and again."""
        zone = self.timezone
        return await self._read(lambda tx: query.read_meter(tx, zone))

    async def refused_writes(self) -> int:
        return await self._read(query.refused_writes)

    async def explain(self, job: int) -> str:
        """Why it is not running, in one sentence, and what would change it."""
        _check_id("job", job)
        return await self._read(lambda tx: query.explain(tx, job, self.timezone))

    async def result(self, job: int) -> Any:
        """What a done job returned, in the type that its function says it returns."""
        found = await self.get(job)
        if found.state is not State.DONE:
            raise IllegalMove(
                say("job {job} is {state} and has no result", job=job, state=found.state)
            )
        return self.kinds.result(found)

    async def batches(self, *, before: int | None = None, limit: int = 50) -> list[Batch]:
        """Newest first."""
        seen = await self._read(lambda tx: query.list_batches(tx, before=before, limit=limit))
        return [self._batch(each.id, each.name, each.kind, 0, 0) for each in seen]

    async def batch(self, batch: int) -> Batch:
        _check_id("batch", batch)
        seen = await self._read(lambda tx: query.get_batch(tx, batch))
        return self._batch(seen.id, seen.name, seen.kind, 0, 0)

    async def cancel(self, job: int, *, actor: str = ACTOR) -> State:
        """CANCELED: it never runs again. RUNNING: its runner was asked, and ends it."""
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.cancel_job(tx, job, actor=actor), verb="cancel"
        )

    async def retry(
        self, job: int, *, fresh: bool = False, only_dead: bool = False, actor: str = ACTOR
    ) -> Job:
        """The next generation of an ended job; its committed steps are kept unless `fresh`.

        `only_dead` refuses a job that has ended in any other way.
        """
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.again(tx, job, actor=actor, fresh=fresh, only_dead=only_dead),
            verb="again",
        )

    async def resume(self, job: int, *, actor: str = ACTOR) -> Job:
        """A parked job goes on."""
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.unpark(tx, job, actor=actor), verb="unpark"
        )

    async def send_again(self, job: int, *, actor: str = ACTOR) -> Job:
        """The remote work of a parked job is gone: have it sent again."""
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.send_again(tx, job, actor=actor), verb="send_again"
        )

    async def adopt(self, job: int, handle: Any, *, actor: str = ACTOR) -> Job:
        """What a parked job had begun is this: a handle to ask after, or what its step gave."""
        _check_id("job", job)
        try:
            text = encode(handle)
        except Unstorable as error:
            raise BadInput(
                say("job {job}: what it gave cannot be kept: {error}", job=job, error=error)
            ) from error
        database = await self._open()
        return await database.write(
            lambda tx: store.adopt(tx, job, text, actor=actor), verb="adopt"
        )

    async def skip(self, job: int, why: str, *, actor: str = ACTOR) -> Job:
        """A job that waits, is parked or is dead ends without being done: a person says so."""
        _check_id("job", job)
        said = check_reason(why)
        database = await self._open()
        return await database.write(
            lambda tx: store.skip_job(tx, job, said, actor=actor), verb="skip"
        )

    async def discard(self, job: int, why: str | None = None, *, actor: str = ACTOR) -> Job:
        """Put a dead letter away: off the list of `dead`, its history kept. It can be retried."""
        _check_id("job", job)
        said = None if why is None else check_reason(why)
        database = await self._open()
        return await database.write(
            lambda tx: store.discard_job(tx, job, said, actor=actor), verb="discard"
        )

    async def dead(
        self,
        *,
        kind: str | None = None,
        batch: int | None = None,
        code: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Dead letters that nobody has discarded, newest first, a page at a time."""
        return await self._read(
            lambda tx: query.list_dead(
                tx, kind=kind, batch=batch, code=code, before=before, limit=limit
            )
        )

    async def dead_causes(self, jobs: Sequence[int]) -> dict[int, query.Cause]:
        """Why each of them died the last time."""
        found = await self._read(lambda tx: query.dead_causes(tx, jobs))
        return {each.job: each for each in found}

    async def dead_groups(self, search: query.Search) -> query.DeadGroups:
        """Of what the newest dead letters died, those alike together."""
        return await self._read(lambda tx: query.dead_groups(tx, search))

    async def audit(
        self,
        search: query.AuditSearch,
        *,
        after: query.Spot | None = None,
        limit: int = 50,
    ) -> query.AuditPage:
        """What people did, newest first, a page at a time."""
        return await self._read(
            lambda tx: query.search_audit(tx, search, after=after, limit=limit)
        )

    async def command(self, verb: Verb | str, *, why: str | None = None, actor: str) -> Command:
        """Something to be done to many jobs: to those that stand where they stand by now."""
        if verb not in list(Verb):
            raise BadInput(
                say("a verb is one of {known}, not {verb!r}", known=", ".join(Verb), verb=verb)
            )
        wanted = Verb(verb)
        said = None if why is None else check_reason(why)
        if wanted is Verb.SKIP and said is None:
            raise BadInput(say("whoever skips says why"))
        return Command(verb=wanted, actor=actor, why=said, since=await self._read(store.now))

    async def order(
        self, command: Command, jobs: Sequence[int], *, offset: int = 0
    ) -> store.Ordered:
        """Do it to these, in one transaction; asking again moves nothing twice."""
        database = await self._open()
        return await database.write(
            lambda tx: store.order_jobs(tx, command, jobs, offset), verb="order"
        )

    async def order_page(
        self,
        command: Command,
        search: query.Search,
        *,
        before: int | None,
        offset: int,
        limit: int = query.PAGE,
    ) -> tuple[store.Ordered, int, int | None]:
        """Do it to the next of those that are so, newest first; how many were met, and where the
        next page begins."""
        found = await self._read(
            lambda tx: query.search_ids(tx, search, before=before, limit=limit)
        )
        ordered = await self.order(command, found.ids, offset=offset)
        return ordered, len(found.ids), found.next

    async def forget_answers(self) -> int:
        """Delete answers that nobody asks for any more, a bite of them; how many that was."""
        return await (await self._open()).write(store.forget_answers, verb="forget_answers")

    # — alerts —

    async def alerts(
        self, *, in_force: bool = True, before: int | None = None, limit: int = 50
    ) -> list[Alert]:
        """Newest first: those in force, or all there ever were."""
        most = query.page_of(limit, "alerts")
        return await self._read(
            lambda tx: store.alerts.list_alerts(
                tx, in_force=in_force, before=before, limit=most
            )
        )

    async def get_alert(self, alert: int) -> Alert:
        _check_id("alert", alert)
        return await self._read(lambda tx: store.alerts.get_alert(tx, alert))

    async def acknowledge_alert(self, alert: int, *, actor: str = ACTOR) -> Alert:
        """Say that somebody knows of it; the first who says so stays."""
        _check_id("alert", alert)
        database = await self._open()
        return await database.write(
            lambda tx: store.alerts.acknowledge_alert(tx, alert, actor=actor),
            verb="acknowledge_alert",
        )

    async def silence_alert(self, alert: int, lasting: Any, *, actor: str = ACTOR) -> Alert:
        """Nobody is told of it for so long, nor of the next one of its rule and subject."""
        _check_id("alert", alert)
        length = alerts.silence(lasting)
        database = await self._open()
        return await database.write(
            lambda tx: store.alerts.silence_alert(tx, alert, length, actor=actor),
            verb="silence_alert",
        )

    # — schedules and retention —

    async def schedules(self) -> list[Schedule]:
        return await self._read(store.list_schedules)

    async def pause_schedule(self, name: str, *, actor: str = ACTOR) -> Schedule:
        """It ticks no more until it is unpaused."""
        database = await self._open()
        return await database.write(
            lambda tx: store.pause_schedule(tx, name, actor=actor), verb="pause_schedule"
        )

    async def unpause_schedule(self, name: str, *, actor: str = ACTOR) -> Schedule:
        """It goes on with its next tick; those of the pause are not made up for."""
        database = await self._open()
        return await database.write(
            lambda tx: store.unpause_schedule(tx, name, actor=actor), verb="unpause_schedule"
        )

    async def run_schedule(self, name: str, *, actor: str = ACTOR) -> Job:
        """One run now, beside its ticks."""
        database = await self._open()
        return await database.write(
            lambda tx: store.run_schedule(tx, name, actor=actor), verb="run_schedule"
        )

    async def remove_schedule(self, name: str, *, actor: str = ACTOR) -> None:
        """It is no more, until some process that declares it starts again."""
        database = await self._open()
        await database.write(
            lambda tx: store.remove_schedule(tx, name, actor=actor), verb="remove_schedule"
        )

    async def retire(
        self, *, done: Any = None, dead: Any = None, events: Any = None, actor: str = ACTOR
    ) -> Retired:
        """Delete now what ended longer ago than this; None keeps for ever."""
        lengths = {"done": done, "dead": dead, "events": events}
        keep = Keep(**{k: None if v is None else seconds(v) for k, v in lengths.items()})
        return await Retention(keep, actor, self._keeper).run_once(await self._open())

    async def disk(self) -> query.Disk:
        """What takes how much room, and what the last pass of retention deleted."""
        return await self._read(query.disk)

    # — limits —

    async def set_limit(self, key: str, cap: int | None, *, actor: str = ACTOR) -> None:
        """Let so many jobs of this key run at once from now on, whatever the code says; None: what
        the code says holds again."""
        wanted = check_key(key)
        most = None if cap is None else check_cap(cap)
        database = await self._open()
        await database.write(
            lambda tx: store.set_limit(tx, wanted, most, actor=actor), verb="set_limit"
        )

    async def limits(self, *, after: str = "", limit: int = 50) -> list[query.LimitSeen]:
        """By their keys, a page at a time."""
        return await self._read(lambda tx: query.list_limits(tx, after=after, limit=limit))

    # — the database —

    async def upgrade(self) -> migrations.Status:
        database = self._opened()
        status = await migrations.upgrade(database)
        for room in self._rooms:
            await migrations.upgrade(database, room=room)
        return status

    async def close(self) -> None:
        """Let go of the database. A runner that still runs is ended: others take up its jobs."""
        await self._end_runners()
        await asyncio.get_running_loop().run_in_executor(None, self.dispatcher.close)
        await self._keeper.close()
        await asyncio.get_running_loop().run_in_executor(None, self.isolate.close)
        for tools in filter(None, self.tools.values()):
            await tools.close()
        if self.traces is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.traces.flush)
        if self._database is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._database.close)
            self._database = None
            self._ready = False

    async def _end_runners(self) -> None:
        tasks = {task for task in self._runners.values() if task is not None}
        others = tasks - {asyncio.current_task()}
        if any(task.get_loop() is not asyncio.get_running_loop() for task in others):
            raise BadInput(
                say(
                    "a runner of this object runs on the event loop of another thread, which"
                    " alone can end it: call stop(), wait for it there, then close"
                )
            )
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        for runner in self._hinted:
            await runner.end()
        self._hinted.clear()

    async def __aenter__(self) -> "Retoma":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def database_id(self) -> str:
        """By which two databases tell themselves apart: for keys that leave the house."""
        return await self._read(store.database_id)

    async def database(self) -> Database:
        """The open database, at the schema this retoma needs."""
        return await self._open()

    def _opened(self) -> Database:
        me = os.getpid()
        if self._database is not None and self._owner == me:
            return self._database
        with self._opening.setdefault(me, threading.Lock()):  # several threads may ask first
            if self._owner != me:
                # Forked: the connections are our parent's, who would lose them if we closed them.
                self._inherited, self._database, self._ready = self._database, None, False
                self._owner = me
            if self._database is None:
                # A clock in the hand of a test moves the database's time too.
                fake = self._clock.moved() is not None
                moved = (lambda: self._clock.moved() or 0) if fake else None
                self._use(db.open(self.url, moved=moved, patience=self.patience))
            return cast("Database", self._database)

    def _use(self, database: Database) -> None:
        self._submitter = Submitter(database)
        self._database = database

    async def _open(self) -> Database:
        database = self._opened()
        if not self._ready:
            for room in (ENGINE, *self._rooms):
                await migrations.ready(database, room)
            if self._clock.moved() is not None:
                await database.write(lambda tx: tx.run(db.MOVABLE_CLOCK), verb="test")
            self._ready = True
        if self._undeclared:
            await self._declare(database)
        return database

    async def _declare(self, database: Database) -> None:
        """What the code says of schedules and references, for every process to know."""
        plans, references = list(self._plans.values()), list(self._references)

        def declare(tx: db.Transaction) -> None:
            store.declare_schedules(tx, plans, actor=ACTOR)
            store.keep_references(tx, references)

        await database.write(declare, verb="declare")
        self._undeclared = False

    async def _read(self, fn: Callable[[db.Transaction], T]) -> T:
        return await (await self._open()).read(fn)


@cache
def _own_version() -> str:
    return version("retoma")


async def can_write(database: Database, ids: Ids) -> None:
    """Return if something of some pages can be written now; else raise why not."""
    free = database.free_space()
    if free is not None and free < LEAST_FREE:
        raise Full(no_room(f"{free} bytes are free on its disk"))
    name, filler = f"probe {ids.new()}", ids.unguessable(FILLER)

    def grow(tx: db.Transaction) -> None:
        store.try_write(tx, name, filler)
        raise _Undone  # committed, its pages would be free for the next probe, and prove nothing

    with suppress(_Undone):
        await database.write(grow, verb="ready", patience=0)
    await database.write(lambda tx: store.try_write(tx, name, b""), verb="ready", patience=0)


class _Undone(Exception):
    """It could be written, and is not."""


def _check_id(what: str, id_: object) -> None:
    """What cannot be an id is nobody's, and no database need be asked."""
    if not isinstance(id_, int) or not 0 < id_ < 2**63:
        raise NotFound(say("there is no {what} {id!r}", what=what, id=id_))


def _state(state: State | str) -> State:
    try:
        return State(state)
    except ValueError:
        raise BadInput(
            say(
                "no state is called {state!r}; there are {known}",
                state=state,
                known=", ".join(State),
            )
        ) from None
