"""What one job has made and another may use again: found by a hash of what it was made of.

The value is kept here, beside the step that made it, so that a hit outlives the job it came from.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from retoma.codec import decode, digest, encode, plain
from retoma.db import Transaction, moment
from retoma.engine.rules.cost import Bill, Charge, Offer, read_charges
from retoma.engine.rules.job import StepId
from retoma.engine.store.rows import now, tell
from retoma.engine.store.verb import SQL

BITE = 1_000  # forgotten in one transaction
KEY = 500  # characters of a key that are shown


@dataclass(frozen=True, slots=True)
class Found:
    """A result that may be used again, and what it has cost."""

    value: str
    charges: Sequence[Charge]
    job: int


@dataclass(frozen=True, slots=True)
class ReuseSeen:
    """One of them, without its value."""

    hash: str
    kind: str
    step: str
    version: int
    key: str
    job: int
    at: datetime
    cost: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Those that are to be forgotten; what is None is not asked for."""

    kind: str | None = None
    step: str | None = None
    version: int | None = None
    key_hash: str | None = None
    before: datetime | None = None


def offer_of(kind: str, step: StepId, key: Any) -> Offer:
    """A result of this step of this kind, made of this: whatever order a dict has."""
    text = json.dumps(json.loads(encode(plain(key))), sort_keys=True, ensure_ascii=False)
    named = encode([kind, step.name, step.version, text])
    return Offer(digest(named), kind, step.name, step.version, text[:KEY], digest(text))


def find(tx: Transaction, hash_: str, age: float | None) -> Found | None:
    """`age`: seconds beyond which it is too old."""
    found = tx.one(SQL.find_reuse, hash=hash_, age=age)
    if found is None:
        return None
    value, cost, job = found
    return Found(value, read_charges(cost), job)


def offer(tx: Transaction, offers: Iterable[tuple[Bill, str]]) -> None:
    """Steps that were saved in this transaction, with their values."""
    made = sorted(
        ((bill.offer, bill, value) for bill, value in offers if bill.offer is not None),
        key=lambda each: each[0].hash,
    )
    if not made:
        return
    rows = {each.hash: _row(each, bill, value) for each, bill, value in made}
    tx.run(SQL.offer_reuse, rows=f"[{','.join(rows.values())}]")


def _row(offer: Offer, bill: Bill, value: str) -> str:
    told = {
        "hash": offer.hash,
        "kind": offer.kind,
        "step": offer.step,
        "version": offer.version,
        "key": offer.key,
        "key_hash": offer.key_hash,
        "job": bill.payer.job,
    }
    kept = bill.kept()
    cost = f',"cost":{kept}' if kept else ""
    return f'{json.dumps(told)[:-1]},"value":{value}{cost}}}'


def list_reuse(
    tx: Transaction, *, kind: str | None = None, step: str | None = None, limit: int = 50
) -> list[ReuseSeen]:
    return [
        ReuseSeen(
            hash_,
            kind_,
            step_,
            version,
            key,
            job,
            moment(at),
            None if cost is None else decode(cost)["charges"],
        )
        for hash_, kind_, step_, version, key, job, at, cost in tx.all(
            SQL.list_reuse, kind=kind, step=step, limit=limit
        )
    ]


def retire(tx: Transaction, *, age: float, actor: str) -> int:
    """A bite of those that are older than so many seconds."""
    before = now(tx) - timedelta(seconds=age)
    return forget(tx, Which(before=before), actor=actor)


def forget(tx: Transaction, which: Which, *, actor: str) -> int:
    """A bite of them; how many that were."""
    gone = tx.all(
        SQL.forget_reuse,
        kind=which.kind,
        step=which.step,
        version=which.version,
        key_hash=which.key_hash,
        before=which.before or now(tx),
        bite=BITE,
    )
    if gone:
        tell(tx, actor=actor, verb="reuse.forgotten", subject=f"{len(gone)} results")
    return len(gone)
