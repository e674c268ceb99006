"""Routes of pages: a problem is told as a page, and whoever is not signed in is shown the door."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Annotated, Any, Final, cast
from urllib.parse import quote, unquote_to_bytes

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from retoma.access import Person
from retoma.web import problems
from retoma.web.pages.kit import ALooker, Bannered, Looker, Screen, looker_at
from retoma.web.pages.live import Shown, partials
from retoma.web.problems import Refusal
from retoma.web.request_body import ON_THE_LOOP
from retoma.web.route import Route
from retoma.web.sign_in import Viewer
from retoma.web.stream import EventStream, check_room, still
from retoma.words import Said, say

LIVE: Final = "/live"
# Headers: draw it now and no more; say how many it would be and do nothing.
ONCE: Final = "retoma-once"
COUNT: Final = "retoma-count"
MOST_FIELDS: Final = 20_000  # of one form
PIECE: Final = 64 * 1024  # bytes that are unescaped at a time
LONGEST: Final = 1_000  # characters of an address to come back to
UNNAMED: Final = say("nothing is named; nothing was changed")
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

    def needed(self, name: str, refused: Said = UNNAMED) -> str:
        """A field that must be there."""
        value = self.one(name)
        if value is None:
            raise Refusal("bad_input", refused)
        return value


async def form_of(request: Request) -> Form:
    raw = await request.body()
    try:
        if len(raw) <= ON_THE_LOOP:
            return Form(_fields(raw))
        return Form(await asyncio.get_running_loop().run_in_executor(None, _fields, raw))
    except ValueError:
        raise Refusal(
            "bad_request", say("the form cannot be read; load the page again")
        ) from None


async def json_of(request: Request) -> Any:
    """What a program of ours on a page sent, read once: of a large body the bytes are gone."""
    try:
        return await request.json()
    except ValueError:
        raise Refusal(
            "bad_request", say("the form cannot be read; load the page again")
        ) from None


def _fields(raw: bytes) -> dict[str, list[str]]:
    """Name by name; ValueError: it is no form. `parse_qs` makes an object of every escape."""
    if raw.count(b"&") >= MOST_FIELDS:
        raise ValueError("too many fields")
    fields: dict[str, list[str]] = {}
    for each in raw.split(b"&") if raw else ():
        name, equals, value = each.partition(b"=")
        if not equals:
            raise ValueError("a field without a value")
        fields.setdefault(_unescaped(name), []).append(_unescaped(value))
    return fields


def _unescaped(raw: bytes) -> str:
    """Some at a time, never through the middle of an escape."""
    made = bytearray()
    at = 0
    while at < len(raw):
        cut = raw.rfind(b"%", at + PIECE - 2, at + PIECE)
        end = at + PIECE if cut < 0 else cut
        made += unquote_to_bytes(raw[at:end].replace(b"+", b" "))
        at = end
    text = made.decode("utf-8")
    if "\0" in text:
        raise ValueError("a NUL character")
    return text


# — live —


async def streamed(request: Request, who: Looker, shown: Shown) -> Response:
    """A page from now on, for as long as whoever looks may; or as it is now, where a proxy on the
    way keeps a stream for itself and the page must ask."""
    whole = Bannered(who.pages, who.view, shown)
    if ONCE in request.headers:
        return HTMLResponse(partials(await whole.draw()), headers={"Cache-Control": "no-store"})
    person = cast("Person", who.person)
    check_room(who.house, person)
    guard = still(person, who.house, request)
    return EventStream(await who.pages.screens.watch(whole, guard, person.name))


def serve_screen(
    routes: APIRouter,
    path: str,
    screen: Callable[..., Any],
    template: str | None = None,
    admits: Any = Viewer,
) -> None:
    """Serve a page and its stream. Without a template the page has a route of its own."""
    Drawn = Annotated[Any, Depends(screen)]  # noqa: N806 — a type

    async def show(_: admits, who: ALooker, drawn: Drawn) -> Response:
        return await who.page(drawn, template or "")

    async def live(_: admits, who: ALooker, request: Request, drawn: Drawn) -> Response:
        return await streamed(request, who, drawn)

    if template is not None:
        routes.get(path)(show)
    routes.get(f"{LIVE}{path}")(live)


def plain(screen: type[Screen]) -> Callable[..., Screen]:
    """A page that asks nothing of its address."""

    def made(who: ALooker) -> Screen:
        return screen(who.pages, who.view)

    return made
