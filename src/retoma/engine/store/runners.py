"""The rows of runners, and what the lost among them leave behind."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from retoma.db import Call, Transaction
from retoma.engine.ports import Process
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.gates import Limit
from retoma.engine.rules.job import MOST_LOSSES, NEARLY_ALONE, Held
from retoma.engine.rules.states import State
from retoma.engine.store import alerts, gates, pauses
from retoma.engine.store.pauses import Belongs
from retoma.engine.store.rows import append_event, tell
from retoma.engine.store.verb import SQL
from retoma.words import say

BITE = 500  # jobs taken back in one pass
BOOTED = "booted:"  # a topic, with a boot: somebody new may be beside us
DRAIN = "drain:"  # a topic, with a boot: somebody wants it to leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One life of a runner."""

    id: str
    name: str
    process: Process
    version: str
    slots: int
    knows: Sequence[str]


class Beat(IntEnum):
    """What a beat is answered with."""

    OVER = 0  # this boot counts no more
    ON = 1
    LEAVE = 2  # it counts, and somebody wants it to leave


def boot_runner(
    tx: Transaction,
    me: Boot,
    lease: float,
    limits: Iterable[tuple[str, Limit]] = (),
    kinds: Sequence[Belongs] = (),
) -> str:
    """A new life, which also says what its code lets run at once, and where its kinds belong; the id
    of this database."""
    gates.declare_kinds(tx, limits)
    if kinds:
        pauses.declare(tx, kinds)
    new = tx.run(
        SQL.boot_runner,
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
    if new:
        tell(tx, actor=me.id, verb="runner.booted", subject=me.name)
    tx.ring(f"{BOOTED}{me.id}")
    return database_id(tx)


def database_id(tx: Transaction) -> str:
    """By which two databases tell themselves apart."""
    [(database,)] = tx.all(SQL.database_id)
    return str(database).replace("-", "")[:12]


def beat_runner(
    tx: Transaction,
    boot: str,
    lease: float,
    *,
    reconnected: bool,
    trouble: str | None = None,
) -> Beat:
    """Whether this boot still counts, and is still wanted."""
    told = {
        "boot": boot,
        "lease": lease,
        "reconnected": int(reconnected),
        "trouble": trouble,
    }
    [[*rows]] = tx.finish(Call(SQL.beat_runner, told))
    if not rows:
        return Beat.OVER
    [[drain]] = rows
    return Beat.LEAVE if drain else Beat.ON


@dataclass(frozen=True, slots=True)
class Drained:
    """A runner that was asked to leave: `alive` until it has heard of it, then `leaving`."""

    boot: str
    name: str
    state: str


def drain_runner(tx: Transaction, boot: str, *, actor: str) -> Drained:
    """Ask a runner to leave as if its process had been told to; asked twice it is asked once."""
    asked = tx.one(SQL.request_drain, into=str, boot=boot)
    if asked is not None:
        tell(tx, actor=actor, verb="runner.drain_requested", subject=f"{asked} {boot}")
        tx.ring(f"{DRAIN}{boot}")
        return Drained(boot, asked, "alive")
    found = tx.one(SQL.get_runner, boot=boot)
    if found is None:
        raise NotFound(say("there is no runner {boot}", boot=boot))
    name, state = found
    if state not in ("alive", "leaving"):
        raise IllegalMove(
            say("runner {name} {boot} is {state} already", name=name, boot=boot, state=state)
        )
    return Drained(boot, name, state)


def drain_wanted(tx: Transaction, boot: str) -> bool:
    return tx.one(SQL.drain_wanted, boot=boot) is not None


def move_runner(
    tx: Transaction, boot: str, to: str, *, actor: str, why: str | None = None
) -> bool:
    """A living runner is leaving, gone or lost; whether this call made it so."""
    moved = tx.one(SQL.move_runner, boot=boot, to=to)
    if moved is None:
        return False
    _, name = moved
    details = None if why is None else json.dumps({"why": why})
    tell(tx, actor=actor, verb=f"runner.{to}", subject=name, details=details)
    return True


def lose_runners(tx: Transaction, me: str, lease: float) -> list[str]:
    """Declare lost whose lease is over, if this runner was itself in touch all the while."""
    lost = tx.all(SQL.lose_runners, boot=me, lease=lease)
    for boot, name in lost:
        tell(tx, actor=me, verb="runner.lost", subject=f"{name} {boot}")
    return [boot for boot, _ in lost]


def declare_lost(tx: Transaction, *, actor: str) -> int:
    """As `lose_runners`, for a person, who is no runner."""
    lost = tx.all(SQL.declare_lost)
    for boot, name in lost:
        tell(tx, actor=actor, verb="runner.lost", subject=f"{name} {boot}")
    return len(lost)


def neighbours(tx: Transaction, me: str, host: str) -> list[tuple[str, Process]]:
    rows = tx.all(SQL.neighbours, boot=me, host=host)
    return [(boot, Process(host, pid, started)) for boot, pid, started in rows]


def tell_held_loop(tx: Transaction, boot: str, details: str) -> int:
    """Put into the timelines of what a lost runner left where it stood; in its own name."""
    left = tx.all(SQL.number_left_jobs, boot=boot)
    for job, epoch, seq in left:
        append_event(tx, job, seq, EventType.STALLED, boot, details, epoch=epoch)
    return len(left)


def take_back(tx: Transaction, me: str) -> list[tuple[Held, State]]:
    """Let the jobs of lost runners wait again; fail a job as poison that killed too many of them."""
    back = tx.all(SQL.take_back_jobs, actor=me, bite=BITE, few=NEARLY_ALONE, most=MOST_LOSSES)
    for queue in {queue for *_, queue, _ in back}:
        tx.ring(queue)
    gates.give_back(tx, (limit_key for *_, limit_key in back))
    return [(Held(job, epoch), State(state)) for job, epoch, state, *_ in back]


def fold_tallies(tx: Transaction) -> int:
    """Add up what moved since the last time; how many rows that was.

    A batch that has finished by it is told of, once: nobody else can see that moment.
    """
    folded = tx.all(SQL.fold_tallies)
    touched = {batch for (batch,) in folded if batch is not None}
    if touched:
        batches = json.dumps(dict.fromkeys(touched, 1))
        finished: dict[str, str] = dict(
            tx.all(SQL.tell_finished, batches=batches, actor="fold")
        )
        if finished:
            alerts.raise_finished(tx, finished)
    return len(folded)
