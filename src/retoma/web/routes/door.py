"""`/livez`, `/readyz`, and the way in and out for browsers."""

from html import escape
from typing import Annotated, Any

from fastapi import Path, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from retoma.access import Session
from retoma.db import DatabaseError
from retoma.web.house import AHouse, AVisit
from retoma.web.problems import LATER, Refusal
from retoma.web.route import router
from retoma.web.sign_in import SESSION, Anybody, Viewer, check_origin, drop_cookie, set_cookie
from retoma.web.wire import Health
from retoma.words import say, tell

routes = router("door")

HOME = "/docs"  # where somebody who came in goes
LinkToken = Annotated[str, Path(pattern=r"^[0-9A-Za-z_]{1,256}$", description="Of a link.")]
PAGE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}}
}
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
    trouble = "full" if house.is_full else None
    try:
        await house.retoma.ready()
    except DatabaseError as error:
        trouble = type(error).__name__.lower()
    if trouble is None:
        return Health(status="ok", database="ok")
    response.status_code = 503
    response.headers["Retry-After"] = str(LATER)
    return Health(status="degraded", database=trouble)


@routes.get(
    "/enter/{link}", dependencies=[Anybody], response_class=HTMLResponse, responses=PAGE
)
async def entrance(link: LinkToken, visit: AVisit) -> HTMLResponse:
    """A page with one button: whoever only looks at a link has not used it up."""
    words = {
        "title": tell(say("Sign in to retoma"), visit.language),
        "button": tell(say("Sign in"), visit.language),
    }
    shown = {name: escape(text) for name, text in words.items()}
    return HTMLResponse(
        f"<!doctype html><html lang='{visit.language[:2]}'><meta charset='utf-8'>"
        f"<title>{shown['title']}</title><link rel='stylesheet' href='/docs.css'>"
        f"<main><h1>{shown['title']}</h1><form method='post' action='/enter/{escape(link)}'>"
        f"<button>{shown['button']}</button></form></main>",
        headers={"Cache-Control": "no-store"},
    )


@routes.post(
    "/enter/{link}",
    dependencies=[Anybody],
    status_code=303,
    response_class=RedirectResponse,
    responses={303: {"description": "Signed in: a cookie, and where to go."}},
)
async def enter(link: LinkToken, request: Request, house: AHouse) -> RedirectResponse:
    """Sign in, once."""
    check_origin(request, house)
    access = await house.access()
    cookie = await access.enter(link, request.headers.get("user-agent", ""))
    if cookie is None:
        raise Refusal(
            "sign_in",
            say("this link is not good, or was used; ask for another"),
            headers={"WWW-Authenticate": 'Bearer realm="retoma"'},
        )
    answer = RedirectResponse(HOME, status_code=303)
    set_cookie(answer, house, cookie)
    return answer


@routes.post("/leave", status_code=204)
async def leave(who: Viewer, request: Request, house: AHouse, response: Response) -> None:
    """Sign out."""
    session: Session | None = request.scope.get(SESSION)
    if session is not None:
        await (await house.access()).end_session(session.id, who.name)
    drop_cookie(response, house)
