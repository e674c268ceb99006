"""What rests because somebody wants it to: the banner of every page, and the page on which it is steered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.responses import Response

from retoma.services import pauses
from retoma.services.pauses import SCOPES, Scope
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Region
from retoma.web.pages.route import Form, did, form_of, page_router, plain, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator
from retoma.words import say

routes = page_router()

BACK: Final = "/pauses"


@dataclass(frozen=True, slots=True)
class PausesScreen(Screen):
    """Applications, kinds and queues, and which of them are paused."""

    async def draw(self) -> Sequence[Region]:
        desk = self.pages.house.retoma.pauses
        paused = {(each.scope, each.name): each for each in await desk.all()}
        names = await desk.names()
        table = self.pages.render(
            "pauses_table.html", self.view, names=names, paused=paused, scopes=SCOPES
        )
        return [drawn("pausable", table)]


serve_screen(routes, "/pauses", plain(PausesScreen), "pauses.html")


@routes.post("/pauses/pause")
async def pause(actor: Operator, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    scope, name = _named(form)
    await pauses.pause(who.house.retoma, scope, name, why=form.one("why"), actor=actor.name)
    said = say("{scope} {name} is paused: what runs ends", scope=SCOPES[scope], name=name)
    return did(who, who.view.tell(said), BACK)


@routes.post("/pauses/resume")
async def resume(actor: Operator, who: ALooker, request: Request) -> Response:
    scope, name = _named(await form_of(request))
    await pauses.resume(who.house.retoma, scope, name, actor=actor.name)
    return did(
        who,
        who.view.tell(say("{scope} {name} goes on", scope=SCOPES[scope], name=name)),
        BACK,
    )


def _named(form: Form) -> tuple[Scope, str]:
    """A button says both in one word: `kind quote`."""
    scope, _, name = (form.one("what") or "").partition(" ")
    if scope not in list(Scope) or not name:
        raise Refusal("bad_input", say("nothing is named; nothing was changed"))
    return Scope(scope), name
