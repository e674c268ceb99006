"""Iniciar, Parar, and whether there is anything to do."""

from typing import Annotated

from fastapi import Query

from retoma.apps.ads.api.wire import routes
from retoma.apps.ads.service.orchestrator import (
    get_orchestrator,
    start_orchestrator,
    stop_orchestrator,
)
from retoma.web import AHouse, Operator, Viewer
from retoma.web.wire import Shown


class OrchestratorShown(Shown):
    """What it is to do, and what is left to do (§6.7)."""

    wish: str
    changed_by: str
    queued_count: int
    running_count: int
    session_count: int


@routes.get("/api/orchestrator")
async def orchestrator(_: Viewer, house: AHouse) -> OrchestratorShown:
    """Whether it is to work, and whether there is anything to do."""
    return OrchestratorShown.model_validate(await get_orchestrator(house.retoma))


@routes.post("/api/orchestrator/start")
async def start(who: Operator, house: AHouse) -> OrchestratorShown:
    """ "Iniciar": a wish that outlives every process; said twice it changes nothing."""
    state = await start_orchestrator(house.retoma, actor=who.name)
    return OrchestratorShown.model_validate(state)


@routes.post("/api/orchestrator/stop")
async def stop(
    who: Operator,
    house: AHouse,
    now: Annotated[bool, Query(description="Cancel what runs too.")] = False,
) -> OrchestratorShown:
    """ "Parar": what runs is finished, then the sessions end. "Parar agora" cancels what runs."""
    state = await stop_orchestrator(house.retoma, actor=who.name, now=now)
    return OrchestratorShown.model_validate(state)
