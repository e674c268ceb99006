"""The document's own functions for code that is being moved: claim, heartbeat, recovery, end, metrics.

    from retoma.apps.embeddings.face import claim_pending_jobs, finalize_job, update_heartbeat

Plain and synchronous over the engine, wherever they are called. A claim is a lease of its own, under an
epoch: whoever is late is refused, whatever name he goes by. A lease runs from the claim on: whoever beats
for one job of a batch keeps those that wait behind it too (H-34).
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, TypeVar

from retoma import db, settings
from retoma.apps.embeddings import APP, store
from retoma.apps.embeddings.model import (
    CODES,
    KIND,
    JobStatus,
    NewDocument,
    checked_name,
    checked_rule,
)
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import TRIES, model_of
from retoma.apps.embeddings.store.jobs import QueueJob, WorkerMetrics
from retoma.codec import Unstorable, encode
from retoma.engine.log import get_logger
from retoma.engine.ports import Process, chance
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import BadInput, IllegalMove, LeaseLost, NotFound, Transient
from retoma.engine.rules.job import Claim, Memory
from retoma.engine.rules.retry import Again, GiveUp, Hold, decide
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, State
from retoma.engine.run import manual_claim
from retoma.engine.run.manual_claim import Lone
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Boot, boot_runner, move_runner, pauses
from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.toolkit.beside import Beside, one_at_a_time
from retoma.toolkit.tools import Tools
from retoma.words import say

__all__ = [
    "EmbeddingWorker",
    "LeaseLost",
    "QueueClaim",
    "QueueJob",
    "claim_pending_jobs",
    "create_embedding_job",
    "finalize_job",
    "get_worker_metrics",
    "recover_stuck_jobs",
    "retry_job",
    "update_heartbeat",
]

T = TypeVar("T")

KNOWS: Final = (f"{KIND}@1",)
MOST: Final = 100  # jobs of one claim
ERROR: Final = "moved_code"  # the code of a failure that names none
log = get_logger("retoma.embeddings")


@dataclass(frozen=True, slots=True)
class _Hold:
    """A job that is claimed here."""

    lone: Lone
    claim: Claim
    worker: str


class QueueClaim:
    """The queue of the database that the settings name. One way to it for each process, opened by the first
    call, also after a fork. Closing it gives back what is held, for others to take up."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._home: tuple[int, _Home] | None = None
        self._opening = one_at_a_time()
        self._holds: dict[int, _Hold] = {}

    # — the document's functions —

    def create_embedding_job(self, collection: str, name: str, text: str) -> QueueJob:
        """A document of a collection, which is made where there is none, and the job that embeds it.

        The same name and text again is the same document, and its job.
        """
        home = self._at_home()
        model = model_of(build_provider(home.tools))
        wanted = checked_name(collection)

        def create(tx: Transaction) -> int:
            given = [NewDocument(name, text)]
            added = store.collections.add_documents(
                tx, wanted, model, checked_rule(), given, actor="face"
            )
            if added.flaws:
                raise BadInput(added.flaws[0].message)
            [document] = [*added.new.values(), *added.already.values()]
            job = store.documents.get(tx, document).job
            if job is None:
                raise NotFound(
                    say("the job of document {document} was deleted", document=document)
                )
            return job

        return self._job(home.submit(create))

    def claim_pending_jobs(
        self, worker_id: str | None = None, batch_size: int = 10
    ) -> list[QueueJob]:
        """At most so many jobs whose turn it is, each for this caller alone; fewer where there are no more.

        Those whose lock has expired are pending again before anybody is asked whose turn it is (H-32).
        """
        if not 1 <= batch_size <= MOST:
            raise BadInput(
                say("a batch is of 1 to {most} jobs, not {size}", most=MOST, size=batch_size)
            )
        home = self._at_home()
        if home.read(partial(pauses.holding, kind=KIND, queue=KIND)) is not None:
            return []  # each of them would be refused, one by one
        name = worker_id or home.worker
        if home.read(store.jobs.stuck):
            self.recover_stuck_jobs(name)
        tried: set[int] = set()
        taken: list[int] = []
        while len(taken) < batch_size:
            found = home.read(partial(store.jobs.next_jobs, n=batch_size + len(tried)))
            left = [job for job in found if job not in tried]
            if not left:
                break
            for job in left[: batch_size - len(taken)]:
                tried.add(job)
                taken += [job] if self._taken(job, name) else []
        return [self._job(job) for job in taken]

    def update_heartbeat(self, job: QueueJob | int) -> QueueJob:
        """Still at work: its lock is a whole lease from now on, and so are those of the other jobs that this
        worker has claimed here."""
        hold = self._hold(job)
        home = self._at_home()
        behind = [each for each in self._holds.values() if each.worker == hold.worker]

        def beat(tx: db.Transaction) -> bool:
            wanted = manual_claim.beat(tx, hold.lone, home.lease, None)
            for each in behind:
                with suppress(LeaseLost):  # it is told of that when it comes to it
                    if each is not hold:
                        manual_claim.beat(tx, each.lone, home.lease, None)
            return wanted

        with _Fenced(self, hold):
            wanted = home.write(beat, "beat")
        if not wanted:
            self._end(hold, settlement.CANCELED)
            raise IllegalMove(
                say("job {job} was to be canceled, and is", job=hold.lone.held.job)
            )
        return self._job(hold.lone.held.job)

    def recover_stuck_jobs(self, worker_id: str | None = None) -> int:
        """Jobs whose lock has expired are pending again, or failed for good; how many there were."""
        home = self._at_home()
        me = _boot(home.new_id(), worker_id or home.worker)

        def recover(tx: db.Transaction) -> int:
            boot_runner(tx, me, home.lease)
            found = manual_claim.recover(tx, me)
            move_runner(tx, me.id, "gone", actor=me.id)
            return found

        recovered = 0
        while found := home.write(recover, "recover"):
            recovered += found
        return recovered

    def finalize_job(self, job: QueueJob | int, result: Any = None) -> QueueJob:
        """It is completed, and its lock is open. `result` is kept with it."""
        try:
            text = encode(result)
        except Unstorable as error:
            raise BadInput(str(error)) from error
        return self._end(self._hold(job), settlement.done(text))

    def retry_job(
        self, job: QueueJob | int, error: object = None, *, code: str = ERROR
    ) -> QueueJob:
        """This attempt failed: it is pending again after a while, or failed where it was the last (the DLQ)."""
        hold = self._hold(job)
        said = str(error) if error else code
        why: dict[str, object] = {"message": said}
        failed = Transient(said, code=code)
        home = self._at_home()
        match decide(
            failures=hold.claim.failures, error=failed, retry=TRIES, codes=CODES, rng=home.rng
        ):
            case Again(after, name):
                end = settlement.failed(after, name, why)
            case GiveUp(reason, name):
                end = settlement.buried(reason, name, why)
            case Hold(waits_for, name):
                end = settlement.parked(said, waits_for, name)
        return self._end(hold, end)

    def get_worker_metrics(self, worker_id: str | None = None) -> dict[str, int]:
        """The document's numbers: of one worker, or of all of them."""
        found: WorkerMetrics = self._at_home().read(
            partial(store.jobs.metrics, worker=worker_id)
        )
        return asdict(found)

    # — what a claimed job is about —

    def text_of(self, job: QueueJob | int) -> Mapping[str, Any]:
        """Of the document of a job: `document`, `collection`, `name` and `text`."""
        return self._at_home().read(partial(store.jobs.text_of, job=_id(job)))

    def close(self) -> None:
        home, self._home = self._home, None
        if home is None or home[0] != os.getpid():
            return
        for hold in [*self._holds.values()]:
            self._release(home[1], hold)
        self._holds.clear()
        home[1].close()

    def forget(self, hold: _Hold) -> None:
        self._holds.pop(hold.lone.held.job, None)

    # — within —

    def _at_home(self) -> "_Home":
        with self._opening:  # threads that come together have one home
            if self._home is None or self._home[0] != os.getpid():
                self._holds.clear()  # a parent's, where there was a fork
                self._home = os.getpid(), _Home(self._url)
            return self._home[1]

    def _taken(self, job: int, worker: str) -> bool:
        home = self._at_home()
        me = _boot(home.new_id(), worker)

        def take(tx: db.Transaction) -> tuple[Claim, Memory]:
            return manual_claim.take(tx, me, home.lease, KIND, job)

        try:
            claim, _ = home.write(take, "claim")
        except IllegalMove:  # somebody else was first
            return False
        hold = _Hold(Lone(me.id, claim.held, claim.limit_key), claim, worker)
        self._holds[job] = hold
        if claim.time_left is not None and claim.time_left <= 0:
            why: dict[str, object] = {"message": say("the job's deadline has passed")}
            self._end(hold, settlement.buried(DeadReason.DEADLINE, "deadline", why))
            return False
        self._log("job.claimed", hold, JobStatus.PROCESSING)
        return True

    def _hold(self, job: QueueJob | int) -> _Hold:
        """LeaseLost where it was never claimed here, or is held no longer."""
        hold = self._holds.get(_id(job))
        if hold is None:
            raise LeaseLost(_id(job))
        return hold

    def _end(self, hold: _Hold, how: Settlement) -> QueueJob:
        """Settle it; its runner's row is gone with it."""
        home = self._at_home()

        def end(tx: db.Transaction) -> State:
            state = manual_claim.end(tx, hold.lone, how)
            move_runner(tx, hold.lone.boot, "gone", actor=hold.lone.boot)
            return state

        with _Fenced(self, hold):
            home.write(end, "settle")
        self.forget(hold)
        ended = self._job(hold.lone.held.job)
        self._log("job.settled", hold, ended.status, ended)
        return ended

    def _release(self, home: "_Home", hold: _Hold) -> None:
        def release(tx: db.Transaction) -> None:
            manual_claim.end(tx, hold.lone, settlement.RELEASED)
            move_runner(tx, hold.lone.boot, "gone", actor=hold.lone.boot)

        try:
            home.write(release, "settle")
        except LeaseLost:
            return

    def _job(self, job: int) -> QueueJob:
        return self._at_home().read(partial(store.jobs.get, job=job))

    def _log(
        self, event: str, hold: _Hold, status: JobStatus, ended: QueueJob | None = None
    ) -> None:
        """What every line of the document's log says."""
        began = None if ended is None else ended.processingStartedAt
        until = None if ended is None else ended.processedAt or ended.runAt
        ms = None if began is None or until is None else (until - began).total_seconds() * 1e3
        log.info(
            event,
            workerId=hold.worker,
            jobId=hold.lone.held.job,
            jobType=KIND,
            attempts=hold.claim.failures,
            status=str(status),
            durationMs=None if ms is None else round(ms),
        )


