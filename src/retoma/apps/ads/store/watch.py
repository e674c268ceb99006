"""What somebody should know of the orchestrator although nothing has failed for good."""

from typing import Any, Final

from retoma.apps.ads.store.rows import Asks, verb

LATE: Final = 900.0  # seconds without a proxy, or without a writer
WATCH = verb("watch")


def watch(tx: Asks) -> dict[str, dict[str, Any]]:
    """Nothing while it is stopped, or has nothing to do; but what was found is stored even then."""
    waiting, workers, failing, unwritten, works = tx.one(WATCH, late=LATE) or [0] * 5
    found: dict[str, dict[str, Any]] = {}
    if works and waiting:
        text = "nenhum proxy disponível há 15 minutos (ERROR501)"
        found["no_proxy"] = {"text": text, "sessions": waiting}
    if works and workers and failing == workers:
        text = "todos os workers estão em erro: nenhuma missão é extraída"
        found["workers_in_error"] = {"text": text, "workers": workers}
    if unwritten:
        text = "nenhum writer disponível há 15 minutos (ERROR301): os anúncios esperam"
        found["no_writer"] = {"text": text, "missions": unwritten}
    return found
