"""The page of settings: every knob of this process, who turned it, and what takes a restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from pydantic import AliasChoices, SecretStr
from starlette.responses import Response

from retoma.secret import STARS, redact_text
from retoma.settings import Settings, Source
from retoma.web.pages.kit import ALooker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Admin
from retoma.words import Said, say

routes = page_router()

PAUSE: Final = 10.0  # seconds between two drawings: nothing here moves
SOURCES: Final[Mapping[Source, Said]] = {
    Source.DEFAULT: say("default"),
    Source.ENVIRONMENT: say("environment"),
    Source.GIVEN: say("given at its start"),
}


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting as it stands in this process."""

    name: str
    others: tuple[str, ...]  # names of other systems that are heard too
    value: str | None
    source: Source
    about: str


@dataclass(frozen=True, slots=True)
class SettingsScreen:
    """All knobs, in the order of their reference."""

    pages: Pages = field(compare=False, repr=False)
    view: View

    @property
    def key(self) -> "SettingsScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        knobs = knobs_of(self.pages.settings)
        html = self.pages.render("settings_knobs.html", self.view, knobs=knobs, sources=SOURCES)
        return [drawn("knobs", html)]


def knobs_of(settings: Settings) -> list[Knob]:
    return [_knob(settings, name) for name in type(settings).model_fields]


def _knob(settings: Settings, name: str) -> Knob:
    about = type(settings).model_fields[name]
    named, *others = _names(about.validation_alias)
    return Knob(
        name=named,
        others=tuple(others),
        value=_shown(getattr(settings, name)),
        source=settings.source(name),
        about=about.description or "",
    )


def _names(alias: Any) -> list[str]:
    return [str(each) for each in alias.choices] if isinstance(alias, AliasChoices) else [alias]


def _shown(value: Any) -> str | None:
    """What is secret is told as stars, also inside an address."""
    if value in (None, ""):
        return None
    if isinstance(value, SecretStr):
        return STARS
    return f"{value:g}" if isinstance(value, float) else redact_text(str(value))


def settings_screen(who: ALooker) -> SettingsScreen:
    return SettingsScreen(who.pages, who.view)


AScreen = Annotated[SettingsScreen, Depends(settings_screen)]


@routes.get("/settings")
async def show(_: Admin, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "settings.html")


@routes.get("/live/settings")
async def live(_: Admin, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)
