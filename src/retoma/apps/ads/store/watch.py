"""What somebody should know of the orchestrator although nothing has failed for good."""

from typing import Any, Final

from retoma.apps.ads.store.rows import SQL
from retoma.db import Transaction
from retoma.words import say, stored

LATE: Final = 900.0  # seconds without a proxy, or without a writer


def watch(tx: Transaction) -> dict[str, dict[str, Any]]:
    """Nothing while it is stopped, or has nothing to do; but what was found is stored even then."""
    waiting, workers, failing, unwritten, works = tx.one(SQL.watch, late=LATE) or [0] * 5
    found: dict[str, dict[str, Any]] = {}
    if works and waiting:
        text = say("no proxy has been available for 15 minutes (ERROR501)")
        found["no_proxy"] = {**stored(text), "sessions": waiting}
    if works and workers and failing == workers:
        text = say("every worker is in error: no mission is extracted")
        found["workers_in_error"] = {**stored(text), "workers": workers}
    if unwritten:
        text = say("no writer has been available for 15 minutes (ERROR301): ads wait")
        found["no_writer"] = {**stored(text), "missions": unwritten}
    return found
