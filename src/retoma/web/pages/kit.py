"""What every page needs: templates, assets, who looks, and the answer as a whole page."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Final, cast
from urllib.parse import urlencode

from fastapi import Depends, Request
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from retoma.access import Person, Role, Session
from retoma.codec import digest
from retoma.services.pauses import SCOPES
from retoma.settings import Settings
from retoma.web.house import House, visit_at
from retoma.web.pages.assets import read_assets
from retoma.web.pages.live import Concern, Region, Screens, Shown
from retoma.web.pages.view import View
from retoma.web.sign_in import PERSON, SESSION, cookie_in
from retoma.words import say

THEME: Final = "retoma_theme"  # a cookie; without it as the browser's owner likes it
THEMES: Final = ("light", "dark")
TOUR: Final = "retoma_tour"  # a cookie; with it the three sentences of the first day are over
PAUSE: Final = 1.0  # seconds between two drawings of a page
HTMX: Final = "hx-request"
FURTHER: Final = say("None among those that were looked at: look further back.")
# The same as everywhere, and a frame of ours: what evidence is looked at in.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the menu: what it is called, and its pages, the first of which is its own."""

    name: str
    title: str
    pages: tuple[tuple[str, str], ...]  # (address, word)


class Pages:
    """What all pages of a site share."""

    def __init__(self, house: House, screens: Screens, settings: Settings) -> None:
        self.house = house
        self.settings = settings
        self.screens = screens
        self.assets = read_assets()
        self.called = tuple(
            (kind.name, state, word)
            for each in house.applications
            for kind in each.own_kinds()
            for state, word in each.words.items()
        )
        self.menu = tuple(
            Section(
                each.name,
                each.title or each.name,
                tuple((address, word) for word, address in each.menu),
            )
            for each in house.applications
            if each.menu
        )
        self._templates = Environment(
            loader=ChoiceLoader([PackageLoader("retoma.web.pages"), self._theirs()]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.globals.update(
            asset=self.assets.address, icon=self.assets.icon, missing=self.assets.missing
        )

    def menu_with(self, engine: str, rooms: tuple[tuple[str, str], ...]) -> tuple[Section, ...]:
        """The applications, and what is under all of them."""
        return (*self.menu, Section("engine", engine, rooms))

    def _theirs(self) -> PrefixLoader:
        """The templates of each application, by its name: `shop/orders.html`."""
        return PrefixLoader(
            {
                each.name: PackageLoader(each.templates)
                for each in self.house.applications
                if each.templates is not None
            }
        )

    def render(self, template: str, view: View, /, **given: Any) -> Markup:
        """Text of ours, in which whatever came from elsewhere is text."""
        page = self._templates.get_template(template)
        return Markup(page.render(view=view, say=view.say, **given))  # noqa: S704 — escaped there


@dataclass(frozen=True, slots=True)
class Screen:
    """A page as somebody looks at it; drawn anew when an event concerns it."""

    pages: Pages = field(compare=False, repr=False)
    view: View

    @property
    def key(self) -> Hashable:
        return self

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Bannered:
    """What a page shows, and above it what is paused: nobody should wonder why nothing moves."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    shown: Shown

    @property
    def key(self) -> Hashable:
        return self.view, self.shown.key

    @property
    def concern(self) -> Concern:
        return self.shown.concern

    async def draw(self) -> Sequence[Region]:
        paused = await self.pages.house.retoma.pauses.all()
        banner = self.pages.render(
            "pauses_banner.html", self.view, pauses=paused, scopes=SCOPES
        )
        return [drawn("paused-banner", banner), *await self.shown.draw()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looker:
    """Somebody at a page."""

    pages: Pages
    view: View
    person: Person | None
    session: Session | None
    theme: str
    toured: bool
    path: str
    query: Mapping[str, str]
    htmx: bool

    @property
    def house(self) -> House:
        return self.pages.house

    async def page(self, shown: Shown, template: str, /, **given: Any) -> Response:
        """A whole page around what will be kept right, drawn the first time."""
        first = await Bannered(self.pages, self.view, shown).draw()
        regions = {each.id: Markup(each.html) for each in first}  # noqa: S704 — ours
        live = f"/live{self.path}{self.asked()}"
        return self.answer(template, regions=regions, live=live, **given)

    def answer(
        self,
        template: str,
        /,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        live: str | None = None,
        **given: Any,
    ) -> Response:
        """Any page of ours."""
        csrf = self.session.csrf if self.session else ""
        html = self.pages.render(template, self.view, who=self, live=live, csrf=csrf, **given)
        return HTMLResponse(
            html,
            status_code=int(status),
            headers={
                "Cache-Control": "no-store",
                "Content-Language": self.view.language.replace("_", "-"),
                "Content-Security-Policy": POLICY,
            },
        )

    def at(self, menu: Iterable[Section]) -> str | None:
        """Which page of the menu this one is, or is below; where several are, the nearest."""
        addresses = [address for section in menu for address, _ in section.pages]
        over = [each for each in addresses if f"{self.path}/".startswith(f"{each}/")]
        return max(over, key=len, default=None)

    def within(self, menu: Iterable[Section]) -> Section | None:
        """The part of the menu in which this page is."""
        here = self.at(menu := tuple(menu))
        return next((each for each in menu if here in dict(each.pages)), None)

    def asked(self, **other: object) -> str:
        """What the address asks, with something else in it; None takes a thing out."""
        wanted = {**self.query, **other}
        kept = {name: str(value) for name, value in wanted.items() if value not in (None, "")}
        return f"?{urlencode(kept)}" if kept else ""


def pager(
    pages: Pages,
    view: View,
    *,
    empty: bool,
    nothing: str,
    way: tuple[str, str] | None = None,
    first: str | None = None,
    following: str | None = None,
    by_age: bool = True,
) -> Region:
    """What stands below a list: the way on and back; where nothing is in it, `nothing` says so, and the
    `way` (a word and an address) leads to what changes that."""
    html = pages.render(
        "pager.html",
        view,
        nothing=(FURTHER if following else nothing) if empty else None,
        way=None if following else way,
        first=first,
        following=following,
        by_age=by_age,
    )
    return drawn("pager", html)


def pages_of(request: Request) -> Pages:
    return cast("Pages", request.app.state.pages)


def looker_at(request: Request) -> Looker:
    pages = pages_of(request)
    person: Person | None = request.scope.get(PERSON)
    theme = cookie_in(request, THEME) or ""
    view = View(
        language=visit_at(request).language,
        role=person.role if person else Role.VIEWER,
        timezone=pages.house.retoma.timezone,
        called=pages.called,
    )
    return Looker(
        pages=pages,
        view=view,
        person=person,
        session=request.scope.get(SESSION),
        theme=theme if theme in THEMES else "",
        toured=cookie_in(request, TOUR) is not None,
        path=request.url.path,
        query=dict(request.query_params),
        htmx=HTMX in request.headers,
    )


ALooker = Annotated[Looker, Depends(looker_at)]


def drawn(id_: str, whole: Markup, rows: Mapping[str, Markup] | None = None) -> Region:
    return Region(id_, str(whole), {name: str(html) for name, html in (rows or {}).items()})


def called(sort: str, name: str) -> str:
    """The id of an element that stands for something with any name at all."""
    return f"{sort}-{digest(name)[:16]}"
