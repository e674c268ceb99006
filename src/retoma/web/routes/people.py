"""`/api/me`, `/api/keys`, `/api/people`, `/api/sessions`: who may come in."""

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Request, Response

from retoma.access import NewKey, Role, Session
from retoma.engine.rules.duration import seconds
from retoma.services import access as doors
from retoma.services.access import KeySeen, PersonSeen, SessionSeen
from retoma.web.asked import place, spot
from retoma.web.cursor import Cursor, cut
from retoma.web.house import AHouse
from retoma.web.replay import access_once, asked, first
from retoma.web.route import router
from retoma.web.sign_in import SESSION, Admin, Viewer
from retoma.web.wire import (
    Invitation,
    InvitationShown,
    Limit,
    Me,
    NewKeyAsked,
    NewKeyShown,
    NextPage,
    Once,
    PageOf,
    Rotation,
)

routes = router("people")

KeyId = Annotated[str, Path(pattern="^[0-9A-Za-z]{1,64}$", description="The id of a key.")]
SessionId = Annotated[
    str, Path(pattern="^[0-9A-Za-z]{1,64}$", description="The id of a session.")
]
PersonName = Annotated[str, Path(min_length=1, max_length=200, description="Their name.")]


@routes.get("/api/me")
async def me(who: Viewer, request: Request) -> Me:
    """Who is asking."""
    session: Session | None = request.scope.get(SESSION)
    return Me(name=who.name, role=who.role, csrf=None if session is None else session.csrf)


@routes.get("/api/keys")
async def list_keys(
    _: Admin,
    house: AHouse,
    every: Annotated[bool, Query(description="Those that were revoked too.")] = False,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[KeySeen]:
    """Newest first, without what they are made of."""
    stamp = Cursor("keys", every)
    seen = await (await house.access()).keys(
        every=every, after=spot(stamp, cursor), limit=limit + 1
    )
    page, following = cut(stamp, seen, limit, place)
    return PageOf(items=page, next=following)


@routes.post(
    "/api/keys",
    status_code=201,
    responses={
        200: {"model": NewKeyShown, "description": "Made already, under this Idempotency-Key."}
    },
)
async def create_key(
    body: NewKeyAsked, who: Admin, house: AHouse, response: Response, key: Once = None
) -> NewKeyShown:
    """A key for a person. Its token is in this answer, and nowhere else."""
    access = await access_once(house, asked(key, who, "create_key", body))

    async def create() -> NewKey:
        return await access.create_key(
            body.person,
            Role(body.role),
            label=body.label,
            expires=_length(body.expires),
            actor=who.name,
        )

    shown, is_first = await first(create, _new_key, NewKeyShown)
    if not is_first:
        response.status_code = 200
    return shown


@routes.post("/api/keys/{key}/revoke")
async def revoke_key(key: KeyId, who: Admin, house: AHouse) -> list[KeySeen]:
    """It opens nothing from now on. Asked twice it answers the same."""
    return [await doors.revoke_key(await house.access(), key, actor=who.name)]


@routes.post(
    "/api/keys/{key}/rotate",
    status_code=201,
    responses={
        200: {"model": NewKeyShown, "description": "Made already, under this Idempotency-Key."}
    },
)
async def rotate_key(
    key: KeyId,
    who: Admin,
    house: AHouse,
    response: Response,
    body: Rotation | None = None,
    once: Once = None,
) -> NewKeyShown:
    """A new key with the rights of an old one, which is good until the overlap is over."""
    how = body or Rotation()
    access = await access_once(house, asked(once, who, f"rotate_key {key}", how))

    async def rotate() -> NewKey:
        return await access.rotate_key(key, how.overlap, who.name)

    shown, is_first = await first(rotate, _new_key, NewKeyShown)
    if not is_first:
        response.status_code = 200
    return shown


# — people and their browsers —


@routes.get("/api/people")
async def list_people(
    _: Admin, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[PersonSeen]:
    """Everybody who may come in, by name."""
    stamp = Cursor("people", None)
    [after] = stamp.read(cursor, str) or [""]
    seen = await (await house.access()).people(after=after, limit=limit + 1)
    page, following = cut(stamp, seen, limit, lambda each: [each.name])
    return PageOf(items=page, next=following)


@routes.post(
    "/api/people",
    status_code=201,
    responses={
        200: {
            "model": InvitationShown,
            "description": "Made already, under this Idempotency-Key.",
        }
    },
)
async def invite(
    body: Invitation, who: Admin, house: AHouse, response: Response, key: Once = None
) -> InvitationShown:
    """A link that signs somebody in, once; whoever is called so has this role from now on."""
    access = await access_once(
        house, asked(key, who, "invite", body), {"person": body.person, "link": None}
    )

    async def made() -> str:
        return await access.invite(body.person, Role(body.role), who.name)

    def show(token: str) -> InvitationShown:
        return InvitationShown(person=body.person, link=f"{house.face.origin}/enter/{token}")

    shown, is_first = await first(made, show, InvitationShown)
    if not is_first:
        response.status_code = 200
    return shown


@routes.delete("/api/people/{name:path}", status_code=204)
async def remove_person(name: PersonName, who: Admin, house: AHouse) -> None:
    """Every key, link and session of theirs is over, at once."""
    await (await house.access()).remove_person(name, who.name)


@routes.get("/api/sessions")
async def list_sessions(
    _: Admin, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[SessionSeen]:
    """Who is signed in with a browser, newest first."""
    stamp = Cursor("sessions", None)
    seen = await (await house.access()).sessions(after=spot(stamp, cursor), limit=limit + 1)
    page, following = cut(stamp, seen, limit, place)
    return PageOf(items=page, next=following)


@routes.delete("/api/sessions/{session}", status_code=204)
async def end_session(session: SessionId, who: Admin, house: AHouse) -> None:
    """Sign somebody out. Asked twice it answers the same."""
    await (await house.access()).end_session(session, who.name)


def _length(value: str | int | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=seconds(value))


def _new_key(made: NewKey) -> NewKeyShown:
    return NewKeyShown(id=made.id, token=made.token)
