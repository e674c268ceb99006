"""The list of dead letters: what ended badly and still wants somebody's eye."""

from retoma.db import Transaction
from retoma.engine.query.page import SQL, checked
from retoma.engine.rules.job import Job


def list_dead(
    tx: Transaction,
    *,
    kind: str | None = None,
    batch: int | None = None,
    code: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[Job]:
    """Newest first; without those that were discarded."""
    return tx.all(
        SQL.list_dead,
        into=Job,
        kind=kind,
        batch=batch,
        code=code,
        before=before,
        limit=checked(limit, "dead letters"),
    )
