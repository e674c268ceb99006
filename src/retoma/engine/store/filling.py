"""A submission too large for one transaction: it comes in by slices, is accepted, and is moved by slices.

Until it is accepted its jobs are nobody's: nothing claims, counts or lists them, and undoing it
leaves nothing. Once it is accepted they count as waiting jobs of their batch, and are moved there.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from retoma.db import DatabaseError, Transaction
from retoma.engine.store.submit import (
    NewJob,
    Submission,
    in_batch,
    open_batch,
    refuse_other_payloads,
    submit_jobs,
    submit_keyed_jobs,
    submit_limited_jobs,
)
from retoma.engine.store.verb import SQL, quoted
from retoma.words import say

LEASE = 60.0  # seconds between two slices


@dataclass(frozen=True, slots=True)
class Begun:
    """What a submission finds under its key when it begins."""

    filling: int | None = None  # its own, or one that another has left
    batch: int | None = None  # the batch that was made of it
    left: bool = False  # nobody is at work on it
    new: bool = False


def begin(tx: Transaction, *, key: str, owner: str, submission: str) -> Begun:
    """Begin a submission under this key, where there is none."""
    row = tx.one(SQL.filling_by_key, key=key)
    if row is not None:
        filling, batch, left, whose = row
        return Begun(filling, batch, left=bool(left), new=whose == owner and batch is None)
    batch = tx.one(SQL.batch_by_key, into=int, key=key)
    if batch is not None:
        return Begun(batch=batch)
    about = {"key": key, "owner": owner, "submission": submission}
    made = tx.one(SQL.begin_filling, into=int, lease=LEASE, **about)
    return Begun() if made is None else Begun(made, new=True)


@dataclass(frozen=True, slots=True)
class Slice:
    """Jobs that come in with one transaction."""

    number: int
    offset: int
    jobs: Sequence[NewJob]


def stage(tx: Transaction, filling: int, owner: str, kind: str, part: Slice) -> None:
    """Add a slice, or nothing of it; the same slice again adds nothing."""
    if tx.one(SQL.hold_filling, filling=filling, owner=owner, lease=LEASE) is None:
        raise DatabaseError(
            say("the submission was undone: nothing came in for {lease:g} s", lease=LEASE)
        )
    if tx.one(SQL.slice_is_there, filling=filling, slice=part.number) is not None:
        return
    jobs = _new_keys(tx, filling, kind, part.jobs)
    if not jobs:
        return
    rows = f"[{','.join(map(_row, jobs))}]"
    about = {"filling": filling, "slice": part.number, "offset": part.offset, "kind": kind}
    tx.run(SQL.stage_jobs, **about, rows=rows)
    tx.run(SQL.count_staged, filling=filling, jobs=len(jobs))


def _new_keys(
    tx: Transaction, filling: int, kind: str, jobs: Sequence[NewJob]
) -> Sequence[NewJob]:
    """Those whose key has not come in yet; a key with two payloads refuses the submission."""
    if not jobs or jobs[0].key is None:
        return jobs
    tx.all(SQL.lock_keys, kind=kind)
    by_key: dict[str, NewJob] = {}
    for job in jobs:
        before = by_key.setdefault(str(job.key), job)
        refuse_other_payloads(
            kind, {str(job.key): str(job.hash)}, {str(job.key): str(before.hash)}
        )
    sent = {key: str(job.hash) for key, job in by_key.items()}
    keys = json.dumps(list(sent))
    refuse_other_payloads(kind, sent, dict(tx.all(SQL.payload_hashes, kind=kind, keys=keys)))
    for key, digest, whose in tx.all(SQL.staged_keys, kind=kind, keys=keys):
        refuse_other_payloads(kind, sent, {key: digest})
        if whose == filling:
            by_key.pop(key, None)
    return list(by_key.values())


def _row(job: NewJob) -> str:
    keyed = "" if job.key is None else f'"key":{quoted(job.key)},"hash":"{job.hash}",'
    limits = f'"limits":{json.dumps(dict(job.limits))},' if job.limits else ""
    return f'{{{keyed}{limits}"payload":{job.payload}}}'


def accept(tx: Transaction, filling: int, owner: str) -> tuple[int, bool]:
    """All its jobs have come in: make its batch. Its id, and False where its key has another already."""
    found = tx.one(SQL.filling_about, filling=filling) or (None, 0, None)
    text, jobs, batch = found
    if batch is not None:
        return batch, True  # the answer was lost
    if (
        text is None
        or tx.one(SQL.hold_filling, filling=filling, owner=owner, lease=LEASE) is None
    ):
        raise DatabaseError(
            say("the submission was undone: nothing came in for {lease:g} s", lease=LEASE)
        )
    about = json.loads(text)
    kind = about["submission"]["kind"]
    batch, opened = open_batch(tx, name=about["name"], key=about["key"], kind=kind)
    if opened:
        tx.run(SQL.accept_filling, filling=filling, batch=batch, lease=LEASE)
        tx.run(SQL.tally_filling, batch=batch, kind=kind, jobs=jobs)
    return batch, opened


def move(tx: Transaction, filling: int) -> bool:
    """Move one slice of an accepted submission into its batch; whether there is more to move."""
    held = tx.one(SQL.hold_accepted, filling=filling, lease=LEASE)
    if held is None:
        return False
    text, batch = held
    rows = tx.all(SQL.first_slice, filling=filling)
    if not rows:
        tx.run(SQL.end_filling, filling=filling)
        return False
    about = in_batch(_submission(json.loads(text)["submission"]), batch)
    start = rows[0][1]
    jobs = [_job(*row[2:]) for row in rows]
    tx.run(SQL.drop_slice, filling=filling)
    tx.run(SQL.tally_filling, batch=batch, kind=about.kind, jobs=-len(jobs))
    if jobs[0].key is not None:
        submit_keyed_jobs(tx, about, jobs, start)
    elif any(job.limits for job in jobs):
        submit_limited_jobs(tx, about, jobs, start)
    else:
        submit_jobs(tx, about, [job.payload for job in jobs], start)
    return True


def still_moving(tx: Transaction, batch: int) -> bool:
    """Whether jobs of this batch are still to be moved into it."""
    return tx.one(SQL.still_moving, batch=batch) is not None


def undo(tx: Transaction, filling: int, owner: str) -> bool:
    """Drop one slice of a submission that was not accepted; whether there is more to drop."""
    if tx.one(SQL.take_filling, filling=filling, owner=owner, lease=LEASE) is None:
        return False
    if tx.run(SQL.drop_slice, filling=filling):
        return True
    tx.run(SQL.end_filling, filling=filling)
    return False


def left(tx: Transaction) -> list[tuple[int, bool]]:
    """Submissions that nobody is at work on, and whether each was accepted."""
    return [(filling, batch is not None) for filling, batch in tx.all(SQL.left_fillings)]


def described(about: Submission, *, name: str, key: str) -> str:
    """A submission as it is kept, for whoever finishes it."""
    fields = asdict(about)
    if about.run_at is not None:
        fields["run_at"] = about.run_at.isoformat()
    return json.dumps({"name": name, "key": key, "submission": fields})


def _submission(fields: dict[str, Any]) -> Submission:
    run_at = fields["run_at"]
    return Submission(
        **fields | {"run_at": None if run_at is None else datetime.fromisoformat(run_at)}
    )


def _job(key: str | None, hash_: str | None, limits: str | None, payload: str) -> NewJob:
    return NewJob(payload, key, hash_, json.loads(limits) if limits else {})
