"""Every write on a job. Two families: a runner's carry its boot and each row's epoch; an operator's
compare and set the state they read. Zero rows is an answer."""

import hashlib
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from retoma.db import Call, Row, Statement, Transaction, moment, statement
from retoma.engine.errors import IdempotencyMismatch, IllegalMove, NotFound
from retoma.engine.events import EventType
from retoma.engine.job import Claim, Held, Job, SavedStep, StepId
from retoma.engine.ports import Process
from retoma.engine.settlement import Settlement
from retoma.engine.states import State


def _sql(verb: str) -> Statement:
    return statement("retoma.engine.sql", verb)


# What json.dumps does with a string, without what it does around it.
_quoted: Callable[[str], str] = json.encoder.encode_basestring_ascii

CHUNK = 5_000  # jobs in one statement of a bulk submission
BITE = 500  # jobs taken back in one pass
NOTHING_BEFORE = (-(2**31), -(2**63), 0)  # (priority, turn, id): the start of every queue


# — submitting —


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a set of new jobs has in common."""

    kind: str
    version: int
    queue: str
    priority: int = 0
    batch: int | None = None
    run_at: datetime | None = None
    delay: float | None = None
    lasts: float | None = None
    correlation: str | None = None
    traceparent: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """One of them. `payload` is JSON text already; with a key comes the hash of the payload."""

    payload: str
    key: str | None = None
    hash: str | None = None

    def keyed_row(self) -> str:
        return (
            f'{{"key":{_quoted(self.key or "")},"hash":"{self.hash}","payload":{self.payload}}}'
        )


def submit_jobs(tx: Transaction, about: Submission, payloads: Iterable[str]) -> int:
    """Take in all of them or none; how many that was. Encoded while the database works."""
    remaining = iter(payloads)
    chunks = iter(lambda: list(itertools.islice(remaining, CHUNK)), [])
    spans = [
        rows[0]
        for rows in tx.together(
            Call(SUBMIT_JOBS, _unkeyed(tx, about, chunk, offset=CHUNK * place))
            for place, chunk in enumerate(chunks)
        )
    ]
    if spans:
        _span(tx, about, spans[0][0], spans[-1][1])
        tx.ring(about.queue)
    return sum(span[2] for span in spans)


def submit_keyed_jobs(
    tx: Transaction, about: Submission, jobs: Sequence[NewJob]
) -> tuple[int, int]:
    """As `submit_jobs`; how many are new, and how many were there already under their keys."""
    new = 0
    for start in range(0, len(jobs), CHUNK):
        chunk = jobs[start : start + CHUNK]
        added = tx.all(SUBMIT_KEYED_JOBS, **_keyed(tx, about, chunk, offset=start))
        _refuse_other_payloads(tx, about.kind, chunk, {key for _, key, *_ in added})
        new += len(added)
        if added:
            _span(tx, about, added[0][0], added[-1][0])
    tx.ring(about.queue)
    return new, len(jobs) - new


def _span(tx: Transaction, about: Submission, first: int, last: int) -> None:
    if about.batch is not None:
        tx.run(SPAN_BATCH, batch=about.batch, first=first, last=last)


def in_batch(about: Submission, batch: int) -> Submission:
    return replace(about, batch=batch)


def submit_job(tx: Transaction, about: Submission, job: NewJob) -> Job:
    """One job; where its key is known already, the one that has it."""
    call = _one(tx, about, job)
    added = tx.all(call.statement, **call.params)
    tx.ring(about.queue)
    if added:
        return _submitted(about, job, added[0])
    _refuse_other_payloads(tx, about.kind, [job], set())
    return job_by_key(tx, about.kind, str(job.key))


def submit_alone(tx: Transaction, about: Submission, job: NewJob) -> Job | None:
    """As `submit_job` but in one round trip; None where the key is known already."""
    tx.ring(about.queue)
    call = _one(tx, about, job)
    [added] = tx.finish(call)
    return _submitted(about, job, added[0]) if added else None


def _one(tx: Transaction, about: Submission, job: NewJob) -> Call:
    if job.key is None:
        return Call(SUBMIT_JOBS, _unkeyed(tx, about, [job.payload], offset=0))
    return Call(SUBMIT_KEYED_JOBS, _keyed(tx, about, [job], offset=0))


def _submitted(about: Submission, job: NewJob, added: Row) -> Job:
    id_, _, *_, created_at, run_at = added
    return Job(
        id=id_,
        kind=about.kind,
        version=about.version,
        queue=about.queue,
        state=State.WAITING,
        batch=about.batch,
        key=job.key,
        priority=about.priority,
        run_at=moment(run_at),
        due=run_at is None,
        correlation=about.correlation,
        payload=job.payload,
        created_at=moment(created_at),
    )


def _unkeyed(
    tx: Transaction, about: Submission, payloads: Sequence[str], *, offset: int
) -> dict[str, Any]:
    return _submission(tx, about, f"[[{'],['.join(payloads)}]]", offset)


def _keyed(
    tx: Transaction, about: Submission, jobs: Sequence[NewJob], *, offset: int
) -> dict[str, Any]:
    return _submission(tx, about, f"[{','.join(job.keyed_row() for job in jobs)}]", offset)


def _submission(tx: Transaction, about: Submission, rows: str, offset: int) -> dict[str, Any]:
    last = tx.one(LAST_JOB) if tx.dialect == "sqlite" else None
    return {
        "rows": rows,
        "offset": offset,
        "last": last[0] if last else 0,
        "kind": about.kind,
        "version": about.version,
        "queue": about.queue,
        "priority": about.priority,
        "batch": about.batch,
        "run_at": about.run_at,
        "delay": about.delay,
        "lasts": about.lasts,
        "correlation": about.correlation,
        "traceparent": about.traceparent,
        "actor": about.actor,
    }


def _refuse_other_payloads(
    tx: Transaction, kind: str, sent: Sequence[NewJob], added: set[str | None]
) -> None:
    there = {job.key: job.hash for job in sent if job.key is not None and job.key not in added}
    if not there:
        return
    known: dict[str, str] = dict(
        tx.all(PAYLOAD_HASHES, kind=kind, keys=json.dumps(list(there)))
    )
    other = sorted(key for key, digest in there.items() if known.get(key) != digest)
    if other:
        named = ", ".join(other[:10]) + (" …" if len(other) > 10 else "")
        raise IdempotencyMismatch(
            f"{kind}: already submitted with another payload under the same key: {named};"
            " nothing was submitted"
        )


def open_batch(tx: Transaction, *, name: str, key: str, kind: str) -> tuple[int, bool]:
    """A batch, and whether it is new: the same key finds the same one."""
    row = tx.one(OPEN_BATCH, name=name, key=key, kind=kind)
    if row is not None:
        return row[0], True
    [(found,)] = tx.all(BATCH_BY_KEY, key=key)
    return found, False


# — a runner: its own row —


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One life of a runner."""

    id: str
    name: str
    process: Process
    version: str
    slots: int
    knows: Sequence[str]


