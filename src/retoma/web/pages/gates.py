"""The page of what may hold work back: breakers, limits and rates, each changed where it is seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.responses import Response

from retoma.library import Retoma
from retoma.services import gates
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import CursorOf
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Admin, Operator
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 50  # limits
BACK: Final = "/gates"


@dataclass(frozen=True, slots=True)
class GatesScreen(Screen):
    """All breakers and rates, and a page of limits."""

    cursor: str | None = None

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        stamp = Cursor("limits page", None)
        [after] = stamp.read(self.cursor, str) or [""]
        limits = await gates.list_limits(retoma, after, PAGE)
        following = stamp.write(limits[-1].key if len(limits) == PAGE else None)
        given = {
            "breakers": await gates.list_breakers(retoma),
            "limits": limits,
            "rates": await gates.list_rates(retoma),
            "following": following and BACK + query_of({"cursor": following}),
            "first": self.cursor and BACK,
        }
        return [
            drawn(f"gates-{name}", self.pages.render(f"gates_{name}.html", self.view, **given))
            for name in ("breakers", "limits", "rates")
        ]


def gates_screen(who: ALooker, cursor: CursorOf = None) -> GatesScreen:
    return GatesScreen(who.pages, who.view, cursor)


serve_screen(routes, "/gates", gates_screen, "gates.html")


@routes.post("/gates/breaker/{verb}")
async def steer(verb: str, actor: Operator, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    retoma = who.house.retoma
    name = form.needed("name")
    match verb:
        case "open":
            await gates.open_breaker(retoma, name, form.one("why") or "", actor=actor.name)
            said = say("{name} is open: nobody calls it", name=name)
        case "close":
            await gates.close_breaker(retoma, name, actor=actor.name)
            said = say("{name} is closed: it is called", name=name)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
    return did(who, who.view.tell(said), BACK)


@routes.post("/gates/limit")
async def set_limit(actor: Admin, who: ALooker, request: Request) -> Response:
    said = await _limited(who.house.retoma, await form_of(request), actor.name)
    return did(who, who.view.tell(said), BACK)


async def _limited(retoma: Retoma, form: Form, actor: str) -> Said:
    """An empty cap means what the code says."""
    key, given = form.needed("key"), form.one("cap")
    if given is None:
        await gates.set_limit(retoma, key, None, actor=actor)
        return say("{key}: what the code says holds", key=key)
    cap = int(given) if given.isascii() and given.isdigit() and len(given) <= 18 else -1
    await gates.set_limit(retoma, key, cap, actor=actor)
    return say("{key}: {cap} at once from now on", key=key, cap=cap)


@routes.post("/gates/rate")
async def set_rate(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    key, burst = form.needed("key"), form.one("burst")
    rate = _number("per_second", form.one("per_second"))
    most = None if burst is None else _number("burst", burst)
    await gates.set_rate(who.house.retoma, key, rate, most, actor=actor.name)
    said = say("{key}: {rate:g} a second from now on", key=key, rate=rate)
    return did(who, who.view.tell(said), BACK)


def _number(name: str, given: str | None) -> float:
    try:
        return float((given or "").replace(",", "."))
    except ValueError:
        raise Refusal(
            "bad_input", say("{name} is a number, not {number!r}", name=name, number=given)
        ) from None
