"""Start and stop the orchestrator; whether it works, and what keeps it from working."""

from typing import Any

from retoma.apps.ads import store
from retoma.apps.ads.service.connections import read
from retoma.apps.ads.store.watch import watch
from retoma.library import Retoma


async def get_orchestrator(retoma: Retoma) -> store.OrchestratorState:
    return await read(retoma, store.get_state)


async def start_orchestrator(retoma: Retoma, *, actor: str) -> store.OrchestratorState:
    await retoma.write(lambda tx: store.start(tx, actor=actor))
    return await get_orchestrator(retoma)


async def stop_orchestrator(
    retoma: Retoma, *, actor: str, now: bool = False
) -> store.OrchestratorState:
    """Let what runs finish and then end the sessions; with `now` cancel what runs too."""
    stop = store.stop_now if now else store.stop
    await retoma.write(lambda tx: stop(tx, actor=actor))
    return await get_orchestrator(retoma)


async def find_problems(retoma: Retoma) -> dict[str, dict[str, Any]]:
    """Find what keeps the orchestrator from working, by the name of its alert."""
    return await read(retoma, watch)
