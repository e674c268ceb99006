"""The library face: register, submit, run, ask. Opens nothing until it is used."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar, cast, overload

from retoma import db
from retoma.codec import digest
from retoma.db import Database, ReplyLost, migrations
from retoma.engine import insights, store
from retoma.engine.batch import Batch
from retoma.engine.duration import seconds
from retoma.engine.errors import BadInput, Code, IdempotencyMismatch, NotFound, Unsure
from retoma.engine.job import Job
from retoma.engine.kind import PRIORITIES, Kind, Kinds, job
from retoma.engine.ports import Clock, Ids
from retoma.engine.reach import BreakersDesk, Pools, RatesDesk
from retoma.engine.remote import checked_handle
from retoma.engine.retry import Retry
from retoma.engine.runner import Knobs, Runner
from retoma.engine.states import State
from retoma.engine.store import NewJob, Submission
from retoma.engine.submitter import Submitter

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

KEY_LENGTH = 500
NAME_LENGTH = 200
ACTOR = "library"


class Retoma:
    """Jobs of named steps on one database."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        rng: Random | None = None,
    ) -> None:
        self.url = url
        self.kinds = Kinds()
        self._clock = clock or Clock()
        self._ids = ids or Ids()
        self._rng = rng
        self._database: Database | None = None
        self._ready = False
        self._runners: dict[Runner, asyncio.Task[Any] | None] = {}

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
        timeout: Any = None,
        retry: Retry | None = None,
        codes: Mapping[str, Code] | None = None,
    ) -> Callable[[F], F]: ...
    def job(self, fn: Any = None, /, **how: Any) -> Any:  # type: ignore[misc]
        """Make a job of a function and remember it: `@app.job` or `@app.job(timeout="5m")`."""

        def registered(story: Any) -> Any:
            made = job(**how)(story)
            self.kinds.add(made.kind)
            return made

        return registered if fn is None else registered(fn)

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
    ) -> Job:
        """One job, committed when this returns. The same key and payload give the same job.

        `deadline`: a length of time from now, waits and all attempts included; a job that has not
        ended by then is buried.
        """
        wanted = self.kinds.of(kind)
        about = _submission(wanted, priority, run_at, delay, deadline, correlation)
        new = _new_job(wanted, payload, key)
        database = await self._open()
        try:
            made = await self._submitter.submit(about, new)
        except ReplyLost as error:
            if key is None:
                raise Unsure(
                    f"{wanted.name}: the connection broke while the job was being committed; it"
                    " may have been accepted. Submit with key=… and asking again is safe"
                ) from error
            made = None
        if made is not None:
            return made
        return await database.write(lambda tx: store.submit_job(tx, about, new), verb="submit")

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
    ) -> Batch:
        """A batch of jobs, all of them or none, in one transaction."""
        wanted = self.kinds.of(kind)
        about = _submission(wanted, priority, run_at, delay, deadline, correlation)
        listed = payloads if isinstance(payloads, Sequence) else list(payloads)
        jobs = None if keys is None else _new_jobs(wanted, listed, keys)
        batch_key = _checked("key", key) or self._ids.new()
        batch_name = (
            _checked("batch name", name, NAME_LENGTH) or f"{wanted.name} {batch_key[:8]}"
        )
        database = await self._open()

        def submit(tx: db.Transaction) -> Batch:
            batch, opened = store.open_batch(
                tx, name=batch_name, key=batch_key, kind=wanted.name
            )
            if not opened:
                return self._batch(batch, batch_name, wanted.name, 0, len(listed))
            inside = store.in_batch(about, batch)
            if jobs is None:
                texts = (_encoded(wanted, payload) for payload in listed)
                new, already = store.submit_jobs(tx, inside, texts), 0
            else:
                new, already = store.submit_keyed_jobs(tx, inside, jobs)
            return self._batch(batch, batch_name, wanted.name, new, already)

        while True:
            try:
                return await database.write(submit, verb="submit_many")
            except ReplyLost:
                continue  # the batch's key tells whether it happened

    def _batch(self, id_: int, name: str, kind: str, new: int, already: int) -> Batch:
        return Batch(id_, name, kind, new, already, self._opened(), self._clock)

    # — running —

    async def run(self, *, until_idle: bool = False, **knobs: Any) -> None:
        """One runner in this process; see Knobs. Returns when stopped, or when nothing waits."""
        database = await self._open()
        runner = Runner(
            database,
            self.kinds,
            Knobs(**knobs),
            clock=self._clock,
            ids=self._ids,
            rng=self._rng,
        )
        self._runners[runner] = asyncio.current_task()
        try:
            await runner.run(until_idle=until_idle)
        finally:
            del self._runners[runner]

    def stop(self) -> None:
        """Ask every runner of this object to leave: nothing more is claimed."""
        for runner in self._runners:
            runner.stop()

    # — asking and steering —

    async def get(self, job: int) -> Job:
        _check_id("job", job)
        return await self._read(lambda tx: store.get_job(tx, job))

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
            lambda tx: insights.list_jobs(
                tx, state=wanted, kind=kind, batch=batch, before=before, limit=limit
            )
        )

    async def counts(self) -> dict[State, int]:
        return await self._read(insights.count_jobs)

    async def events(self, job: int) -> list[insights.Event]:
        _check_id("job", job)
        return await self._read(lambda tx: insights.job_events(tx, job))

    async def attempts(self, job: int) -> list[insights.AttemptSeen]:
        _check_id("job", job)
        return await self._read(lambda tx: insights.job_attempts(tx, job))

    async def steps(self, job: int) -> list[insights.StepSeen]:
        _check_id("job", job)
        return await self._read(lambda tx: insights.job_steps(tx, job))

    async def runners(self) -> list[insights.RunnerSeen]:
        return await self._read(insights.list_runners)

    async def refused_writes(self) -> int:
        return await self._read(insights.refused_writes)

    async def explain(self, job: int) -> str:
        """Why it is not running, in one sentence, and what would change it."""
        _check_id("job", job)
        return await self._read(lambda tx: insights.explain(tx, job))

    async def batches(self, *, before: int | None = None, limit: int = 50) -> list[Batch]:
        """Newest first."""
        seen = await self._read(
            lambda tx: insights.list_batches(tx, before=before, limit=limit)
        )
        return [self._batch(each.id, each.name, each.kind, 0, 0) for each in seen]

    async def batch(self, batch: int) -> Batch:
        _check_id("batch", batch)
        seen = await self._read(lambda tx: insights.get_batch(tx, batch))
        return self._batch(seen.id, seen.name, seen.kind, 0, 0)

    async def cancel(self, job: int, *, actor: str = ACTOR) -> State:
        """CANCELED: it never runs again. RUNNING: its runner was asked, and ends it."""
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.cancel_job(tx, job, actor=actor), verb="cancel"
        )

    async def retry(self, job: int, *, fresh: bool = False, actor: str = ACTOR) -> Job:
        """The next generation of an ended job; its committed steps are kept unless `fresh`."""
        _check_id("job", job)
        database = await self._open()
        return await database.write(
            lambda tx: store.again(tx, job, actor=actor, fresh=fresh), verb="again"
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
        """The remote work of a parked job is this one: go on asking after it."""
        _check_id("job", job)
        text = checked_handle(handle)
        database = await self._open()
        return await database.write(
            lambda tx: store.adopt(tx, job, text, actor=actor), verb="adopt"
        )

    # — the database —

    async def upgrade(self) -> migrations.Status:
        return await migrations.upgrade(self._opened())

    async def close(self) -> None:
        """Let go of the database. A runner that still runs is ended: others take up its jobs."""
        await self._end_runners()
        if self._database is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._database.close)
            self._database = None
            self._ready = False

    async def _end_runners(self) -> None:
        tasks = {task for task in self._runners.values() if task is not None}
        others = tasks - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)

    async def __aenter__(self) -> "Retoma":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def database(self) -> Database:
        """The open database, at the schema this retoma needs."""
        return await self._open()

    def _opened(self) -> Database:
        if self._database is None:
            self._database = db.open(self.url)
            self._submitter = Submitter(self._database)
        return self._database

    async def _open(self) -> Database:
        database = self._opened()
        if not self._ready:
            await migrations.ready(database)
            self._ready = True
        return database

    async def _read(self, fn: Callable[[db.Transaction], T]) -> T:
        return await (await self._open()).read(fn)


