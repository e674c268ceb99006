"""The document's own names for code that is being moved: a session, a quote, a checkpoint manager.

    from retoma.apps.quotes.face import CheckpointManager, ProcessingCheckpoint, SessionLocal

Plain and synchronous over the engine, wherever it is called: in a script, in a child of Celery's pool,
beside a loop. A quote is claimed before anything is said of it, also where it is resumed; its lease is
the document's ten minutes and is renewed by whatever is said of it. Who is late is refused.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar

from retoma import settings
from retoma.apps.quotes import moved, store
from retoma.apps.quotes.model import (
    KIND,
    NEXT,
    ProcessingCheckpoint,
    QuoteStatus,
)
from retoma.codec import Unstorable, encode
from retoma.db import Database, Transaction, migrations
from retoma.db.migrations import Room
from retoma.engine.ports import Process
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import BadInput, IllegalMove, LeaseLost, NotFound
from retoma.engine.rules.job import Claim, Job, Memory, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, State
from retoma.engine.run import manual_claim
from retoma.engine.run.manual_claim import Lone
from retoma.engine.store import Boot, get_job, move_runner
from retoma.library import Retoma
from retoma.toolkit.beside import Beside, one_at_a_time
from retoma.words import say

__all__ = [
    "CheckpointManager",
    "LeaseLost",
    "ProcessingCheckpoint",
    "QuoteCanceled",
    "QuoteRequest",
    "QuoteStatus",
    "QuoteTaken",
    "Session",
    "SessionLocal",
    "SessionMaker",
]

T = TypeVar("T")

LEASE: Final = 600.0  # seconds: the document's ten minutes
ROOM: Final = Room("quotes", "retoma.apps.quotes.migrations")
KNOWS: Final = (f"{KIND}@1",)
PAID: Final = ("claude_payload_json", "google_shopping_response_json")
ERROR: Final = "moved_code"  # the code of an end in ERROR that names none


class QuoteTaken(IllegalMove):
    """Somebody else is at work on it, and its lease is valid: nothing was done here."""


class QuoteCanceled(IllegalMove):
    """Somebody wants it canceled, and so it has ended: there is nothing left to do."""


@dataclass(slots=True, kw_only=True, eq=False)
class QuoteRequest:
    """A row of the document's table.

    `claude_payload_json`, `google_shopping_response_json`, `resume_data` and `result` may be assigned: they
    are kept with the next checkpoint, or by `db.commit()`.
    """

    id: int
    batch_request_id: int | None
    codigo: str | None
    tipo: str
    descricao: str
    status: QuoteStatus
    processing_checkpoint: ProcessingCheckpoint | None
    last_heartbeat: datetime | None
    worker_id: str | None
    resume_data: dict[str, Any] | None
    started_at: datetime | None
    completed_at: datetime | None
    attempt_number: int
    claude_payload_json: Any
    google_shopping_response_json: Any
    result: Any
    error_code: str | None
    created_by: str
    created_at: datetime | None
    job: int | None
    _kept: dict[str, str] = field(default_factory=dict, repr=False, init=False)

    def changed(self, name: str) -> bool:
        """Whether it was assigned, or changed in place, since it was last read or kept."""
        return _text(getattr(self, name)) != self._kept.get(name)

    def read(self, told: Mapping[str, Any]) -> None:
        """All of it anew, but for what was assigned and is not kept yet."""
        for name, value in told.items():
            if name not in ASSIGNED or name not in self._kept or not self.changed(name):
                setattr(self, name, value)
                if name in ASSIGNED:
                    self._kept[name] = _text(value)

    def forget(self) -> None:
        """Nothing of it is to be kept but what is read next."""
        self._kept.clear()

    def keeps(self, name: str) -> None:
        self._kept[name] = _text(getattr(self, name))


ASSIGNED: Final = (*PAID, "resume_data", "result")
SHOWN: Final = tuple(each.name for each in fields(QuoteRequest) if each.init)


# — a session —


class SessionMaker:
    """`SessionLocal()`: a session on the database that the settings name. One way to it for each process, opened
    by the first who asks, also after a fork; a process that ends need not close it."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._home: tuple[int, _Home] | None = None
        self._opening = one_at_a_time()

    def __call__(self) -> "Session":
        with self._opening:  # threads that come together have one home
            if self._home is None or self._home[0] != os.getpid():
                self._home = os.getpid(), _Home(self._url or settings.read().database_url)
            return Session(self._home[1])

    def close(self) -> None:
        """Let go of the database. What is held is taken back by others."""
        home, self._home = self._home, None
        if home is not None and home[0] == os.getpid():
            home[1].close()