def boot_runner(tx: Transaction, me: Boot, lease: float) -> None:
    tx.run(
        BOOT_RUNNER,
        boot=me.id,
        name=me.name,
        host=me.process.host,
        pid=me.process.pid,
        pid_started=me.process.started,
        version=me.version,
        slots=me.slots,
        knows=json.dumps(list(me.knows)),
        lease=lease,
    )
    tell(tx, actor=me.id, verb="runner.booted", subject=me.name)


def beat_runner(tx: Transaction, boot: str, lease: float, *, reconnected: bool) -> bool:
    """Whether this boot still counts."""
    [[*rows]] = tx.finish(
        Call(BEAT_RUNNER, {"boot": boot, "lease": lease, "reconnected": int(reconnected)})
    )
    return bool(rows)


def move_runner(tx: Transaction, boot: str, to: str, *, actor: str) -> bool:
    """A living runner is leaving, gone or lost; whether this call made it so."""
    row = tx.one(MOVE_RUNNER, boot=boot, to=to)
    if row is None:
        return False
    tell(tx, actor=actor, verb=f"runner.{to}", subject=row[1])
    return True


def tell(tx: Transaction, *, actor: str, verb: str, subject: str) -> None:
    """A line of the audit log that belongs to no job."""
    tx.run(TELL, actor=actor, verb=verb, subject=subject)


