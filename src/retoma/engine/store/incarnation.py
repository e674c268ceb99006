"""A database that was restored opens a new life: nobody of before may write to it."""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.store.rows import tell
from retoma.engine.store.runners import take_back
from retoma.engine.store.verb import verb

LEAVE_RUNNERS = verb("leave_runners")
NAME_INCARNATION = verb("name_incarnation")
SKIP_IDS = verb("skip_ids")


@dataclass(frozen=True, slots=True)
class Reopened:
    """Whom a restore has shut out, and how many jobs wait again."""

    runners: int
    jobs: int


def reopen(
    tx: Transaction, incarnation: str, *, skip: int, actor: str, subject: str, details: str
) -> Reopened:
    """Cursors of before are strange from now on, boots of before are over, and what they held
    waits again: their end is not held against it, so nothing is buried for having been restored.
    `skip`: how many jobs there may have been that this database knows nothing of."""
    tx.run(NAME_INCARNATION, id=incarnation)
    tx.all(SKIP_IDS, skip=skip)
    gone = tx.all(LEAVE_RUNNERS)
    for boot, name in gone:
        tell(tx, actor=actor, verb="runner.gone", subject=f"{name} {boot}")
    jobs = 0
    while back := take_back(tx, actor):
        jobs += len(back)
    tell(tx, actor=actor, verb="database.restored", subject=subject, details=details)
    return Reopened(len(gone), jobs)