class _Home:
    """The database, asked from code that is not async."""

    def __init__(self, url: str) -> None:
        self._beside = Beside()
        self._retoma = Retoma(url)
        self._ready = False

    def read(self, fn: Callable[[Transaction], T]) -> T:
        return self._beside.ask(self._read(fn))

    def write(self, fn: Callable[[Transaction], T], verb: str) -> T:
        return self._beside.ask(self._write(fn, verb))

    def explain(self, job: int) -> str:
        return self._beside.ask(self._retoma.explain(job))

    def new_id(self) -> str:
        return self._retoma.ids.new()

    def close(self) -> None:
        self._beside.ask(self._retoma.close())
        self._beside.close()

    async def _read(self, fn: Callable[[Transaction], T]) -> T:
        return await (await self._database()).read(fn)

    async def _write(self, fn: Callable[[Transaction], T], verb: str) -> T:
        return await (await self._database()).write(fn, verb=verb)

    async def _database(self) -> Database:
        database = await self._retoma.database()
        if not self._ready:
            await migrations.ready(database, ROOM)
            self._ready = True
        return database


@dataclass(slots=True)
class _Hold:
    """A quote that is claimed here."""

    quote: QuoteRequest
    lone: Lone
    reached: ProcessingCheckpoint
    saved: int  # how often anything was saved of it by a face
    progress: float | None
    resumed: bool


class Session:
    """What the document calls `db`. Closing it gives back what is held, for others to go on with."""

    def __init__(self, home: _Home) -> None:
        self._home = home
        self._holds: dict[int, _Hold] = {}
        self._boots: dict[int, str] = {}

    def query(self, what: type[QuoteRequest]) -> "Query":
        return Query(self, what)

    def get(self, what: type[QuoteRequest], quote: int) -> QuoteRequest | None:
        """None where there is no such quote."""
        if what is not QuoteRequest:
            raise BadInput(say("only QuoteRequest can be asked for, not {what!r}", what=what))
        try:
            told = self._told(quote)
        except NotFound:
            return None
        made = QuoteRequest(**told)
        for name in ASSIGNED:
            made.keeps(name)
        return made

    def refresh(self, quote: QuoteRequest) -> None:
        """Read it anew; what was assigned and is not kept yet stays."""
        quote.read(self._told(quote.id))

    def commit(self) -> None:
        """Keep what was assigned to the quotes that are held here, at the checkpoint they have reached."""
        for hold in list(self._holds.values()):
            if any(hold.quote.changed(name) for name in (*PAID, "resume_data")):
                self.save(hold, hold.reached, hold.progress, hold.quote.resume_data)

    def rollback(self) -> None:
        """Forget what was assigned and is not kept."""
        for hold in self._holds.values():
            hold.quote.forget()
            self.refresh(hold.quote)

    def close(self) -> None:
        for hold in list(self._holds.values()):
            with suppress(LeaseLost):
                self.end(hold, settlement.RELEASED)

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        self.close()

    # — what a manager does here —

    def hold_of(self, quote: QuoteRequest) -> _Hold:
        """LeaseLost where this session never had it, or no longer does."""
        hold = self._holds.get(quote.id)
        if hold is None:
            raise LeaseLost(quote.job)
        hold.quote = quote
        return hold

    def hold(self, quote: QuoteRequest | None, worker_id: str) -> _Hold:
        """Claim it, if it is not held here already; from whoever has left it, if need be."""
        if quote is None:
            raise NotFound(say("there is no such quote"))
        if quote.id in self._holds:
            return self.hold_of(quote)
        job = self._home.read(lambda tx: store.job_of(tx, quote.id))
        boot = self._boots.setdefault(quote.id, self._home.new_id())
        me = _boot(boot, worker_id)
        try:
            claim, memory = self._home.write(partial(_taken, me=me, job=job), "claim")
        except IllegalMove as error:
            raise self._refused(quote.id, job) from error
        self.refresh(quote)
        hold = _held(quote, Lone(boot, claim.held, claim.limit_key), claim, memory)
        self._holds[quote.id] = hold
        if claim.time_left is not None and claim.time_left <= 0:
            why: dict[str, object] = {"message": say("the job's deadline has passed")}
            self.end(hold, settlement.buried(DeadReason.DEADLINE, "deadline", why))
            raise self._refused(quote.id, job)
        return hold

    def beat(self, hold: _Hold) -> None:
        with self._fenced(hold):
            wanted = self._home.write(
                lambda tx: manual_claim.beat(tx, hold.lone, LEASE, hold.progress), "beat"
            )
        self._go_on(hold, wanted)

    def save(
        self,
        hold: _Hold,
        checkpoint: ProcessingCheckpoint,
        progress: float | None,
        resume_data: Mapping[str, Any] | None,
    ) -> None:
        quote = hold.quote
        # Counted before it is written: where the answer is lost nobody knows whether this number is taken.
        number = hold.saved = hold.saved + 1
        kept = moved.merged(self._told(quote.id)["resume_data"], resume_data)
        told = {"progress_percentage": None if progress is None else round(100 * progress)}
        rows = [
            (moved.key(number, name), getattr(quote, name))
            for name in PAID
            if quote.changed(name)
        ]
        rows.append((moved.key(number), {**told, **({"resume_data": kept} if kept else {})}))
        steps = [(StepId(checkpoint, 1, key), _text(value)) for key, value in rows]
        with self._fenced(hold):
            wanted = self._home.write(
                lambda tx: manual_claim.save(tx, hold.lone, LEASE, steps, progress), "save"
            )
        hold.reached, hold.progress = checkpoint, progress
        quote.resume_data = kept
        for name in (*PAID, "resume_data"):
            quote.keeps(name)
        self._go_on(hold, wanted)

    def end(self, hold: _Hold, how: Settlement) -> State:
        """Settle it; its runner's row is gone with it."""
        with self._fenced(hold):
            state = self._home.write(lambda tx: manual_claim.end(tx, hold.lone, how), "settle")
        self._forget(hold)
        self._home.write(
            lambda tx: move_runner(tx, hold.lone.boot, "gone", actor=hold.lone.boot), "leave"
        )
        for name in ASSIGNED:
            hold.quote.keeps(name)
        self.refresh(hold.quote)
        return state

    def _go_on(self, hold: _Hold, wanted: bool) -> None:
        if not wanted:
            self.end(hold, settlement.CANCELED)
            raise QuoteCanceled(
                say("quote {quote} was to be canceled, and is", quote=hold.quote.id)
            )
        self.refresh(hold.quote)

    @contextmanager
    def _fenced(self, hold: _Hold) -> Iterator[None]:
        """Whose hold is over holds it no longer: to go on it must be claimed again."""
        try:
            yield
        except LeaseLost:
            self._forget(hold)
            raise

    def _forget(self, hold: _Hold) -> None:
        self._holds.pop(hold.quote.id, None)
        self._boots.pop(hold.quote.id, None)

    def _told(self, quote: int) -> dict[str, Any]:
        told = self._home.read(lambda tx: store.quote_seen(tx, quote))
        return {name: getattr(told, name) for name in SHOWN}

    def _refused(self, quote: int, job: int) -> IllegalMove:
        found: Job = self._home.read(lambda tx: get_job(tx, job))
        seen = self._told(quote)
        if found.state is State.RUNNING:
            return QuoteTaken(
                say(
                    "quote {quote} is at work with {worker}: nothing was done here; it is free"
                    " when that ends or is silent for {lease:g} s",
                    quote=quote,
                    worker=seen["worker_id"],
                    lease=LEASE,
                )
            )
        if found.ended:
            return IllegalMove(
                say("quote {quote} has ended: {status}", quote=quote, status=seen["status"])
            )
        why = self._home.explain(job)
        return IllegalMove(
            say("quote {quote} cannot be taken up now: {why}", quote=quote, why=why)
        )


