"""A database that was restored opens a new life: nobody of before may write to it."""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.store.rows import tell
from retoma.engine.store.runners import take_back
from retoma.engine.store.verb import SQL


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
    tx.run(SQL.name_incarnation, id=incarnation)
    tx.all(SQL.skip_ids, skip=skip)
    gone = tx.all(SQL.leave_runners)
    for boot, name in gone:
        tell(tx, actor=actor, verb="runner.gone", subject=f"{name} {boot}")
    jobs = 0
    while back := take_back(tx, actor):
        jobs += len(back)
    tell(tx, actor=actor, verb="database.restored", subject=subject, details=details)
    return Reopened(len(gone), jobs)
