"""One job held by itself, under a runner's row of its own: for code that is no story and beats by hand.

A face of an older system claims here, says how far it is, and ends. Every write carries the boot and the
epoch; zero rows is LeaseLost. Functions over a transaction: whoever calls decides when it commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.db import Call, Row, Transaction
from retoma.engine import store
from retoma.engine.ports import Processes
from retoma.engine.rules.errors import IllegalMove, LeaseLost
from retoma.engine.rules.job import Claim, Held, Memory, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import State
from retoma.engine.store.claim import ALL, claim_job
from retoma.engine.store.verb import SQL
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Lone:
    """The right to write on one job, as long as its runner's row is beaten."""

    boot: str
    held: Held
    limit_key: str | None = None


def take(
    tx: Transaction, me: store.Boot, lease: float, queue: str, job: int
) -> tuple[Claim, Memory]:
    """Boot a runner for this one job and claim it; IllegalMove where it may not be claimed now.

    Asked again under the same boot, after an answer was lost, it gives the same claim.
    """
    store.boot_runner(tx, me, lease)
    [claim] = store.recall_jobs(tx, me.id) or [_claimed(tx, me, queue, job)]
    kept = store.load_steps(tx, [claim], inline=ALL)
    return claim, kept.get(job, Memory([], 0.0, canceling=False))


def _claimed(tx: Transaction, me: store.Boot, queue: str, job: int) -> Claim:
    tx.run(SQL.promote_job, queue=queue, job=job)
    claim = claim_job(tx, me.id, queue, job, me.knows, suspects=1)
    if claim is None:
        raise IllegalMove(say("job {job} cannot be claimed now", job=job))
    return claim


def wait_for(tx: Transaction, job: int) -> None:
    """Until nobody is in the middle of a move of it: who takes it up next sees where it stands."""
    tx.run(SQL.lock_job, job=job)


def recover(tx: Transaction, me: store.Boot, processes: Processes | None = None) -> int:
    """Take back what is left by whoever's lease is over, or whose process here is gone; how many."""
    store.declare_lost(tx, actor=me.id)
    processes = processes or Processes()
    for boot, process in store.neighbours(tx, me.id, me.process.host):
        if processes.gone(process):
            store.move_runner(tx, boot, "lost", actor=me.id)
    return len(store.take_back(tx, me.id))


def beat(tx: Transaction, lone: Lone, lease: float, progress: float | None) -> bool:
    """Renew its lease and say that it moves; whether it is still wanted."""
    told = {"boot": lone.boot, "lease": lease, "reconnected": 0, "trouble": None}
    if tx.one(SQL.beat_runner, **told) is None:
        raise LeaseLost(lone.held.job)
    row = store.report_row(lone.held, progress, None)
    return not _accepted(tx, lone, store.reports(lone.boot, [row]))[2]


def save(
    tx: Transaction,
    lone: Lone,
    lease: float,
    steps: Sequence[tuple[StepId, str]],
    progress: float | None,
) -> bool:
    """Keep these, the last of them its checkpoint, and beat; whether it is still wanted."""
    wanted = beat(tx, lone, lease, progress)
    rows = [(lone.held, step, store.step_fields(step, value)) for step, value in steps]
    _accepted(tx, lone, store.saves(lone.boot, rows))
    return wanted


def end(tx: Transaction, lone: Lone, how: Settlement) -> State:
    """Settle it; the state it is in now. Its runner's row is for `gone` afterwards."""
    row = store.settle_row(lone.held, how)
    state = State(_accepted(tx, lone, store.settles(lone.boot, [row]))[2])
    if lone.limit_key is not None:
        store.give_back(tx, [lone.limit_key])
    return state


def _accepted(tx: Transaction, lone: Lone, call: Call) -> Row:
    for row in tx.ask(call.statement, call.params):
        if Held(*row[:2]) == lone.held:
            return row
    raise LeaseLost(lone.held.job)