def _submission(
    kind: Kind,
    priority: int | None,
    run_at: datetime | None,
    delay: Any,
    deadline: Any,
    correlation: str | None,
) -> Submission:
    if priority is not None and priority not in PRIORITIES:
        raise BadInput(f"a priority is from -1000 to 1000, not {priority!r}")
    if run_at is not None and delay is not None:
        raise BadInput("run_at and delay say the same thing twice: give one of them")
    if run_at is not None and not isinstance(run_at, datetime):
        raise BadInput(f"run_at is a datetime with a time zone, not {run_at!r}")
    if run_at is not None and run_at.tzinfo is None:
        raise BadInput(f"run_at needs a time zone: {run_at.isoformat()} could be any instant")
    wait = None if delay is None else seconds(delay)
    lasts = None if deadline is None else _lasting(deadline)
    if wait is not None and lasts is not None and wait >= lasts:
        raise BadInput(f"a delay of {wait:g} s leaves nothing of a deadline of {lasts:g} s")
    return Submission(
        kind=kind.name,
        version=kind.version,
        queue=kind.queue,
        priority=kind.priority if priority is None else priority,
        run_at=None if run_at is None else run_at.astimezone(UTC),
        delay=wait,
        lasts=lasts,
        correlation=_checked("correlation", correlation),
        actor=ACTOR,
    )


