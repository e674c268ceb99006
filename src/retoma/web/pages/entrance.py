"""Signing in and out with a browser, how somebody likes their pages, and what pages load."""

from typing import Annotated, Final

from fastapi import Path, Request
from starlette.responses import RedirectResponse, Response

from retoma.access import Session
from retoma.web.house import AHouse
from retoma.web.pages.kit import THEME, THEMES, TOUR, ALooker, pages_of
from retoma.web.pages.route import form_of, local, page_router
from retoma.web.problems import Refusal
from retoma.web.sign_in import (
    CHALLENGE,
    SESSION,
    Anybody,
    Viewer,
    check_origin,
    drop_cookie,
    set_cookie,
)
from retoma.web.visit import LANGUAGE
from retoma.words import Language, say

routes = page_router()

HOME: Final = "/"  # where somebody who came in goes
LinkToken = Annotated[str, Path(pattern=r"^[0-9A-Za-z_]{1,256}$")]
YEAR: Final = 365 * 86_400  # seconds


@routes.get("/static/{name:path}", dependencies=[Anybody])
async def static(name: str, request: Request) -> Response:
    accepted = request.headers.get("accept-encoding", "")
    found = pages_of(request).assets.answer(name, accepted)
    if found is None:
        raise Refusal("not_found", say("there is nothing at this address"))
    return found


@routes.get("/sign-in", dependencies=[Anybody])
async def sign_in(who: ALooker) -> Response:
    return who.answer("sign_in.html", link=None)


@routes.get("/enter/{link}", dependencies=[Anybody])
async def entrance(link: LinkToken, who: ALooker) -> Response:
    """A page with one button: whoever only looks at a link has not used it up."""
    return who.answer("sign_in.html", link=link)


@routes.post("/enter/{link}", dependencies=[Anybody])
async def enter(link: LinkToken, request: Request, house: AHouse) -> Response:
    """Sign in, once."""
    check_origin(request, house)
    access = await house.access()
    cookie = await access.enter(link, request.headers.get("user-agent", ""))
    if cookie is None:
        raise Refusal(
            "sign_in",
            say("this link is not good, or was used; ask for another"),
            headers={"WWW-Authenticate": CHALLENGE},
        )
    answer = RedirectResponse(HOME, status_code=303)
    set_cookie(answer, house, cookie)
    return answer


@routes.post("/sign-out")
async def sign_out(who: Viewer, request: Request, house: AHouse) -> Response:
    session: Session | None = request.scope.get(SESSION)
    if session is not None:
        await (await house.access()).end_session(session.id, who.name)
    answer = RedirectResponse("/sign-in", status_code=303)
    drop_cookie(answer, house)
    return answer


@routes.post("/preferences", dependencies=[Anybody])
async def prefer(request: Request, house: AHouse) -> Response:
    """Kept by the browser alone; nobody need be signed in for it."""
    check_origin(request, house)
    form = await form_of(request)
    answer = RedirectResponse(local(form.one("next")), status_code=303)
    language, theme = form.one("language"), form.one("theme") or ""
    if form.one("tour"):
        _keep(answer, request, TOUR, "over")
    elif language in list(Language):
        _keep(answer, request, LANGUAGE, str(language))
    elif theme in THEMES:
        _keep(answer, request, THEME, theme)
    else:
        answer.delete_cookie(THEME)
    return answer


def _keep(answer: Response, request: Request, name: str, value: str) -> None:
    secure = pages_of(request).house.face.secure
    answer.set_cookie(name, value, max_age=YEAR, samesite="lax", httponly=True, secure=secure)
