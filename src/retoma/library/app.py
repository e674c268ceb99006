"""Register, submit, run, ask. Opens nothing until it is used."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from random import Random
from typing import Any, TypeVar, Unpack, overload

from retoma.blob_stores import DATABASE, open_blob_store
from retoma.db import Database, DatabaseError, migrations
from retoma.db.migrations import PublicViews, Room
from retoma.dispatch.polling import Dispatcher, Polling
from retoma.engine import query, store
from retoma.engine.costs.accounts import BudgetsDesk, Costs, Prices, Reuse
from retoma.engine.handlers.kinds import Kind, Kinds, LogFields, job
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.limits.controls import BreakersDesk, KnobsDesk, Pools, RatesDesk
from retoma.engine.ops.batches import Batch
from retoma.engine.ops.pauses import PausesDesk
from retoma.engine.ops.schedules import TIMEZONE, plan
from retoma.engine.ports import Clock, Ids, chance
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, Code, IllegalMove
from retoma.engine.rules.gates import Limit
from retoma.engine.rules.job import Job
from retoma.engine.rules.reasons import check_reason
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.engine.run.hinted import HintedRunner
from retoma.engine.run.runner import Runner, RunnerParts
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.run.submission import (
    ACTOR,
    BatchOptions,
    SubmitOptions,
    checked,
    new_job,
)
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Asked, Missed, Reference, Refers, hints
from retoma.engine.store.hints import Hint
from retoma.engine.traces import Traces
from retoma.engine.writing.evidence import Keeper, Writes
from retoma.engine.writing.once import Once
from retoma.library.alerts import Alerts
from retoma.library.batches import Batches
from retoma.library.bulk import Bulk
from retoma.library.checks import check_id, state_of
from retoma.library.connection import Connection
from retoma.library.dead import DeadLetters
from retoma.library.evidence import EvidenceFiles
from retoma.library.free_space import can_write
from retoma.library.insights import Insights
from retoma.library.limits import Limits
from retoma.library.registered import Registered
from retoma.library.remote import RemoteWork
from retoma.library.retention import Retention
from retoma.library.runners import Runners
from retoma.library.schedules import Schedules
from retoma.library.submissions import Submissions
from retoma.manifest import Application, load
from retoma.words import say

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


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
    """Jobs of named steps on one database.

    Jobs are asked for and steered here; everything else by its noun: `app.batches`, `app.dead`,
    `app.pools`, `app.schedules`, `app.runners`, `app.limits`, `app.alerts`, and so on.
    """

    alerts: Alerts
    batches: Batches
    breakers: BreakersDesk
    budgets: BudgetsDesk
    bulk: Bulk
    costs: Costs
    dead: DeadLetters
    evidence: EvidenceFiles
    insights: Insights
    knobs: KnobsDesk
    limits: Limits
    pauses: PausesDesk
    pools: Pools
    prices: Prices
    rates: RatesDesk
    remote: RemoteWork
    retention: Retention
    reuse: Reuse
    runners: Runners
    schedules: Schedules

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

        `evidence`: where its bytes are stored: `database`, `folder:///path` or
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
        self.dispatcher: Dispatcher = Polling()
        self.clock = clock or Clock()  # decides when to look
        self.ids = ids or Ids()
        self.patience = None if patience is None else seconds(patience)
        self.traces = traces
        self.version = checked("version", version)
        self.isolate = Isolate()  # for what reads bytes of strangers outside of a job
        self._rng = rng
        where = evidence or os.environ.get("RETOMA_EVIDENCE") or DATABASE
        self._keeper = Keeper(open_blob_store(where), self.ids)
        self.connection = Connection(url, self.clock, self.patience, Registered())
        self._submissions = Submissions(self.connection, self.clock, self.ids)
        self._runners: dict[Runner, asyncio.Task[Any] | None] = {}
        self._hinted: list[HintedRunner] = []
        self._build_groups()

    def _build_groups(self) -> None:
        connection, ready = self.connection, self.connection.ready
        registered = connection.registered
        self.kinds, self.tools = registered.kinds, registered.tools
        self.alerts = Alerts(connection)
        self.batches = Batches(connection, self.clock)
        self.breakers = BreakersDesk(ready, ACTOR)
        self.budgets = BudgetsDesk(ready, ACTOR, self.timezone)
        self.bulk = Bulk(connection)
        self.costs = Costs(ready, self.timezone)
        self.dead = DeadLetters(connection)
        self.evidence = EvidenceFiles(connection, self._keeper)
        self.insights = Insights(connection, self.timezone)
        self.knobs = KnobsDesk(ready, ACTOR, registered.knobs)
        self.limits = Limits(connection)
        self.pauses = PausesDesk(ready, ACTOR, registered.kinds, self.clock)
        self.pools = Pools(ready, ACTOR)
        self.prices = Prices(ready, ACTOR)
        self.rates = RatesDesk(ready, ACTOR)
        self.remote = RemoteWork(connection)
        self.retention = Retention(connection, self._keeper)
        self.reuse = Reuse(ready, ACTOR)
        self.runners = Runners(connection)
        self.schedules = Schedules(connection)

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

        def registered(handler: Any) -> Any:
            made = job(**how)(handler)
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
        Ticks that no runner could do in time are made up for by one run, or with `missed="skip"` by
        none.
        """
        registered = self.connection.registered
        if name in registered.plans:
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
        registered.plans[made.name] = made
        registered.undeclared = True

    def install(self, application: Application, tools: Any = None) -> None:
        """Take an application in: its kinds, its settings, its tables. `tools`: for its handlers."""
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
            room = room_of(application, self._public_views)
            self.connection.registered.rooms.append(room)
            self.connection.check_schema_again()

    def register_all_of(self, other: "Retoma") -> None:
        """Register what is registered with `other`, which has opened nothing yet."""
        self.connection.registered = other.connection.registered.shared()
        self._build_groups()

    def refers(self, table: str, column: str, to: Refers | str = Refers.JOB) -> None:
        """Say that a column of yours holds ids of jobs, or of batches: what it names is never
        deleted by retention. On PostgreSQL name the schema too, if it is not `public`."""
        if to not in list(Refers):
            raise BadInput(say("a column refers to a 'job' or a 'batch', not {to!r}", to=to))
        registered = self.connection.registered
        registered.references.append(Reference(table, column, Refers(to)))
        registered.undeclared = True

    # — submitting —

    async def submit(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payload: Any = None,
        **options: Unpack[SubmitOptions],
    ) -> Job:
        """One job, committed when this returns. The same key and payload give the same job."""
        spans = SubmitSpans.of(self.traces)
        made = await self._submissions.submit(self.kinds.of(kind), payload, options, spans)
        self._hint([made])
        return made

    async def submit_many(
        self,
        kind: "Kind | Callable[..., Any] | str",
        payloads: Iterable[Any],
        **options: Unpack[BatchOptions],
    ) -> Batch:
        """A batch of jobs, all of them or none.

        Up to 100,000 jobs are one transaction. More come in by slices, so that no other writer waits
        long: none of them is there before all have come in, and where this process dies meanwhile,
        the same key submits them again.
        """
        spans = SubmitSpans.of(self.traces)
        wanted = self.kinds.of(kind)
        made = await self._submissions.submit_many(wanted, payloads, options, spans)
        await self._hint_batch(made.id)
        return made

    def submit_on(
        self,
        connection: Any,
        kind: "Kind | Callable[..., Any] | str",
        payload: Any = None,
        **options: Unpack[SubmitOptions],
    ) -> Job:
        """One job in the open transaction of your own psycopg connection (PostgreSQL only).

        Not async, and commits nothing: the job is there when you commit, and runners are notified
        then. If it is refused, your transaction goes on as if it had not been asked.
        """
        spans, wanted = SubmitSpans.of(self.traces), self.kinds.of(kind)
        return self._submissions.submit_on(connection, wanted, payload, options, spans)

    async def write(self, fn: Callable[[Transaction], T]) -> T:
        """Your own statements and submissions in one transaction: all of it, or nothing.

        `fn` is a plain function and does nothing but ask its transaction: it runs where all writes
        of this process go through, and is called again where the database was away or busy and
        nothing had been changed. What it raises undoes everything: no job, no event, no wake-up.
        """
        return await self._write(await self.database(), fn)

    async def write_once(
        self, asked: Asked, fn: Callable[[Transaction], T], answer: Callable[[T], Any]
    ) -> T:
        """As `write`, but only for the first caller with this key; any other gets by `Answered` what
        `answer` made of what the first one got."""
        return await self._write(Once(await self.database(), asked, answer), fn)

    async def _write(self, database: Writes, fn: Callable[[Transaction], T]) -> T:
        write = self._submissions.lent_write(fn, SubmitSpans.of(self.traces))
        given = await write.commit(database)
        if write.last is not None:
            self._hint(write.last.jobs)
            for batch in write.last.batches:
                await self._hint_batch(batch)
        return given

    def _hint(self, jobs: Iterable[Job]) -> None:
        """After their commit: a dispatcher learns of jobs that may run now."""
        ready = [Hint(job.queue, job.id) for job in jobs if job.due]
        if ready and self.dispatcher.most:
            self.dispatcher.hint(ready)

    async def _hint_batch(self, batch: int) -> None:
        most = self.dispatcher.most
        if most:
            with suppress(DatabaseError):  # they are submitted, and found without a hint too
                ready = await self.connection.read(
                    lambda tx: hints.ready_in_batch(tx, batch, most)
                )
                self.dispatcher.hint(ready)

    # — running —

    async def run(
        self, *, until_idle: bool = False, kinds: Kinds | None = None, **options: Any
    ) -> None:
        """One runner in this process; see `RunnerOptions`. Returns when stopped, or when nothing waits.

        `kinds`: only these, instead of all that are registered.
        """
        runner = Runner(
            await self._runner_parts(self.kinds if kinds is None else kinds, options)
        )
        self._runners[runner] = asyncio.current_task()
        try:
            await runner.run(until_idle=until_idle)
        finally:
            del self._runners[runner]

    async def hinted(self, **options: Any) -> HintedRunner:
        """A runner that claims only jobs it gets hints for; for dispatchers."""
        runner = HintedRunner(await self._runner_parts(self.kinds, options))
        self._hinted.append(runner)
        return runner

    async def _runner_parts(self, kinds: Kinds, options: Mapping[str, Any]) -> RunnerParts:
        """What a runner of this app works with."""
        kinds.check_children()
        program = _own_version()
        known = {
            "timezone": self.timezone,
            "version": program if self.version is None else f"{program}, app {self.version}",
        }
        return RunnerParts(
            database=await self.database(),
            kinds=kinds,
            options=RunnerOptions(**{**known, **options}),
            clock=self.clock,
            ids=self.ids,
            rng=self._rng or chance(),
            keeper=self._keeper,
            traces=self.traces,
            declared=self.connection.registered.knobs,
        )

    def stop(self) -> None:
        """Ask every runner of this object to leave: nothing more is claimed."""
        for runner in self._runners:
            runner.stop()

    # — one job, and searching for jobs —

    async def get(self, job: int) -> Job:
        check_id("job", job)
        return await self.connection.read(lambda tx: store.get_job(tx, job))

    async def see(
        self, job: int, *, before: int | None = None, limit: int = 100
    ) -> query.JobSeen:
        """A job with the newest of its timeline, attempts and steps, at one instant; `before`: its
        timeline before that line."""
        check_id("job", job)
        return await self.connection.read(
            lambda tx: query.see_job(tx, job, before=before, limit=limit)
        )

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
        wanted = None if state is None else state_of(state)
        return await self.connection.read(
            lambda tx: query.list_jobs(
                tx, state=wanted, kind=kind, batch=batch, before=before, limit=limit
            )
        )

    async def search(
        self, search: query.Search, *, before: int | None = None, limit: int = 50
    ) -> query.Page:
        """Jobs that a search finds, newest first, and where the next page begins."""
        return await self.connection.read(
            lambda tx: query.search_jobs(tx, search, before=before, limit=limit)
        )

    async def count(self, search: query.Search) -> query.Count:
        """How many jobs a search finds; beyond what is worth looking at: at least how many."""
        return await self.connection.read(lambda tx: query.count_search(tx, search))

    async def events(
        self, job: int, *, after: int = 0, limit: int | None = None
    ) -> list[query.Event]:
        """The timeline of a job; `after`: only what follows that line of it."""
        check_id("job", job)
        return await self.connection.read(
            lambda tx: query.job_events(tx, job, after=after, limit=limit)
        )

    async def attempts(self, job: int) -> list[query.AttemptSeen]:
        check_id("job", job)
        return await self.connection.read(lambda tx: query.job_attempts(tx, job))

    async def steps(self, job: int) -> list[query.StepSeen]:
        check_id("job", job)
        return await self.connection.read(lambda tx: query.job_steps(tx, job))

    async def explain(self, job: int) -> str:
        """Why it is not running, in one sentence, and what would change it."""
        check_id("job", job)
        return await self.connection.read(lambda tx: query.explain(tx, job, self.timezone))

    async def result(self, job: int) -> Any:
        """What a done job returned, in the type that its function says it returns."""
        found = await self.get(job)
        if found.state is not State.DONE:
            raise IllegalMove(
                say("job {job} is {state} and has no result", job=job, state=found.state)
            )
        return self.kinds.result(found)

    async def cancel(self, job: int, *, actor: str = ACTOR) -> State:
        """CANCELED: it never runs again. RUNNING: its runner was asked, and ends it."""
        check_id("job", job)
        return await self.connection.write(
            lambda tx: store.cancel_job(tx, job, actor=actor), verb="cancel"
        )

    async def retry(
        self, job: int, *, fresh: bool = False, only_dead: bool = False, actor: str = ACTOR
    ) -> Job:
        """The next generation of an ended job; its committed steps are kept unless `fresh`.

        `only_dead` refuses a job that has ended in any other way.
        """
        check_id("job", job)
        return await self.connection.write(
            lambda tx: store.again(tx, job, actor=actor, fresh=fresh, only_dead=only_dead),
            verb="again",
        )

    async def resume(self, job: int, *, actor: str = ACTOR) -> Job:
        """Let a parked job wait for a runner again."""
        check_id("job", job)
        return await self.connection.write(
            lambda tx: store.unpark(tx, job, actor=actor), verb="unpark"
        )

    async def skip(self, job: int, why: str, *, actor: str = ACTOR) -> Job:
        """End a job that waits, is parked or is dead without doing it."""
        check_id("job", job)
        reason = check_reason(why)
        return await self.connection.write(
            lambda tx: store.skip_job(tx, job, reason, actor=actor), verb="skip"
        )

    async def audit(
        self,
        search: query.AuditSearch,
        *,
        after: query.Spot | None = None,
        limit: int = 50,
    ) -> query.AuditPage:
        """What people did, newest first, a page at a time."""
        return await self.connection.read(
            lambda tx: query.search_audit(tx, search, after=after, limit=limit)
        )

    # — the database —

    async def database(self) -> Database:
        """The open database, at the schema this program needs."""
        return await self.connection.ready()

    async def database_id(self) -> str:
        """The name of this database, different from any other's: for keys that other systems keep."""
        return await self.connection.read(store.database_id)

    async def ready(self) -> None:
        """Return if jobs could be written to the database now; else raise what prevents it."""
        await can_write(await self.database(), self.ids)

    async def upgrade(self) -> migrations.Status:
        """Bring the schema to what this program needs."""
        return await self.connection.upgrade()

    async def close(self) -> None:
        """Close the database. A runner that still runs is ended: others take up its jobs."""
        await self._end_runners()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.dispatcher.close)
        await self._keeper.close()
        await loop.run_in_executor(None, self.isolate.close)
        for tools in filter(None, self.tools.values()):
            await tools.close()
        if self.traces is not None:
            await loop.run_in_executor(None, self.traces.flush)
        await self.connection.close()

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


@cache
def _own_version() -> str:
    return version("retoma")
