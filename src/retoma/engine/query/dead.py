"""The list of dead letters: what ended badly and still wants somebody's eye."""

from retoma.db import Transaction
from retoma.engine.query.page import checked, sql
from retoma.engine.rules.job import Job

LIST_DEAD = sql("list_dead")


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
        LIST_DEAD,
        into=Job,
        kind=kind,
        batch=batch,
        code=code,
        before=before,
        limit=checked(limit, "dead letters"),
    )
