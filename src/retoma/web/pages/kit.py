"""What every page needs: templates, assets, who looks, and the answer as a whole page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, cast
from urllib.parse import urlencode

from fastapi import Depends, Request
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from retoma.access import Person, Role, Session
from retoma.codec import digest
from retoma.settings import Settings
from retoma.web.house import House, visit_at
from retoma.web.pages.assets import read_assets
from retoma.web.pages.live import Region, Screens, Shown
from retoma.web.pages.view import View
from retoma.web.sign_in import PERSON, SESSION

THEME: Final = "retoma_theme"  # a cookie; without it as the browser's owner likes it
THEMES: Final = ("light", "dark")
HTMX: Final = "hx-request"
# The same as everywhere, and a frame of ours: what evidence is looked at in.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)


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
            (each.title or each.name, tuple((address, word) for word, address in each.menu))
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
        self._templates.globals.update(asset=self.assets.address, missing=self.assets.missing)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Looker:
    """Somebody at a page."""

    pages: Pages
    view: View
    person: Person | None
    session: Session | None
    theme: str
    path: str
    query: Mapping[str, str]
    htmx: bool

    @property
    def house(self) -> House:
        return self.pages.house

    async def page(self, shown: Shown, template: str, /, **given: Any) -> Response:
        """A whole page around what will be kept right, drawn the first time."""
        regions = {each.id: Markup(each.html) for each in await shown.draw()}  # noqa: S704 — ours
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

    def at(self, addresses: Iterable[str]) -> str | None:
        """Which of these pages this one is, or is below; where several are, the nearest."""
        over = [each for each in addresses if f"{self.path}/".startswith(f"{each}/")]
        return max(over, key=len, default="/" if self.path == "/" else None)

    def asked(self, **other: object) -> str:
        """What the address asks, with something else in it; None takes a thing out."""
        wanted = {**self.query, **other}
        kept = {name: str(value) for name, value in wanted.items() if value not in (None, "")}
        return f"?{urlencode(kept)}" if kept else ""


def pages_of(request: Request) -> Pages:
    return cast("Pages", request.app.state.pages)


def looker_at(request: Request) -> Looker:
    pages = pages_of(request)
    person: Person | None = request.scope.get(PERSON)
    theme = request.cookies.get(THEME, "")
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
