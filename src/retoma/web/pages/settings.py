"""The page of settings: every knob, who turned it, what an admin may turn now, what takes a restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from starlette.responses import Response

from retoma.engine.rules.live_settings import Source
from retoma.services import settings
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Region
from retoma.web.pages.route import did, form_of, page_router, plain, serve_screen
from retoma.web.sign_in import Admin
from retoma.words import Said, say

routes = page_router()

BACK: Final = "/settings"
SOURCES: Final[Mapping[Source, Said]] = {
    Source.DEFAULT: say("default"),
    Source.DATABASE: say("changed here"),
    Source.ENVIRONMENT: say("environment"),
    Source.GIVEN: say("given at its start"),
}


@dataclass(frozen=True, slots=True)
class SettingsScreen(Screen):
    """Those that change while processes run; then the rest, in the order of their reference."""

    async def draw(self) -> Sequence[Region]:
        seen = await settings.list_settings(
            self.pages.house.retoma, self.pages.settings, every=True
        )
        return [
            drawn(
                name,
                self.pages.render(
                    "settings_knobs.html",
                    self.view,
                    id=name,
                    live=live,
                    knobs=[each for each in seen if each.live is live],
                    sources=SOURCES,
                    shown=shown,
                ),
            )
            for name, live in (("changing", True), ("knobs", False))
        ]


def shown(value: Any) -> str:
    """As a person types it; nothing, where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


serve_screen(routes, "/settings", plain(SettingsScreen), "settings.html", admits=Admin)


@routes.post("/settings/change")
async def change(actor: Admin, who: ALooker, request: Request) -> Response:
    """An empty value is nothing at all, where a knob may be that."""
    form = await form_of(request)
    value = form.one("value") or ""
    changed = await settings.change_setting(
        who.house.retoma, form.needed("name"), value, actor=actor.name
    )
    said = say(
        "{name} is {value} from now on",
        name=changed.name,
        value=shown(changed.value) or say("nothing"),
    )
    return did(who, who.view.tell(said), BACK)


@routes.post("/settings/reset")
async def reset(actor: Admin, who: ALooker, request: Request) -> Response:
    name = (await form_of(request)).needed("name")
    await settings.reset_setting(who.house.retoma, name, actor=actor.name)
    return did(who, who.view.tell(say("{name}: its default holds again", name=name)), BACK)