def _lasting(deadline: Any) -> float:
    length = seconds(deadline)
    if not length:
        raise BadInput("a deadline of no length leaves no time to run at all")
    return length


def _encoded(kind: Kind, payload: Any) -> str:
    if kind.takes_nothing and payload is not None:
        raise BadInput(f"{kind.name} takes no payload")
    return kind.encoded(payload)


def _new_job(kind: Kind, payload: Any, key: str | None) -> NewJob:
    text = _encoded(kind, payload)
    if _checked("key", key) is None:
        return NewJob(text)
    return NewJob(text, key, digest(text))


def _new_jobs(kind: Kind, payloads: Sequence[Any], keys: Sequence[str]) -> list[NewJob]:
    if len(keys) != len(payloads):
        raise BadInput(f"{len(payloads)} payloads and {len(keys)} keys: one key for each")
    by_key: dict[str, NewJob] = {}
    for payload, key in zip(payloads, keys, strict=True):
        new = _new_job(kind, payload, key)
        before = by_key.setdefault(key, new)
        if before.hash != new.hash:
            raise IdempotencyMismatch(
                f"{kind.name}: the key {key} stands for two payloads in this submission;"
                " nothing was submitted"
            )
    return list(by_key.values())


def _checked(what: str, text: str | None, most: int = KEY_LENGTH) -> str | None:
    if text is None:
        return None
    given = cast("object", text)
    if not isinstance(given, str) or not 0 < len(given) <= most or not given.isprintable():
        raise BadInput(f"a {what} has 1 to {most} printable characters: {text!r}")
    return text


def _check_id(what: str, id_: object) -> None:
    """What cannot be an id is nobody's, and no database need be asked."""
    if not isinstance(id_, int) or not 0 < id_ < 2**63:
        raise NotFound(f"there is no {what} {id_!r}")


def _state(state: State | str) -> State:
    try:
        return State(state)
    except ValueError:
        raise BadInput(f"no state is called {state!r}; there are {', '.join(State)}") from None