@dataclass(frozen=True, slots=True)
class Query:
    """`db.query(QuoteRequest)`; it can be asked for one by its number."""

    session: Session
    what: type[QuoteRequest]

    def get(self, quote: int) -> QuoteRequest | None:
        return self.session.get(self.what, quote)


# — the manager —


class CheckpointManager:
    """The document's methods. One word of it: a quote is claimed first, also where it is resumed."""

    def __init__(self, db: Session, *, worker_id: str | None = None) -> None:
        self._db = db
        self._worker = worker_id

    def can_resume(self, quote: QuoteRequest | None) -> bool:
        """Claims it; whether anything is known of it to go on from. QuoteTaken where it is at work elsewhere."""
        return self._db.hold(quote, self._name()).resumed

    def get_resume_checkpoint(self, quote: QuoteRequest) -> ProcessingCheckpoint:
        """The last checkpoint it has reached."""
        return self._db.hold(quote, self._name()).reached

    def start_processing(self, quote: QuoteRequest | None) -> None:
        """Claims it, unless that was done by asking whether it can be resumed."""
        self._db.hold(quote, self._name())

    def save_checkpoint(
        self,
        quote: QuoteRequest,
        checkpoint: ProcessingCheckpoint,
        progress_percentage: float | None = None,
        resume_data: Mapping[str, Any] | None = None,
    ) -> None:
        """It has come so far. What `resume_data` names is kept; of `tested_products` all that ever was."""
        hold = self._db.hold_of(quote)
        to = _checkpoint(checkpoint)
        if to not in REACHABLE[hold.reached]:
            raise IllegalMove(
                say(
                    "quote {quote} has reached {reached}: {to} does not follow",
                    quote=quote.id,
                    reached=hold.reached,
                    to=to,
                )
            )
        share = _share(progress_percentage)
        given = {**(quote.resume_data or {}), **_object(resume_data)}
        self._db.save(hold, to, hold.progress if share is None else share, given)

    def update_heartbeat(self, quote: QuoteRequest) -> None:
        """Still at work: its lease is ten minutes from now on."""
        self._db.beat(self._db.hold_of(quote))

    def complete_processing(
        self,
        quote: QuoteRequest,
        status: QuoteStatus,
        *,
        result: Any = None,
        error_message: str | None = None,
        error_code: str = ERROR,
    ) -> None:
        """DONE with `result`, or what was assigned to `quote.result`, or what was kept to resume it;
        ERROR with a code and a message; CANCELED."""
        hold = self._db.hold_of(quote)
        match _status(status):
            case QuoteStatus.DONE:
                self._db.commit()
                told = quote.result if result is None else result
                end = settlement.done(_text(quote.resume_data or {} if told is None else told))
            case QuoteStatus.ERROR:
                why: dict[str, object] = {"message": error_message or str(error_code)}
                end = settlement.buried(DeadReason.PERMANENT, _code(error_code), why)
            case QuoteStatus.CANCELED:
                end = settlement.CANCELED
            case other:
                raise BadInput(say("a quote does not end as {status}", status=other))
        self._db.end(hold, end)

    def _name(self) -> str:
        process = Process.this()
        return self._worker or f"{process.host.partition(' ')[0]}:{process.pid}"


