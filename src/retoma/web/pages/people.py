"""The page of people and keys: who may come in, with what, and how that ends. For admins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import HTMLResponse, Response

from retoma.access import Role
from retoma.web.asked import place, spot
from retoma.web.cursor import Cursor, cut
from retoma.web.pages.asked import CursorOf
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn
from retoma.web.pages.live import Region
from retoma.web.pages.route import did, form_of, page_router, serve_screen
from retoma.web.sign_in import Admin
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 100  # rows of each table
PEOPLE: Final = Cursor("people page", None)
KEYS: Final = Cursor("keys page", None)
SESSIONS: Final = Cursor("sessions page", None)
OVERLAP: Final = "1d"  # how long an old key is good beside the new one
BACK: Final = "/people"
NOTHING: Final = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class PeopleScreen(Screen):
    """People, browsers and keys."""

    people: str | None = None  # where each table begins
    keys: str | None = None
    sessions: str | None = None

    async def draw(self) -> Sequence[Region]:
        access = await self.pages.house.access()
        [name] = PEOPLE.read(self.people, str) or [""]
        people = await access.people(after=name, limit=PAGE + 1)
        keys = await access.keys(after=spot(KEYS, self.keys), limit=PAGE + 1)
        sessions = await access.sessions(after=spot(SESSIONS, self.sessions), limit=PAGE + 1)
        return [
            self._table("people", *cut(PEOPLE, people, PAGE, lambda each: [each.name])),
            self._table("keys", *cut(KEYS, keys, PAGE, place)),
            self._table("sessions", *cut(SESSIONS, sessions, PAGE, place)),
        ]

    def _table(self, table: str, rows: Sequence[Any], following: str | None) -> Region:
        html = self.pages.render(
            f"people_{table}.html",
            self.view,
            from_environment=self.pages.house.api_key is not None,
            first=getattr(self, table) and self._link(table, None),
            following=following and self._link(table, following),
            **{table: rows},
        )
        return drawn(f"people-{table}", html)

    def _link(self, table: str, cursor: str | None) -> str:
        """This page with another part of one table; the others stay where they are."""
        asked = {name: getattr(self, name) for name in ("people", "keys", "sessions")}
        return f"{BACK}{query_of({**asked, table: cursor})}#people-{table}"


def people_screen(
    who: ALooker, people: CursorOf = None, keys: CursorOf = None, sessions: CursorOf = None
) -> PeopleScreen:
    return PeopleScreen(who.pages, who.view, people, keys, sessions)


AScreen = Annotated[PeopleScreen, Depends(people_screen)]


@routes.get("/people")
async def show(_: Admin, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "people.html", roles=tuple(Role))


serve_screen(routes, "/people", people_screen, admits=Admin)


# — what is shown once —


@routes.post("/people/invite")
async def invite(actor: Admin, who: ALooker, request: Request) -> Response:
    """A link that signs somebody in, once; it is in this answer, and nowhere else."""
    form = await form_of(request)
    person, role = form.one("person") or "", form.one("role") or ""
    token = await (await who.house.access()).invite(person, role, actor.name)
    said = say("A link for {person}, good once, for an hour:", person=person)
    return _once(who, said, f"{who.house.face.origin}/enter/{token}")


@routes.post("/keys/create")
async def create_key(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    person = form.one("person") or ""
    made = await (await who.house.access()).create_key(
        person,
        form.one("role") or "",
        label=form.one("label") or "",
        expires=form.one("expires"),
        actor=actor.name,
    )
    return _once(who, say("A key for {person}:", person=person), made.token)


@routes.post("/keys/rotate")
async def rotate_key(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    access = await who.house.access()
    made = await access.rotate_key(
        form.needed("id"), form.one("overlap") or OVERLAP, actor.name
    )
    return _once(who, say("The new key:"), made.token)


def _once(who: Looker, said: Said, secret: str) -> Response:
    """Not a word that goes away by itself: whoever asked for it must be able to keep it."""
    text = who.view.tell(said)
    if not who.htmx:
        return who.answer("once_page.html", text=text, secret=secret)
    html = who.pages.render("once.html", who.view, text=text, secret=secret)
    return HTMLResponse(html, headers=NOTHING)


# — what ends —


@routes.post("/keys/revoke")
async def revoke_key(actor: Admin, who: ALooker, request: Request) -> Response:
    key = (await form_of(request)).needed("id")
    await (await who.house.access()).revoke_key(key, actor.name)
    return did(who, who.view.tell(say("key {key} opens nothing any more", key=key)), BACK)


@routes.post("/sessions/end")
async def end_session(actor: Admin, who: ALooker, request: Request) -> Response:
    session = (await form_of(request)).needed("id")
    await (await who.house.access()).end_session(session, actor.name)
    return did(who, who.view.tell(say("that browser is signed out")), BACK)


@routes.post("/people/remove")
async def remove(actor: Admin, who: ALooker, request: Request) -> Response:
    """Every key, link and session of theirs is over."""
    name = (await form_of(request)).one("person") or ""
    await (await who.house.access()).remove_person(name, actor.name)
    return did(who, who.view.tell(say("{name} may not come in any more", name=name)), BACK)