class _Fenced:
    """Whose hold is over holds it no longer."""

    def __init__(self, queue: QueueClaim, hold: _Hold) -> None:
        self._queue = queue
        self._hold = hold

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, LeaseLost):
            self._queue.forget(self._hold)


class _Home:
    """The database, asked from code that is not async."""

    def __init__(self, url: str | None) -> None:
        told = settings.read(database_url=url)
        self.lease = told.lease
        self.worker = told.runner_name
        self._beside = Beside()
        self._retoma = Retoma(told.database_url)
        self.tools = Tools(self._retoma, Outbound(clock=self._retoma.clock), settings=told)
        self._retoma.install(APP, self.tools)
        self.rng = chance()

    def read(self, fn: Callable[[db.Transaction], T]) -> T:
        return self._beside.ask(self._read(fn))

    def write(self, fn: Callable[[db.Transaction], T], verb: str) -> T:
        return self._beside.ask(self._write(fn, verb))

    def submit(self, fn: Callable[[Transaction], T]) -> T:
        return self._beside.ask(self._retoma.write(fn))

    def new_id(self) -> str:
        return self._retoma.ids.new()

    def close(self) -> None:
        self._beside.ask(self._retoma.close())
        self._beside.close()

    async def _read(self, fn: Callable[[db.Transaction], T]) -> T:
        return await (await self._retoma.database()).read(fn)

    async def _write(self, fn: Callable[[db.Transaction], T], verb: str) -> T:
        return await (await self._retoma.database()).write(fn, verb=verb)


class EmbeddingWorker:
    """What the document calls a worker, as far as it is asked how it does."""

    def __init__(
        self, worker_id: str | None = None, *, queue: QueueClaim | None = None
    ) -> None:
        self.worker_id = worker_id
        self._queue = queue or QUEUE

    def get_metrics(self) -> dict[str, int]:
        """Its own numbers; without a name those of all workers together."""
        return self._queue.get_worker_metrics(self.worker_id)


QUEUE: Final = QueueClaim()
claim_pending_jobs = QUEUE.claim_pending_jobs
create_embedding_job = QUEUE.create_embedding_job
finalize_job = QUEUE.finalize_job
get_worker_metrics = QUEUE.get_worker_metrics
recover_stuck_jobs = QUEUE.recover_stuck_jobs
retry_job = QUEUE.retry_job
update_heartbeat = QUEUE.update_heartbeat


def _boot(id_: str, name: str) -> Boot:
    return Boot(id=id_, name=name, process=Process.this(), version="face", slots=1, knows=KNOWS)


def _id(job: QueueJob | int) -> int:
    return job.id if isinstance(job, QueueJob) else job
