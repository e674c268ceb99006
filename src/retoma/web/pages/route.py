"""Routes of pages: a problem is told as a page, and whoever is not signed in is shown the door."""

import json
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from retoma.access import Person
from retoma.web import problems
from retoma.web.pages.kit import Bannered, Looker, looker_at
from retoma.web.pages.live import Shown, partials
from retoma.web.problems import Refusal
from retoma.web.route import Route
from retoma.web.routes.stream import check_room, still
from retoma.web.stream import EventStream
from retoma.words import say

LIVE: Final = "/live"
# Headers: draw it now and no more; say how many it would be and do nothing.
ONCE: Final = "retoma-once"
COUNT: Final = "retoma-count"
LONGEST: Final = 1_000  # characters of an address to come back to
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(Route):
    """As every route, for people."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            response = await handle(request)
            if response.headers.get("content-type") != problems.MEDIA:
                return response
            return told(request, response)

        return answered


def page_router() -> APIRouter:
    """For pages: they are no part of the API, nor of its reference."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def told(request: Request, response: Response) -> Response:
    """A problem as whoever asked can read it."""
    status = HTTPStatus(response.status_code)
    is_live = request.url.path.startswith(f"{LIVE}/")
    if is_live or "text/html" not in request.headers.get("accept", ""):
        return response  # a program reads it
    who = looker_at(request)
    if status is HTTPStatus.UNAUTHORIZED and request.method == "GET":
        return RedirectResponse(f"/sign-in{_back(request)}", status_code=303)
    problem = json.loads(bytes(response.body))
    if who.htmx:
        return notice(who, problem["detail"], flaws=problem.get("errors", ()), status=status)
    return who.answer("problem.html", status=status, problem=problem)


def _back(request: Request) -> str:
    """Where somebody wanted to go."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"?next={quote(wanted, safe='')}" if len(wanted) <= LONGEST else ""


def notice(
    who: Looker,
    text: str,
    *,
    flaws: Iterable[dict[str, str]] = (),
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """A word in the corner of the page. What was done is seen where it happens, by its event."""
    html = who.pages.render(
        "notice.html",
        who.view,
        text=text,
        flaws=list(flaws),
        bad=status >= HTTPStatus.BAD_REQUEST,
    )
    return HTMLResponse(html, status_code=int(status), headers={"Cache-Control": "no-store"})


def did(who: Looker, text: str, back: str) -> Response:
    """What a form is answered: a word for a page that is there, else the way back to it."""
    return notice(who, text) if who.htmx else RedirectResponse(local(back), status_code=303)


def local(address: str | None) -> str:
    """Only ever a page of ours: what begins with two slashes is another host."""
    if address is None or not address.startswith("/") or address[1:2] in ("/", "\\"):
        return "/"
    return address if address.isprintable() else "/"


# — forms —


class Form:
    """What a form of ours brought."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def one(self, name: str) -> str | None:
        values = self._fields.get(name, [])
        return values[0] if values and values[0] else None

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])


async def form_of(request: Request) -> Form:
    try:
        text = (await request.body()).decode("utf-8")
        fields = parse_qs(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="strict"
        )
    except ValueError:
        raise Refusal(
            "bad_request", say("the form cannot be read; load the page again")
        ) from None
    if any("\0" in value for values in fields.values() for value in values):
        raise Refusal("bad_request", say("the form cannot be read; load the page again"))
    return Form(fields)


# — live —


async def streamed(request: Request, who: Looker, shown: Shown) -> Response:
    """A page from now on, for as long as whoever looks may; or as it is now, where a proxy on the
    way keeps a stream for itself and the page must ask."""
    whole = Bannered(who.pages, who.view, shown)
    if ONCE in request.headers:
        return HTMLResponse(partials(await whole.draw()), headers={"Cache-Control": "no-store"})
    check_room(who.house)
    guard = still(cast("Person", who.person), who.house, request)
    return EventStream(await who.pages.screens.watch(whole, guard))
