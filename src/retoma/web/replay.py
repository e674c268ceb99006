"""Idempotency-Key: whoever asks for something twice has asked for it once.

What creates something keeps its answer in the transaction that creates it (`written`). Any other verb
only moves what is in a state to be moved, and a crash may let it be asked again: its answer is kept once
it is known (`answered_once`). A form of a page reserves its key before it is done, whichever process a
second press of its button comes to.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.responses import Response

from retoma.access import Access, NewKey, Person
from retoma.codec import digest, encode
from retoma.db import Database
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import (
    Asked,
    check_same,
    find_answer,
    find_reserved,
    keep_reserved_answer,
    release_answer,
    reserve_answer,
)
from retoma.engine.store.answers import ABANDONED
from retoma.engine.writing.once import Answered, Once
from retoma.web.house import House, house_of
from retoma.web.repeats import REMEMBERED
from retoma.web.request_body import BODY, RequestBody
from retoma.web.wire import ONCE, OnceKey

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

LARGEST_KEPT: Final = 256 * 1024  # bytes of an answer; a larger one is made anew
# By these a page goes on: an answer without them leads nowhere.
KEPT_HEADERS: Final = ("content-type", "cache-control", "location", "hx-redirect")
LEADING: Final = ("location", "hx-redirect")
FIRST_LOOK: Final = 0.02  # seconds between looks at what another process does
LAST_LOOK: Final = 0.5
KEYS: Final = TypeAdapter[str](OnceKey)


def asked(key: str | None, who: Person, what: str, body: BaseModel | None) -> Asked | None:
    """What is asked for once; None: somebody does not mind to have it twice."""
    if key is None:
        return None
    said = "" if body is None else body.model_dump_json()
    return Asked(who.name, key, what, digest(f"{what} {said}"))


async def written(
    house: House,
    ask: Asked | None,
    write: Callable[[Transaction], T],
    show: Callable[[T], M],
    shape: type[M],
) -> tuple[M, bool]:
    """Do it in one transaction and show it; or what was shown the first time, and False."""
    if ask is None:
        return show(await house.retoma.write(write)), True
    return await first(
        lambda: house.retoma.write_once(ask, write, lambda made: _kept(show(made))), show, shape
    )


async def first(
    do: Callable[[], Awaitable[T]], show: Callable[[T], M], shape: type[M]
) -> tuple[M, bool]:
    try:
        return show(await do()), True
    except Answered as before:
        return shape.model_validate(json.loads(before.answer)), False


async def access_once(house: House, ask: Asked | None, kept: object = None) -> Access:
    """A desk whose one write is done once. What opens a door is not kept: it is shown this once."""
    if ask is None:
        return await house.access()
    once = Once(await house.retoma.database(), ask, lambda made: kept or _without(made))
    return Access(cast("Database", once), house.retoma.clock, house.retoma.ids)


def _without(made: NewKey) -> dict[str, str | None]:
    return {"id": made.id, "token": None}


def _kept(shown: BaseModel) -> Any:
    return shown.model_dump(mode="json")


# — verbs that keep no answer of their own —


class Keeps(StrEnum):
    """What is kept in the database of an answer under a key."""

    ANSWER = "answer"  # all of it, for whoever asks later: of the API
    OUTCOME = (
        "outcome"  # that it was done, and where it leads: of a page, which may show a secret
    )
    NOTHING = "nothing"  # of what only looks


async def answered_once(
    request: Request,
    who: Person,
    answer: Callable[[Request], Awaitable[Response]],
    keeps: Keeps,
) -> Response:
    """Answer, or say again what was answered under the same key.

    What a page says may be a secret that is shown once, and is written down nowhere: requests of this
    process are answered alike from memory for half a minute, those of another process are told only
    where it leads.
    """
    key = request.headers.get(ONCE)
    if key is None:
        return await answer(request)
    asked = await _asked_of(request, who, _checked(key))
    house = house_of(request)
    repeat = house.repeats.enter(who.name, key)
    try:
        async with repeat.lock:  # the second press waits for the answer to the first
            if keeps is Keeps.ANSWER:
                return await _answered(request, house, asked, answer)
            if repeat.given is not None and repeat.asked is not None:
                check_same(asked, repeat.asked.what, repeat.asked.hash)
                return _response_of(repeat.given)
            if keeps is Keeps.NOTHING:
                response, done = await answer(request), True
            else:
                response, done = await _reserved(request, house, asked, answer)
            if done:
                repeat.asked, repeat.given = asked, _kept_of(response)
            return response
    finally:
        house.repeats.leave(repeat)


async def _reserved(
    request: Request,
    house: House,
    asked: Asked,
    answer: Callable[[Request], Awaitable[Response]],
) -> tuple[Response, bool]:
    """Answer under a key that no other process has; else, and False, tell where its answer led."""
    database = await house.retoma.database()
    while not await database.write(
        lambda tx: reserve_answer(tx, asked, remembered=REMEMBERED), verb="reserve_answer"
    ):
        before = await _outcome(house, database, asked)
        if before is not None:
            return _outcome_response(json.loads(before)), False
    try:
        response = await answer(request)
    except Exception:
        await database.write(lambda tx: release_answer(tx, asked), verb="release_answer")
        raise
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        await database.write(lambda tx: release_answer(tx, asked), verb="release_answer")
    else:
        kept = encode({"status": response.status_code, "headers": _kept_headers(response)})
        await database.write(
            lambda tx: keep_reserved_answer(tx, asked, kept), verb="keep_reserved_answer"
        )
    return response, True


async def _outcome(house: House, database: Database, asked: Asked) -> str | None:
    """Wait for the other process to be done; None: the key is free again.

    The deadline of this request ends the wait."""
    wait = FIRST_LOOK
    began = house.retoma.clock.now()
    while house.retoma.clock.now() - began < ABANDONED:
        found = await database.read(lambda tx: find_reserved(tx, asked))
        if found is None:
            return None
        if found.answer is not None:
            return found.answer
        await house.retoma.clock.sleep(wait)
        wait = min(2 * wait, LAST_LOOK)
    return None


def _outcome_response(kept: Mapping[str, Any]) -> Response:
    """Without a place to lead to, the page stays as it is: its first answer changes it."""
    headers = kept["headers"]
    leads = {name: headers[name] for name in LEADING if name in headers}
    if leads:
        return Response(status_code=kept["status"], headers=leads)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _answered(
    request: Request,
    house: House,
    asked: Asked,
    answer: Callable[[Request], Awaitable[Response]],
) -> Response:
    """Answer and keep that in the database; or say again what is kept there."""
    database = await house.retoma.database()
    before = await database.read(lambda tx: find_answer(tx, asked))
    if before is not None:
        return _response_of(json.loads(before))
    response = await answer(request)
    kept = _kept_of(response)
    if kept is None:
        return response
    try:
        await house.retoma.write_once(asked, lambda _: None, lambda _: kept)
    except Answered as first_answer:
        return _response_of(json.loads(first_answer.answer))
    return response


async def _asked_of(request: Request, who: Person, key: str) -> Asked:
    """A file that is streamed is not read for this: its address names what is done with it."""
    body: RequestBody = request.scope[BODY]
    address = f"{request.url.path}?{request.url.query}"
    return Asked(
        who.name,
        key,
        f"{request.method} {request.url.path}",
        digest(f"{address} {body.digest}"),
    )


def _checked(key: str) -> str:
    try:
        return KEYS.validate_python(key)
    except ValidationError as error:
        flaws = [{**each, "loc": ("header", "Idempotency-Key")} for each in error.errors()]
        raise RequestValidationError(flaws) from None


def _kept_of(response: Response) -> dict[str, Any] | None:
    """What is kept of an answer; None: it is no good news, too large, no text, or goes on and on."""
    body = getattr(response, "body", None)
    well = response.status_code < HTTPStatus.BAD_REQUEST
    if not well or not isinstance(body, bytes) or len(body) > LARGEST_KEPT:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return {
        "status": response.status_code,
        "headers": _kept_headers(response),
        "body": text,
    }


def _kept_headers(response: Response) -> dict[str, str]:
    return {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}


def _response_of(kept: Mapping[str, Any]) -> Response:
    status = HTTPStatus(kept["status"])
    return Response(
        kept["body"] or None,
        status_code=HTTPStatus.OK if status is HTTPStatus.CREATED else status,
        headers=kept["headers"],
    )
