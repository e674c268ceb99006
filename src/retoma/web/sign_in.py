"""Who is asking, and whether they may.

Programs bring a key in a header. Browsers bring a cookie, which goes wherever they are sent; so what
changes something must also come from a page of ours, and bring the token that only our pages know.
"""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from starlette.responses import Response

from retoma.access import Person, Role, Session
from retoma.web.bounds import UNSAFE
from retoma.web.house import House, house_of
from retoma.web.problems import Refusal
from retoma.web.request_body import BODY, FORMS, RequestBody
from retoma.words import say

WHO: Final = "retoma.who"
PERSON: Final = "retoma.person"
SESSION: Final = "retoma.session"
# Where a server that bounds its connections keeps what to call once somebody has signed in.
ADMITTED: Final = "retoma.admitted"
TOKEN: Final = "x-csrf-token"  # noqa: S105 — the name of a header
FIELD: Final = b"csrf="
LONGEST: Final = 200  # bytes of a token that are looked at
CHALLENGE: Final = 'Bearer realm="retoma"'


@dataclass(frozen=True, slots=True)
class Needs:
    """A dependency: what role a route needs; None: it is for anybody."""

    role: Role | None
    open_near: bool = False  # nobody asks who it is while only this machine can reach us

    def __call__(self, request: Request) -> Person | None:
        return request.scope.get(PERSON)


def needs_of(dependant: Dependant) -> Iterator[Needs]:
    """What a route declares, wherever in its dependencies it does."""
    if isinstance(dependant.call, Needs):
        yield dependant.call
    for below in dependant.dependencies:
        yield from needs_of(below)


Anybody = Depends(Needs(None))
Viewer = Annotated[Person, Depends(Needs(Role.VIEWER))]
ViewerFromAfar = Annotated[Person | None, Depends(Needs(Role.VIEWER, open_near=True))]
Operator = Annotated[Person, Depends(Needs(Role.OPERATOR))]
Admin = Annotated[Person, Depends(Needs(Role.ADMIN))]


async def admit(request: Request, role: Role, route: str) -> Person:
    """Let somebody in, or refuse: by the headers alone, before anything of the body is read."""
    house = house_of(request)
    person = await identified(request, house)
    if person is None:
        raise Refusal(
            "sign_in",
            say("give a key that is good, as Authorization: Bearer or x-api-key"),
            headers={"WWW-Authenticate": CHALLENGE},
        )
    request.scope[PERSON] = person
    request.scope[WHO] = person.name
    count = request.scope.get(ADMITTED)
    if count is not None:
        count()
    session: Session | None = request.scope.get(SESSION)
    is_form = session is not None and request.method in UNSAFE
    if is_form:
        check_origin(request, house)
    if not person.role.allows(role):
        await (await house.access()).denied(person, f"{request.method} {route}")
        raise Refusal(
            "not_allowed",
            say(
                "{name} is {has}, and this needs {role}",
                name=person.name,
                has=person.role,
                role=role,
            ),
        )
    if is_form and session is not None:
        await check_token(request, session)
    return person


async def identified(request: Request, house: House) -> Person | None:
    """Whose key or session it came with; None: none that is good."""
    access = await house.access()
    given = key_in(request)
    if given is not None:
        return await access.identify(given)
    cookie = cookie_in(request, cookie_name(house))
    if cookie is None:
        return await access.identify("")  # as much work as for a key that is not good
    session = await access.session(cookie)
    if session is None:
        return None
    request.scope[SESSION] = session
    return session.person


def key_in(request: Request) -> str | None:
    """The key a program brought; empty where what it brought is none."""
    plain = request.headers.get("x-api-key")
    if plain is not None:
        return plain
    bearer = request.headers.get("authorization")
    if bearer is None:
        return None
    scheme, _, token = bearer.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


# — browsers —


def cookie_in(request: Request, name: str) -> str | None:
    """The value of a cookie as it was sent: ours are never quoted, and unquoting takes its time."""
    for each in request.headers.get("cookie", "").split(";"):
        found, equals, value = each.partition("=")
        if equals and found.strip() == name:
            return value.strip()
    return None


def cookie_name(house: House) -> str:
    # With this prefix a browser takes it over TLS alone, for this host alone.
    return "__Host-retoma" if house.face.secure else "retoma"


def set_cookie(response: Response, house: House, value: str) -> None:
    response.set_cookie(
        cookie_name(house),
        value,
        path="/",
        secure=house.face.secure,
        httponly=True,
        samesite="lax",
    )


def drop_cookie(response: Response, house: House) -> None:
    response.delete_cookie(
        cookie_name(house), path="/", secure=house.face.secure, httponly=True, samesite="lax"
    )


async def check_token(request: Request, session: Session) -> None:
    """The token that only our pages know: in a header, or as a field of the form."""
    given = request.headers.get(TOKEN) or await _field(request)
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Refusal(
            "csrf",
            say("this did not come from a page of ours: nothing was changed; load it again"),
        )


def check_origin(request: Request, house: House) -> None:
    """What a browser posts says where it comes from; what does not say so is not trusted."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin" if origin else "")
    if origin not in own_origins(request, house) or site != "same-origin":
        raise Refusal("csrf", say("this came from another site: nothing was changed"))


def own_origins(request: Request, house: House) -> set[str]:
    host = request.headers.get("host", "")
    return {house.face.origin, f"{'https' if house.face.secure else 'http'}://{host}"}


async def _field(request: Request) -> str:
    """Of a form that may be large the first field must be it; the rest is not read for it.

    The form is not taken apart for it: of megabytes of `a=1&` that made objects for seconds.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != FORMS[0]:
        return ""
    body: RequestBody = request.scope[BODY]
    await body.load()
    raw = await (body.first_field() if body.is_streamed else request.body())
    if raw.startswith(FIELD):
        found = 0
    else:
        found = raw.find(b"&" + FIELD) + 1
        if not found:
            return ""
    began = found + len(FIELD)
    return raw[began : began + LONGEST].partition(b"&")[0].decode("latin-1")
