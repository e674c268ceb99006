"""How every route of ours goes: who is it, is that what we know, do it, or say what is wrong."""

from collections.abc import Callable, Coroutine
from functools import cached_property
from http import HTTPStatus
from traceback import clear_frames
from typing import Any

import structlog
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from retoma.access import Role
from retoma.db import Full
from retoma.engine.rules.errors import BadInput
from retoma.web import problems
from retoma.web.bounds import UNSAFE
from retoma.web.flaws import flaws_of
from retoma.web.house import house_of, visit_at
from retoma.web.problems import Flaw, Refusal
from retoma.web.replay import Keeps, answered_once
from retoma.web.request_body import BODY, STRANGERS, Gone, RequestBody
from retoma.web.sign_in import admit, needs_of
from retoma.web.wire import ONCE
from retoma.words import say

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

log = structlog.get_logger("retoma.web")


class Route(APIRoute):
    """A route that declares its role, and answers errors as problems."""

    @cached_property
    def declared(self) -> tuple[Role | None]:
        """The role it needs; None in it: it is for anybody."""
        found = {each.role for each in needs_of(self.dependant)}
        if len(found) != 1:
            raise BadInput(
                say(
                    "route {path} declares {n} roles: every route declares one",
                    path=self.path,
                    n=len(found),
                )
            )
        return (found.pop(),)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """An address that is named by itself is nobody's id: what it does not take is 405, not a bad id."""
        if self.param_convertors and scope["path"] in _named(scope):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        keeps_answers = self.keeps_answers

        async def guarded(request: Request) -> Response:
            try:
                [role] = self.declared
                who = None
                if role is not None and not self._is_open(request):
                    who = await admit(request, role, self.path)
                self._check_query(request)
                if request.method in UNSAFE:
                    body: RequestBody = request.scope[BODY]
                    await body.load(STRANGERS if role is None else None)
                    if body.is_json:
                        request._json = body.value  # noqa: SLF001 — read once, not by each
                if who is None or request.method != "POST" or keeps_answers:
                    return await handle(request)
                # What only looks keeps no answer: whoever may not write must not fill the database.
                of_page = Keeps.ANSWER if self.include_in_schema else Keeps.OUTCOME
                keeps = Keeps.NOTHING if role is Role.VIEWER else of_page
                return await answered_once(request, who, handle, keeps)
            except Gone:
                return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)  # sent to nobody
            except Exception as error:  # noqa: BLE001 — the last door: said as a problem
                problem = _problem(request, error, self.path)
                # Else a body that was refused stays in memory until somebody looks for cycles.
                clear_frames(error.__traceback__)
                return problem
            finally:
                request._json = None  # noqa: SLF001

        return guarded

    @property
    def keeps_answers(self) -> bool:
        """Whether it keeps its answer under an Idempotency-Key by itself, with what it writes."""
        return any(each.alias == ONCE for each in self.dependant.header_params)

    @cached_property
    def open_near(self) -> bool:
        """Nobody is asked who it is while only this machine can reach us."""
        return any(each.open_near for each in needs_of(self.dependant))

    def _is_open(self, request: Request) -> bool:
        return self.open_near and house_of(request).face.is_near

    def _check_query(self, request: Request) -> None:
        """What nobody reads must not look as if it had been heard."""
        known = house_of(request).queries.get((request.method.lower(), self.path_format))
        if known is None:
            return
        flaws = [
            Flaw(f"query.{name[:100]}", why)
            for name in request.query_params
            for why in _flaws_of_parameter(name, request, known)
        ]
        if flaws:
            raise Refusal(
                "bad_input", say("a value is not allowed; nothing was changed"), flaws
            )


def _flaws_of_parameter(name: str, request: Request, known: frozenset[str]) -> list[Any]:
    if name not in known:
        return [say("is not known here")]
    if len(request.query_params.getlist(name)) > 1:
        return [say("is said more than once")]
    value = request.query_params[name]
    return [say("has a character that cannot be looked for")] if "\0" in value else []


def _problem(request: Request, error: Exception, route: str) -> Response:
    visit = visit_at(request)
    if isinstance(error, RequestValidationError):
        detail = say("a value is not allowed; nothing was changed")
        return problems.response(Refusal("bad_input", detail, flaws_of(error)), visit)
    refusal = problems.refusal_of(error)
    if refusal is None:
        log.error("request.failed", route=route, exc_info=error)
        refusal = problems.internal()
    if isinstance(error, Full):
        house_of(request).found_full()
    return problems.response(refusal, visit)


def _named(scope: Scope) -> frozenset[str]:
    app = scope.get("app")
    return frozenset() if app is None else app.state.house.named


def methods_at(request: Request) -> set[str]:
    """What the address of a request takes, by all its routes."""
    path, named = request.scope["path"], _named(request.scope)
    found: set[str] = set()
    for each in iter_route_contexts(request.app.routes):
        route = each.original_route
        if isinstance(route, Route) and route.path_regex.match(path):
            is_id = bool(route.param_convertors) and path in named
            found |= set() if is_id else set(route.methods or ())
    return found


def router(tag: str) -> APIRouter:
    """For the routes of one room."""
    return APIRouter(route_class=Route, tags=[tag])