# — a runner: its jobs —


@dataclass(frozen=True, slots=True)
class Spot:
    """A queue, and from where in it to look: nothing before the hint is worth a look."""

    queue: str
    after: tuple[int, int, int] = NOTHING_BEFORE


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the queues gave."""

    claims: list[Claim]
    next_due: float | None  # seconds until something scheduled wants its turn


def claim_jobs(
    tx: Transaction,
    boot: str,
    spots: Sequence[Spot],
    knows: Sequence[str],
    *,
    slots: int,
    suspects: int,
) -> Found:
    """Hand over at most `slots` jobs, and `suspects` more that must run alone of their sort."""
    if tx.dialect == "sqlite":
        return _claim_queue_by_queue(tx, boot, spots, knows, slots=slots, suspects=suspects)
    queues = json.dumps(
        [
            {"queue": spot.queue, "priority": p, "turn": t, "id": i}
            for spot in spots
            for p, t, i in [spot.after]
        ]
    )
    params = {
        "boot": boot,
        "queues": queues,
        "knows": json.dumps(list(knows)),
        "slots": slots,
        "suspects": suspects,
    }
    _, claimed, due = tx.finish(
        Call(PROMOTE_JOBS, params), Call(CLAIM_JOBS, params), Call(NEXT_DUE, params)
    )
    return Found([Claim._make(row) for row in claimed], _seconds_until(due))


def _claim_queue_by_queue(
    tx: Transaction,
    boot: str,
    spots: Sequence[Spot],
    knows: Sequence[str],
    *,
    slots: int,
    suspects: int,
) -> Found:
    claims: list[Claim] = []
    for spot in spots:
        params = {
            "boot": boot,
            "queue": spot.queue,
            "knows": json.dumps(list(knows)),
            "slots": max(slots - len(claims), 0),
            "suspects": suspects,
        }
        tx.run(PROMOTE_JOBS, **params)
        rows = tx.all(CLAIM_JOBS, **params)
        claims += [Claim._make(row) for row in rows]
        suspects -= sum(claim.suspect for claim in claims[-len(rows) :]) if rows else 0
    due = tx.all(NEXT_DUE, queues=json.dumps([{"queue": spot.queue} for spot in spots]))
    return Found(claims, _seconds_until(due))


def _seconds_until(due: list[Row]) -> float | None:
    at, now = (moment(value) for value in due[0])
    if at is None or now is None:
        return None
    return max((at - now).total_seconds(), 0.0)


def recall_jobs(tx: Transaction, boot: str) -> list[Claim]:
    """What this boot holds by the database: a claim whose answer was lost is found here."""
    return [Claim._make(row) for row in tx.all(RECALL_JOBS, boot=boot)]


def load_steps(tx: Transaction, claims: Sequence[Claim]) -> dict[int, list[SavedStep]]:
    """The steps each of these jobs may read back, in one question."""
    wanted = json.dumps([{"job": c.job, "fresh_from": c.fresh_from} for c in claims])
    found: dict[int, list[SavedStep]] = {}
    for job, name, version, key, state, value in tx.all(LOAD_STEPS, rows=wanted):
        step = SavedStep(StepId(name, version, key), state == "saved", value)
        found.setdefault(job, []).append(step)
    return found


def saves(boot: str, steps: Iterable[tuple[Held, StepId, str]]) -> Call:
    """Finished and begun steps, each as `step_fields` makes it, folded by job and epoch."""
    by_job: dict[Held, list[tuple[StepId, str]]] = {}
    for held, step, fields in steps:
        by_job.setdefault(held, []).append((step, fields))
    rows = ",".join(_job_with_steps(held, its) for held, its in by_job.items())
    return Call(SAVE_STEPS, {"boot": boot, "rows": f"[{rows}]"})


def _job_with_steps(held: Held, steps: list[tuple[StepId, str]]) -> str:
    (_, first), *others = steps
    more = f',"more":[{",".join(f"{{{fields}}}" for _, fields in others)}]' if others else ""
    last = _quoted(steps[-1][0].name)
    return f'{{"job":{held.job},"epoch":{held.epoch},"n":{len(steps)},"last":{last},{first}{more}}}'


def settles(boot: str, rows: Iterable[str]) -> Call:
    """Ended claims, each a JSON object as `settle_row` makes it."""
    return Call(SETTLE_JOBS, {"boot": boot, "rows": f"[{','.join(rows)}]"})


def reports(boot: str, rows: Iterable[str]) -> Call:
    """Progress, each a JSON object as `report_row` makes it."""
    return Call(REPORT_PROGRESS, {"boot": boot, "rows": f"[{','.join(rows)}]"})


def step_fields(step: StepId, value: str | None, *, begun: bool = False) -> str:
    """The inside of a JSON object."""
    state = "begun" if begun else "saved"
    name, key = _quoted(step.name), _quoted(step.key)
    told = f'{{"step":{name},"key":{key}}}' if step.key else f'{{"step":{name}}}'
    return (
        f'"name":{name},"version":{step.version},"key":{key},"state":"{state}",'
        f'"value":{value or "null"},"told":{told}'
    )


def settle_row(held: Held, end: Settlement) -> str:
    """A JSON object; what is None is left out."""
    row = f'{{"job":{held.job},"epoch":{held.epoch},"event":"{end.event}","state":"{end.state}"'
    if end.result is not None:
        row += f',"result":{end.result}'
    if end.details is not None:
        row += f',"details":{end.details}'
    if end.after is not None:
        row += f',"after":{end.after}'
    if end.reason is not None:
        row += f',"reason":{json.dumps(end.reason)}'
    if end.code is not None:
        row += f',"code":{json.dumps(end.code)}'
    return row + "}"


def report_row(held: Held, progress: float | None, note: str | None) -> str:
    return (
        f'{{"job":{held.job},"epoch":{held.epoch},"progress":{json.dumps(progress)},'
        f'"note":{json.dumps(note)}}}'
    )


def saved_already(tx: Transaction, held: Held, step: StepId) -> bool:
    """Whether this very save has happened: asked only after an answer was lost."""
    row = tx.one(
        SAVED_ALREADY,
        job=held.job,
        epoch=held.epoch,
        name=step.name,
        version=step.version,
        key=step.key,
    )
    return row is not None


def ended_already(tx: Transaction, held: Held) -> State | None:
    """How this very claim has ended, if it has: asked only after an answer was lost."""
    row = tx.one(ENDED_ALREADY, job=held.job, epoch=held.epoch)
    return None if row is None else State(row[0])


def count_refused(tx: Transaction, boot: str, kinds: Mapping[str, int]) -> None:
    """Late writes that changed nothing, for the board."""
    for kind, n in kinds.items():
        tx.run(COUNT_REFUSED, boot=boot, kind=kind, n=n)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something to look at later: a page, a picture, a stack."""

    name: str
    media: str
    content: bytes


