"""`/livez`, `/readyz`, and the way out. The way in is a page: `pages/entrance.py`."""

from typing import Any

from fastapi import Request, Response

from retoma.access import Session
from retoma.services.health import find_trouble
from retoma.web.house import AHouse
from retoma.web.problems import LATER
from retoma.web.route import router
from retoma.web.sign_in import SESSION, Anybody, Viewer, drop_cookie
from retoma.web.wire import Health

routes = router("door")

DEGRADED: dict[int | str, dict[str, Any]] = {
    503: {
        "model": Health,
        "description": "The database does not answer, takes no writes, or is not fit.",
    }
}


@routes.get("/livez", dependencies=[Anybody])
async def livez() -> Health:
    """This process is alive. Asks nobody."""
    return Health(status="ok")


@routes.get("/readyz", dependencies=[Anybody], responses=DEGRADED)
async def readyz(house: AHouse, response: Response) -> Health:
    """It can do its work: the database answers, takes writes, and had room of late."""
    trouble = await find_trouble(house.retoma) or ("full" if house.is_full else None)
    if trouble is None:
        return Health(status="ok", database="ok")
    response.status_code = 503
    response.headers["Retry-After"] = str(LATER)
    return Health(status="degraded", database=trouble)


@routes.post("/leave", status_code=204)
async def leave(who: Viewer, request: Request, house: AHouse, response: Response) -> None:
    """Sign out."""
    session: Session | None = request.scope.get(SESSION)
    if session is not None:
        await (await house.access()).end_session(session.id, who.name)
    drop_cookie(response, house)
