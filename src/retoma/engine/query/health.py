"""What the database itself can tell a doctor."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from retoma.db import Transaction
from retoma.engine.query.page import SQL


@dataclass(frozen=True, slots=True)
class Health:
    """One look. What `journal` and `synchronous` may be, each database has its own words for."""

    now: datetime
    journal: str  # SQLite: the journal mode; PostgreSQL: fsync
    synchronous: Annotated[str, str]  # SQLite: a number
    unfolded: int  # tallies, counted up to a bound
    unfolded_since: datetime | None
    orphans: int  # jobs held by a runner that does not live


def health(tx: Transaction) -> Health:
    [found] = tx.all(SQL.health, into=Health)
    return found
