"""Iniciar, Parar, and whether there is anything to do."""

from typing import Annotated

from fastapi import Query

from retoma.apps.ads import store
from retoma.apps.ads.api.how import named, read, routes
from retoma.engine.rules.errors import BadInput
from retoma.web import AHouse, House, Operator, Viewer
from retoma.web.wire import Shown
from retoma.words import say


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
    return await orchestrator_shown(house)


@routes.post("/api/orchestrator/start")
async def start(who: Operator, house: AHouse) -> OrchestratorShown:
    """ "Iniciar": a wish that outlives every process; said twice it changes nothing."""
    await house.retoma.write(lambda tx: store.start(tx, actor=who.name))
    return await orchestrator_shown(house)


@routes.post("/api/orchestrator/stop")
async def stop(
    who: Operator,
    house: AHouse,
    now: Annotated[bool, Query(description="Cancel what runs too.")] = False,
) -> OrchestratorShown:
    """ "Parar": what runs is finished, then the sessions end. "Parar agora" cancels what runs."""
    verb = store.stop_now if now else store.stop
    await house.retoma.write(lambda tx: verb(tx, actor=who.name))
    return await orchestrator_shown(house)


async def orchestrator_shown(house: House) -> OrchestratorShown:
    row = await read(house, lambda tx: tx.one(store.COUNT_MISSIONS))
    if row is None:
        raise BadInput(say("the ads application is not installed here"))
    return OrchestratorShown(**named(OrchestratorShown.model_fields, row))
