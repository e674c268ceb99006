"""The site: FastAPI, built from the house and the manifests of its applications.

The kit knows no application by name; a route that declares no role is not served at all.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import Any, Final, TypeVar

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp

from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.manifest import Application, load
from retoma.services.bulk import order_kind
from retoma.settings import Settings
from retoma.web import problems, reference
from retoma.web.body import Shape
from retoma.web.bounds import UNSAFE, Bound, Bounds, Places
from retoma.web.files import Pieces
from retoma.web.house import Face, House, visit_at
from retoma.web.notices import notice_kinds
from retoma.web.pages import ROUTERS as PAGES
from retoma.web.pages import Pages, Screens, told
from retoma.web.problems import CODES
from retoma.web.route import Route, methods_at, router
from retoma.web.routes import (
    alerts,
    batches,
    costs,
    dead,
    disk,
    door,
    gates,
    jobs,
    metrics,
    pauses,
    people,
    stream,
    work,
)
from retoma.web.routes import (
    settings as knobs,
)
from retoma.web.sign_in import Anybody
from retoma.web.wire import ONCE_DOCUMENTED, Problem
from retoma.words import say

# One for each room.
ROUTERS: Final[Sequence[APIRouter]] = (
    *(jobs.routes, batches.routes, dead.routes, work.routes, stream.routes),
    *(alerts.routes, gates.routes, costs.routes, people.routes, door.routes, metrics.routes),
    *(knobs.routes, pauses.routes, disk.routes),
)
STREAMS: Final = ("/api/stream", "/live")  # answers that never end have no time to end in
UNBOUNDED: Final = 1e9  # requests a second
VERSION: Final = "1"
ABOUT: Final = (
    "Jobs, batches, dead letters and what holds them back. Every answer that is not what was asked"
    " for is a problem (RFC 9457) with a code and a trace id. Lists come in pages of at most 200."
)
T = TypeVar("T")
Life = Callable[[House], AbstractAsyncContextManager[object]]


def build_site(
    retoma: Retoma,
    settings: Settings,
    applications: Sequence[Application] = (),
    *,
    bound: Bound | None = None,
    routers: Sequence[APIRouter] = (),
    lives: Sequence[Life] = (),
) -> FastAPI:
    """Everything that is served. `routers` are rooms beside the house's own; `lives` begin and
    end with the server."""
    house = House(
        retoma=retoma,
        face=face_of(settings),
        bound=bound or Bound(),
        settings=settings,
        applications=applications,
        api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
    )
    retoma.knobs.fix(settings.fixed)
    for application in applications:
        retoma.knobs.declare(application.name, application.knobs)
    _register_own(house, settings)
    site = _Site(house, lives)
    site.state.pages = Pages(house, Screens(house.broadcaster, retoma.clock), settings)
    for each in (*ROUTERS, *PAGES, *routers, *_of(applications), _about(site)):
        # As they are: included, each route would be made anew for every site, and none of ours differs.
        site.router.routes.extend(each.routes)
    site.add_exception_handler(HTTPException, _not_ours)
    check_roles(site)
    house.queries = dict(queries_of(site))
    house.named = named_in(site)
    return site


def face_of(settings: Settings) -> Face:
    return Face(
        host=settings.serve_host, port=settings.serve_port, public_url=settings.public_url
    )


class _Site(FastAPI):
    """FastAPI without its own pages, within our bounds, with our OpenAPI."""

    def __init__(self, house: House, lives: Sequence[Life]) -> None:
        super().__init__(
            title="retoma",
            version=VERSION,
            description=ABOUT,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            lifespan=lifespan_of(house, lives),
            redirect_slashes=False,
        )
        self.state.house = house

    def build_middleware_stack(self) -> ASGIApp:
        house: House = self.state.house
        uploads = dict(
            (each, None) if isinstance(each, str) else each
            for application in house.applications
            for each in application.uploads
        )
        large_json = {
            each.path: (each.size, Shape(keys=each.keys, text=each.text))
            for application in house.applications
            for each in application.large_json
        }
        bound = house.bound
        if house.face.public_url is not None:
            # Whoever asks, it is the proxy's address that we see.
            bound = replace(bound, per_address=UNBOUNDED)
        return Bounds(
            super().build_middleware_stack(),
            bound=bound,
            places=Places(
                hosts=house.face.hosts,
                uploads=uploads,
                large_json=large_json,
                streams=STREAMS,
                is_secure=house.face.secure,
            ),
            clock=house.retoma.clock,
            ids=house.retoma.ids,
            room=house.room,
        )

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _documented(self)
        return self.openapi_schema


def _register_own(house: House, settings: Settings) -> None:
    kind = order_kind(house.retoma)
    house.own.add(kind)
    if kind.tag not in house.retoma.kinds.tags():
        house.retoma.kinds.add(kind)
    for notice in notice_kinds(house.retoma, settings):
        house.own.add(notice)
    known = house.retoma.kinds
    for each in house.applications:
        # What asks the database alone is done here too: also where no runner lives somebody looks.
        if each.watched_by_server or each.mend is None:
            _take(house.own.watches, known.watches, each.name)
            _take(house.own.mends, known.mends, each.name)


def _take(to: dict[str, T], known: Mapping[str, T], name: str) -> None:
    if name in known:
        to[name] = known[name]


def _of(applications: Sequence[Application]) -> Iterator[APIRouter]:
    for each in applications:
        for address in (each.router, each.pages):
            if address is not None:
                yield load(address)


def lifespan_of(house: House, lives: Sequence[Life]) -> Any:
    """Each begins before a request is answered; the last to begin is the first to end."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(house.broadcaster.close)
            for each in lives:
                await stack.enter_async_context(each(house))
            yield

    return lifespan


