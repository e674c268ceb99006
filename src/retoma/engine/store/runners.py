"""The rows of runners, and what the lost among them leave behind."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retoma.db import Call, Transaction
from retoma.engine.job import Held
from retoma.engine.ports import Process
from retoma.engine.states import State
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import verb

BITE = 500  # jobs taken back in one pass
BEAT_RUNNER = verb("beat_runner")
BOOT_RUNNER = verb("boot_runner")
DATABASE_ID = verb("database_id")
FOLD_TALLIES = verb("fold_tallies")
LOSE_RUNNERS = verb("lose_runners")
MOVE_RUNNER = verb("move_runner")
NEIGHBOURS = verb("neighbours")
TAKE_BACK_JOBS = verb("take_back_jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One life of a runner."""

    id: str
    name: str
    process: Process
    version: str
    slots: int
    knows: Sequence[str]


def boot_runner(tx: Transaction, me: Boot, lease: float) -> str:
    """Write down a new life; the id of this database, for keys that leave it."""
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
    [(database,)] = tx.all(DATABASE_ID)
    return str(database).replace("-", "")[:12]


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