SessionLocal = SessionMaker()


# — helpers —


def _reachable() -> dict[ProcessingCheckpoint, frozenset[ProcessingCheckpoint]]:
    """Itself and all that may follow, at once or later."""
    found: dict[ProcessingCheckpoint, frozenset[ProcessingCheckpoint]] = {}
    for at in reversed(ProcessingCheckpoint):
        later = (found.get(each, frozenset()) for each in NEXT[at])
        found[at] = frozenset({at}).union(*later)
    return found


REACHABLE: Final = _reachable()


def _taken(tx: Transaction, me: Boot, job: int) -> tuple[Claim, Memory]:
    found = get_job(tx, job)
    if found.state is State.RUNNING and found.runner != me.id:
        manual_claim.recover(tx, me)
    manual_claim.wait_for(
        tx, job
    )  # somebody in the act of claiming it is told of as who has it
    return manual_claim.take(tx, me, LEASE, found.queue, job)


def _boot(id_: str, name: str) -> Boot:
    return Boot(id=id_, name=name, process=Process.this(), version="face", slots=1, knows=KNOWS)


def _held(quote: QuoteRequest, right: Lone, claim: Claim, memory: Memory) -> _Hold:
    mine = moved.last_saved(memory.steps)
    at = moved.reached(memory.steps, claim.checkpoint, quote)
    return _Hold(
        quote=quote,
        lone=right,
        reached=at or ProcessingCheckpoint.INIT,
        saved=mine,
        progress=memory.progress,
        resumed=at not in (None, ProcessingCheckpoint.INIT),
    )


def _text(value: Any) -> str:
    try:
        return encode(value)
    except Unstorable as error:
        raise BadInput(str(error)) from error


def _checkpoint(given: Any) -> ProcessingCheckpoint:
    try:
        return ProcessingCheckpoint(given)
    except ValueError:
        raise BadInput(
            say("{given!r} is no checkpoint: one of {known}", given=given, known=_KNOWN)
        ) from None


_KNOWN: Final = ", ".join(ProcessingCheckpoint)


def _status(given: Any) -> QuoteStatus:
    try:
        return QuoteStatus(given)
    except ValueError:
        known = ", ".join(QuoteStatus)
        raise BadInput(
            say("{given!r} is no status: one of {known}", given=given, known=known)
        ) from None


def _share(percentage: Any) -> float | None:
    if percentage is None:
        return None
    if isinstance(percentage, bool) or not isinstance(percentage, int | float):
        raise BadInput(say("{given!r} is no percentage", given=percentage))
    if not 0 <= percentage <= 100:
        raise BadInput(say("{given!r} is no percentage", given=percentage))
    return percentage / 100


def _object(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadInput(say("resume_data is an object, not {given!r}", given=given))
    return dict(given)


def _code(given: Any) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= 50:
        raise BadInput(say("a code is a short word, not {given!r}", given=given))
    return given