def _about(site: FastAPI) -> APIRouter:
    """The API tells of itself; there is nothing in it that anybody may not know."""
    routes = router("about")

    one = asyncio.Lock()

    async def made(make: Callable[[], bytes]) -> bytes:
        """What takes most of a second the first time: in a thread, and for all who wait once."""
        async with one:
            return await asyncio.get_running_loop().run_in_executor(None, make)

    @cache
    def page() -> bytes:
        return reference.page(site.openapi()).encode()

    @cache
    def document() -> bytes:
        return bytes(JSONResponse(site.openapi()).body)

    @routes.get(
        "/docs", dependencies=[Anybody], response_class=HTMLResponse, include_in_schema=False
    )
    async def docs() -> Response:
        return Pieces(await made(page), "text/html; charset=utf-8")

    @routes.get(
        "/docs.css", dependencies=[Anybody], response_class=Response, include_in_schema=False
    )
    async def style() -> Response:
        return Response(reference.STYLE, media_type="text/css")

    @routes.get("/openapi.json", dependencies=[Anybody], include_in_schema=False)
    async def openapi() -> Response:
        return Pieces(await made(document), "application/json")

    return routes


async def _not_ours(request: Request, error: Exception) -> Response:
    """What no route answers: nothing is there, or not so."""
    refusal = problems.unanswered(error, methods_at(request))
    return told(request, problems.response(refusal, visit_at(request)))


# — roles —


def check_roles(site: FastAPI) -> None:
    """Every route declares who may use it, or nothing is served."""
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        if not isinstance(route, Route):
            raise BadInput(
                say(
                    "route {path} declares no role: make it with retoma.web.router",
                    path=getattr(route, "path", "?"),
                )
            )
        _ = route.declared


# — OpenAPI —


def _documented(site: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=site.title, version=site.version, description=ABOUT, routes=site.routes
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        if isinstance(route, Route) and route.include_in_schema:
            for method in route.methods or ():
                _complete(made["paths"][route.path_format][method.lower()], route, method)
    return made


def _complete(operation: dict[str, Any], route: Route, method: str) -> None:
    """Its role, and every status it may have."""
    [role] = route.declared
    operation["x-role"] = "anybody" if role is None else str(role)
    if role is not None:
        without: list[dict[str, list[str]]] = [{}] if route.open_near else []
        operation["security"] = [*without, {"bearer": []}, {"key": []}]
    if method == "POST" and role is not None and not route.keeps_answers:
        operation.setdefault("parameters", []).append(ONCE_DOCUMENTED)
    responses = operation["responses"]
    for status in _statuses(route, method):
        there = responses.get(str(int(status)))
        if there is None or "HTTPValidationError" in str(there):
            responses[str(int(status))] = _problem_at(status)
    operation["responses"] = {code: responses[code] for code in sorted(responses)}


def _statuses(route: Route, method: str) -> set[HTTPStatus]:
    [role] = route.declared
    wanted = {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
    if role is not None:
        wanted |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    if "{" in route.path:
        wanted.add(HTTPStatus.NOT_FOUND)
    if method in UNSAFE:
        wanted |= {
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            HTTPStatus.INSUFFICIENT_STORAGE,
        }
    return wanted


def _problem_at(status: HTTPStatus) -> dict[str, Any]:
    codes = [code for code, its in CODES.items() if its == status]
    named = ", ".join(f"`{code}`" for code in codes)
    return {
        "description": f"{problems.TITLES[status]}: {named}.",
        "content": {problems.MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def named_in(site: FastAPI) -> frozenset[str]:
    """Addresses that are routes as they stand."""
    every = (each.original_route for each in iter_route_contexts(site.routes))
    return frozenset(
        each.path for each in every if isinstance(each, Route) and not each.param_convertors
    )


def queries_of(site: FastAPI) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """What each route may be asked: method and path, and the names of its parameters."""
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        if isinstance(route, Route) and route.include_in_schema:
            names = frozenset(_query_names(route.dependant))
            for method in route.methods or ():
                yield (method.lower(), route.path_format), names


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (each.alias for each in dependant.query_params)
    for below in dependant.dependencies:
        yield from _query_names(below)
