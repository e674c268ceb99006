"""`/api/pauses`: applications, kinds and queues of which nothing is claimed for a while."""

from typing import Annotated

from fastapi import Path

from retoma.services import pauses
from retoma.services.pauses import Scope
from retoma.web.house import AHouse
from retoma.web.route import router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import NewPause, Paused, PauseShown

routes = router("pauses")

PausedName = Annotated[
    str, Path(min_length=1, max_length=200, description="What it is called: `quotes`, `quote`.")
]


@routes.get("/api/pauses")
async def list_pauses(_: Viewer, house: AHouse) -> list[PauseShown]:
    """What is paused, since when and by whom; what was paused first, first."""
    return [PauseShown.model_validate(each) for each in await pauses.list_pauses(house.retoma)]


@routes.put("/api/pauses")
async def pause(body: NewPause, who: Operator, house: AHouse) -> PauseShown:
    """Answered, nothing of it is claimed any more; what runs goes on to its end. Asked again it stays
    as it is."""
    found = await pauses.pause(
        house.retoma, body.scope, body.name, why=body.why, actor=who.name
    )
    return PauseShown.model_validate(found)


@routes.delete("/api/pauses/{scope}/{name:path}")
async def resume(scope: Scope, name: PausedName, who: Operator, house: AHouse) -> Paused:
    """It goes on where it stood."""
    return Paused.model_validate(await pauses.resume(house.retoma, scope, name, actor=who.name))
