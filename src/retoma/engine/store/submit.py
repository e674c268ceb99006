"""Jobs come in: all of a submission, or nothing of it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from retoma.db import Busy, Call, Row, Transaction, moment
from retoma.engine.rules.errors import IdempotencyMismatch
from retoma.engine.rules.gates import joined
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.engine.store.gates import declaring
from retoma.engine.store.rows import job_by_key
from retoma.engine.store.verb import SQL, quoted
from retoma.words import say

T = TypeVar("T")

CHUNK = 5_000  # jobs in one statement of a bulk submission
WEIGHT = 8 * 1024 * 1024  # characters of payload in one statement, about


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
    limits: Mapping[str, int] = field(default_factory=dict)  # by key: how many may run

    def row(self) -> str:
        """The inside of a JSON array: without a limit the payload is all there is."""
        limit_key = joined(self.limits)
        return f"{self.payload},{quoted(limit_key)}" if limit_key else self.payload

    def keyed_row(self) -> str:
        limit_key = joined(self.limits)
        limit = f'"limit_key":{quoted(limit_key)},' if limit_key else ""
        return (
            f'{{"key":{quoted(self.key or "")},"hash":"{self.hash}",{limit}'
            f'"payload":{self.payload}}}'
        )


def submit_jobs(
    tx: Transaction, about: Submission, payloads: Iterable[str], start: int = 0
) -> int:
    """Take in all of them or none; how many that was. Encoded while the database works.

    `start`: how many jobs of the same submission came before them.
    """
    return _submit_rows(tx, about, payloads, start, limited=False)


def submit_limited_jobs(
    tx: Transaction, about: Submission, jobs: Sequence[NewJob], start: int = 0
) -> int:
    """As `submit_jobs`, each under its limits."""
    _declare(tx, jobs)
    return _submit_rows(tx, about, (job.row() for job in jobs), start, limited=True)


def _submit_rows(
    tx: Transaction, about: Submission, rows: Iterable[str], start: int, *, limited: bool
) -> int:
    spans = [
        answer[0]
        for answer in tx.together(
            Call(
                SQL.submit_jobs,
                _unkeyed(tx, about, chunk, offset=start + offset, limited=limited),
            )
            for offset, chunk in chunked(rows, len)
        )
    ]
    if spans:
        _span(tx, about, spans[0][0], spans[-1][1])
        tx.ring(about.queue)
    return sum(span[2] for span in spans)


def submit_keyed_jobs(
    tx: Transaction, about: Submission, jobs: Sequence[NewJob], start: int = 0
) -> tuple[int, int]:
    """As `submit_jobs`; how many are new, and how many were there already under their keys."""
    new = 0
    _declare(tx, jobs)
    for offset, chunk in chunked(jobs, lambda job: len(job.payload)):
        added = tx.all(SQL.submit_keyed_jobs, **_keyed(tx, about, chunk, offset=start + offset))
        _refuse_other_payloads(tx, about.kind, chunk, {key for _, key, *_ in added})
        new += len(added)
        if added:
            _span(tx, about, added[0][0], added[-1][0])
    tx.ring(about.queue)
    return new, len(jobs) - new


def chunked(
    items: Iterable[T], size: Callable[[T], int], late: Callable[[], bool] = lambda: False
) -> Iterator[tuple[int, list[T]]]:
    """As many together as one statement may carry, and how many came before them.

    `late`: whether what is there must go out now.
    """
    before, weight = 0, 0
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        weight += size(item)
        if len(chunk) == CHUNK or weight > WEIGHT or late():
            yield before, chunk
            before, weight, chunk = before + len(chunk), 0, []
    if chunk:
        yield before, chunk


def submit_job(tx: Transaction, about: Submission, job: NewJob) -> Job:
    """One job; where its key is known already, the one that has it."""
    return submit_or_find(tx, about, job)[0]


def submit_or_find(tx: Transaction, about: Submission, job: NewJob) -> tuple[Job, bool]:
    """The same, and whether it is new."""
    _declare(tx, [job])
    call = _one(tx, about, job)
    added = tx.all(call.statement, **call.params)
    tx.ring(about.queue)
    if added:
        return _submitted(about, job, added[0]), True
    _refuse_other_payloads(tx, about.kind, [job], set())
    return job_by_key(tx, about.kind, str(job.key)), False


def submit_together(
    tx: Transaction, jobs: Sequence[tuple[Submission, NewJob]]
) -> list[list[Row]]:
    """Each as `submit_job`, all in one round trip; `submitted` reads the answers."""
    for queue in {about.queue for about, _ in jobs}:
        tx.ring(queue)
    _declare(tx, [job for _, job in jobs])
    return tx.finish(*[_one(tx, about, job) for about, job in jobs])


def submitted(about: Submission, job: NewJob, rows: Sequence[Row]) -> Job | None:
    """The new job; None where its key is known already."""
    return _submitted(about, job, rows[0]) if rows else None


def in_batch(about: Submission, batch: int) -> Submission:
    return replace(about, batch=batch)


def open_batch(tx: Transaction, *, name: str, key: str, kind: str) -> tuple[int, bool]:
    """A batch, and whether it is new: the same key finds the same one."""
    made = tx.one(SQL.open_batch, into=int, name=name, key=key, kind=kind)
    if made is not None:
        return made, True
    [found] = tx.all(SQL.batch_by_key, into=int, key=key)
    return found, False


def _declare(tx: Transaction, jobs: Iterable[NewJob]) -> None:
    """The limits of these jobs are there before the jobs are: in the order of their keys."""
    caps = {key: cap for job in jobs for key, cap in job.limits.items()}
    if caps:
        call = declaring(caps)
        tx.run(call.statement, **call.params)


def _one(tx: Transaction, about: Submission, job: NewJob) -> Call:
    if job.key is None:
        limited = bool(job.limits)
        return Call(
            SQL.submit_jobs, _unkeyed(tx, about, [job.row()], offset=0, limited=limited)
        )
    return Call(SQL.submit_keyed_jobs, _keyed(tx, about, [job], offset=0))


def _span(tx: Transaction, about: Submission, first: int, last: int) -> None:
    if about.batch is not None:
        tx.run(SQL.span_batch, batch=about.batch, first=first, last=last)


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
    tx: Transaction, about: Submission, rows: Sequence[str], *, offset: int, limited: bool
) -> dict[str, Any]:
    params = _submission(tx, about, f"[[{'],['.join(rows)}]]", offset)
    return {**params, "limited": int(limited)}


def _keyed(
    tx: Transaction, about: Submission, jobs: Sequence[NewJob], *, offset: int
) -> dict[str, Any]:
    return _submission(tx, about, f"[{','.join(job.keyed_row() for job in jobs)}]", offset)


def _submission(tx: Transaction, about: Submission, rows: str, offset: int) -> dict[str, Any]:
    last = tx.one(SQL.last_job, into=int) if tx.dialect == "sqlite" else None
    return {
        "rows": rows,
        "offset": offset,
        "last": last or 0,
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
    there = {job.key: str(job.hash) for job in sent if job.key and job.key not in added}
    if not there:
        return
    known: dict[str, str] = dict(
        tx.all(SQL.payload_hashes, kind=kind, keys=json.dumps(list(there)))
    )
    refuse_other_payloads(kind, there, known)
    if coming := there.keys() - known.keys():
        raise Busy(
            say(
                "{kind}: submitted with another payload by a batch that is still coming in:"
                " {named}; ask again when it has come in",
                kind=kind,
                named=_listed(coming),
            )
        )


def refuse_other_payloads(kind: str, sent: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Raise where one of these keys, with its hash, is known with another hash."""
    other = [key for key, digest in known.items() if sent.get(key, digest) != digest]
    if other:
        raise IdempotencyMismatch(
            say(
                "{kind}: already submitted with another payload under the same key:"
                " {named}; nothing was submitted",
                kind=kind,
                named=_listed(other),
            )
        )


def _listed(keys: Iterable[str]) -> str:
    named = sorted(keys)
    return ", ".join(named[:10]) + (" …" if len(named) > 10 else "")
