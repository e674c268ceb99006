"""What the database itself can tell a doctor."""

from dataclasses import dataclass
from datetime import datetime

from retoma.db import Transaction, moment
from retoma.engine.query.page import at, sql

HEALTH = sql("health")


@dataclass(frozen=True, slots=True)
class Health:
    """One look. What `journal` and `synchronous` may be, each database has its own words for."""

    now: datetime
    journal: str  # SQLite: the journal mode; PostgreSQL: fsync
    synchronous: str
    unfolded: int  # tallies, counted up to a bound
    unfolded_since: datetime | None
    orphans: int  # jobs held by a runner that does not live


def health(tx: Transaction) -> Health:
    [[now, journal, synchronous, unfolded, since, orphans]] = tx.all(HEALTH)
    return Health(at(now), str(journal), str(synchronous), unfolded, moment(since), orphans)