def attach(tx: Transaction, boot: str, held: Held, evidence: Evidence) -> bool:
    """Keep it with the job; whether this runner may still write on it."""
    row = tx.one(HOLD_FOR_EVIDENCE, boot=boot, job=held.job, epoch=held.epoch)
    if row is None:
        return False
    sha256 = hashlib.sha256(evidence.content).hexdigest()
    packed = zlib.compress(evidence.content)
    tx.run(
        KEEP_EVIDENCE,
        sha256=sha256,
        codec="zlib",
        size=len(evidence.content),
        bytes=packed,
        job=held.job,
        name=evidence.name,
        epoch=held.epoch,
        media=evidence.media,
    )
    details = json.dumps({"name": evidence.name, "sha256": sha256})
    append_event(tx, held.job, row[0], EventType.EVIDENCE, boot, details, epoch=held.epoch)
    return True


# — the watch: what lost runners leave behind —


def lose_runners(tx: Transaction, me: str, lease: float) -> list[str]:
    """Declare lost whose lease is over, if this runner was itself in touch all the while."""
    lost = tx.all(LOSE_RUNNERS, boot=me, lease=lease)
    for boot, name in lost:
        tell(tx, actor=me, verb="runner.lost", subject=f"{name} {boot}")
    return [boot for boot, _ in lost]


