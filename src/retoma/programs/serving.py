"""Build an HTTP program behind an API key: its routes, the request limits of the web kit, and a runner."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from retoma.db import DatabaseError
from retoma.engine.log import get_logger
from retoma.engine.rules.errors import RetomaError
from retoma.library import Retoma
from retoma.web import Bound, Face, House
from retoma.web.bounds import Bounds, Places
from retoma.web.house import visit_at
from retoma.web.problems import response, unanswered
from retoma.web.route import methods_at
from retoma.web.site import check_roles, lifespan_of, named_in, queries_of

GRACE: Final = 5.0  # seconds for jobs to finish when the program stops
PAUSE: Final = 1.0  # seconds before a failed runner is restarted
VERSION: Final = "1"
log = get_logger("retoma.programs")
Life = Callable[[], AbstractAsyncContextManager[object]]


def build_service(
    title: str,
    retoma: Retoma,
    face: Face,
    *,
    api_key: str,
    routers: Sequence[APIRouter],
    lives: Sequence[Life] = (),
    bound: Bound | None = None,
    unhurried: Sequence[str] = (),
    **options: Any,
) -> FastAPI:
    """Build the app. Routes come from `retoma.web.router`, each with its role; the key's holder is an admin.

    `lives`: context managers that start before the runner and end after it. `unhurried`: paths whose
    answers may take longer than others. `options`: options of the runner.
    """
    house = House(retoma=retoma, face=face, bound=bound or Bound(), api_key=api_key)
    site = _Service(title, house, unhurried, (*lives, lambda: _runner(retoma, options)))
    for routes in routers:
        site.include_router(routes)
    site.add_exception_handler(HTTPException, _not_ours)
    check_roles(site)
    house.queries = dict(queries_of(site))
    house.named = named_in(site)
    return site


class _Service(FastAPI):
    """FastAPI without its documentation pages."""

    def __init__(
        self, title: str, house: House, unhurried: Sequence[str], lives: Sequence[Life]
    ) -> None:
        super().__init__(
            title=title,
            version=VERSION,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            lifespan=lifespan_of(house, [_alone(each) for each in lives]),
            redirect_slashes=False,
        )
        self.state.house = house
        self._unhurried = unhurried

    def build_middleware_stack(self) -> ASGIApp:
        house: House = self.state.house
        return Bounds(
            super().build_middleware_stack(),
            bound=house.bound,
            places=Places(
                hosts=house.face.hosts, streams=self._unhurried, is_secure=house.face.secure
            ),
            clock=house.retoma.clock,
            ids=house.retoma.ids,
            room=house.room,
        )


def _alone(life: Life) -> Callable[[House], AbstractAsyncContextManager[object]]:
    """Adapt a context manager that needs no context."""
    return lambda _: life()


@asynccontextmanager
async def _runner(retoma: Retoma, options: dict[str, Any]) -> AsyncIterator[None]:
    """Run the program's job kinds until the block ends."""
    settings = {"grace": GRACE, "let_go": GRACE / 2, **options}
    leaving = asyncio.Event()

    async def kept() -> None:
        # A runner that was drained or whose database failed is restarted until the program stops.
        while not leaving.is_set():
            try:
                await retoma.run(**settings)
            except (DatabaseError, RetomaError):
                log.exception("service.runner_failed")
                await retoma.clock.sleep(PAUSE)

    run = asyncio.create_task(kept())
    try:
        yield
    finally:
        leaving.set()
        retoma.stop()
        await asyncio.wait({run}, timeout=2 * float(settings["grace"]))
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def _not_ours(request: Request, error: Exception) -> Response:
    return response(unanswered(error, methods_at(request)), visit_at(request))