def neighbours(tx: Transaction, me: str, host: str) -> list[tuple[str, Process]]:
    rows = tx.all(NEIGHBOURS, boot=me, host=host)
    return [(boot, Process(host, pid, started)) for boot, pid, started in rows]


def take_back(tx: Transaction, me: str) -> list[tuple[Held, State]]:
    """Jobs of lost runners wait again; one that lost three of them is buried."""
    back = tx.all(TAKE_BACK_JOBS, actor=me, bite=BITE)
    for queue in {queue for *_, queue in back}:
        tx.ring(queue)
    return [(Held(job, epoch), State(state)) for job, epoch, state, _ in back]


def fold_tallies(tx: Transaction) -> int:
    """Add up what moved since the last time; how many rows that was."""
    return len(tx.all(FOLD_TALLIES))


def cancels(tx: Transaction, boot: str) -> list[Held]:
    """Jobs of this runner that somebody wants canceled."""
    return [Held(job, epoch) for job, epoch in tx.all(CANCELS, boot=boot)]


def any_open(tx: Transaction, queues: Sequence[str]) -> bool:
    """Whether anything in these queues waits or runs."""
    return tx.one(ANY_OPEN, queues=json.dumps(list(queues))) is not None


# — an operator —


def cancel_job(tx: Transaction, job: int, *, actor: str) -> State:
    """Canceled at once where nobody holds it; else its runner is asked, and rung."""
    for was in (State.WAITING, State.PARKED):
        row = tx.one(CANCEL_JOB, job=job, was=was)
        if row is not None:
            _moved(tx, row, was, State.CANCELED, EventType.CANCELED, actor)
            return State.CANCELED
    row = tx.one(REQUEST_CANCEL, job=job)
    if row is not None:
        seq, epoch, runner = row
        append_event(tx, job, seq, EventType.CANCEL_REQUESTED, actor, None, epoch=epoch)
        tx.ring(f"cancel:{runner}")
        return State.RUNNING
    found = get_job(tx, job)
    if found.state in (State.RUNNING, State.CANCELED):
        return found.state  # asked before: the same answer again
    raise IllegalMove(f"job {job} is {found.state} and cannot be canceled any more")


def again(tx: Transaction, job: int, *, actor: str, fresh: bool = False) -> Job:
    """The next generation of an ended job: a fresh budget, and its committed steps kept."""
    found = get_job(tx, job)
    if not found.ended:
        raise IllegalMove(
            f"job {job} is {found.state}: only a job that has ended can be tried again"
        )
    row = tx.one(AGAIN, job=job, was=found.state, generation=found.generation, fresh=int(fresh))
    if row is None:
        raise IllegalMove(f"job {job} was moved by somebody else meanwhile: look again")
    _moved(tx, row, found.state, State.WAITING, EventType.AGAIN, actor, code=found.code)
    tx.ring(found.queue)
    return get_job(tx, job)


def unpark(tx: Transaction, job: int, *, actor: str) -> Job:
    """A parked job waits its turn again, in the same generation."""
    row = tx.one(UNPARK, job=job)
    if row is None:
        raise IllegalMove(f"job {job} is {get_job(tx, job).state}, not parked")
    _moved(tx, row, State.PARKED, State.WAITING, EventType.UNPARKED, actor)
    found = get_job(tx, job)
    tx.ring(found.queue)
    return found


def _moved(
    tx: Transaction,
    row: Row,
    was: State,
    to: State,
    event: EventType,
    actor: str,
    *,
    code: str | None = None,
) -> None:
    job, seq, batch, kind = row
    append_event(tx, job, seq, event, actor, None)
    at_stake = code if State.DEAD in (was, to) else None
    tx.run(TALLY_MOVE, batch=batch, kind=kind, was=was, to=to, code=at_stake)


def append_event(
    tx: Transaction,
    job: int,
    seq: int,
    event: EventType,
    actor: str,
    details: str | None,
    *,
    epoch: int | None = None,
) -> None:
    tx.run(
        APPEND_EVENT,
        job=job,
        seq=seq,
        epoch=epoch,
        type=event,
        actor=actor,
        details=details,
    )


# — one job, for the verbs above —


def get_job(tx: Transaction, job: int) -> Job:
    row = tx.one(GET_JOB, job=job)
    if row is None:
        raise NotFound(f"there is no job {job}")
    return job_from(row)


def job_by_key(tx: Transaction, kind: str, key: str) -> Job:
    row = tx.one(JOB_BY_KEY, kind=kind, key=key)
    if row is None:
        raise NotFound(f"there is no {kind} with the key {key}")
    return get_job(tx, row[0])


def job_from(row: Row) -> Job:
    """A row in the order of get_job.sql and list_jobs.sql."""
    (
        id_, kind, version, queue, batch, key, generation, state, reason, code, priority,
        run_at, turn, aside, epoch, runner, failures, lost, checkpoint, progress, note,
        progress_at, cancel_at, correlation, payload, result, created_at, started_at, ended_at,
    ) = row  # fmt: skip
    return Job(
        id=id_,
        kind=kind,
        version=version,
        queue=queue,
        batch=batch,
        key=key,
        generation=generation,
        state=State(state),
        reason=reason,
        code=code,
        priority=priority,
        run_at=moment(run_at),
        due=turn is not None,
        aside=aside,
        epoch=epoch,
        runner=runner,
        failures=failures,
        lost=lost,
        checkpoint=checkpoint,
        progress=progress,
        note=note,
        progress_at=moment(progress_at),
        cancel_at=moment(cancel_at),
        correlation=correlation,
        payload=payload,
        result=result,
        created_at=moment(created_at),
        started_at=moment(started_at),
        ended_at=moment(ended_at),
    )


AGAIN = _sql("again")
ANY_OPEN = _sql("any_open")
APPEND_EVENT = _sql("append_event")
BATCH_BY_KEY = _sql("batch_by_key")
BEAT_RUNNER = _sql("beat_runner")
BOOT_RUNNER = _sql("boot_runner")
CANCELS = _sql("cancels")
CANCEL_JOB = _sql("cancel_job")
CLAIM_JOBS = _sql("claim_jobs")
COUNT_REFUSED = _sql("count_refused")
ENDED_ALREADY = _sql("ended_already")
FOLD_TALLIES = _sql("fold_tallies")
GET_JOB = _sql("get_job")
HOLD_FOR_EVIDENCE = _sql("hold_for_evidence")
JOB_BY_KEY = _sql("job_by_key")
KEEP_EVIDENCE = _sql("keep_evidence")
LAST_JOB = _sql("last_job")
LOAD_STEPS = _sql("load_steps")
LOSE_RUNNERS = _sql("lose_runners")
MOVE_RUNNER = _sql("move_runner")
NEIGHBOURS = _sql("neighbours")
NEXT_DUE = _sql("next_due")
OPEN_BATCH = _sql("open_batch")
PAYLOAD_HASHES = _sql("payload_hashes")
PROMOTE_JOBS = _sql("promote_jobs")
RECALL_JOBS = _sql("recall_jobs")
REPORT_PROGRESS = _sql("report_progress")
REQUEST_CANCEL = _sql("request_cancel")
SAVED_ALREADY = _sql("saved_already")
SAVE_STEPS = _sql("save_steps")
SETTLE_JOBS = _sql("settle_jobs")
SPAN_BATCH = _sql("span_batch")
SUBMIT_JOBS = _sql("submit_jobs")
SUBMIT_KEYED_JOBS = _sql("submit_keyed_jobs")
TAKE_BACK_JOBS = _sql("take_back_jobs")
TALLY_MOVE = _sql("tally_move")
TELL = _sql("tell")
UNPARK = _sql("unpark")
