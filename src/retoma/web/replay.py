"""Idempotency-Key: whoever asks for something twice has asked for it once.

What creates something keeps its answer in the transaction that creates it (`written`). Any other verb
only moves what is in a state to be moved, and a crash may let it be asked again: its answer is kept once
it is known (`answered_once`).
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.responses import Response

from retoma.access import Person
from retoma.codec import digest
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Asked, check_same, find_answer
from retoma.engine.writing.once import Answered
from retoma.web.house import House, house_of
from retoma.web.request_body import BODY, RequestBody
from retoma.web.wire import ONCE, OnceKey

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

LARGEST_KEPT: Final = 256 * 1024  # bytes of an answer; a larger one is made anew
# By these a page goes on: an answer without them leads nowhere.
KEPT_HEADERS: Final = ("content-type", "cache-control", "location", "hx-redirect")
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


def _kept(shown: BaseModel) -> Any:
    return shown.model_dump(mode="json")


# — verbs that keep no answer of their own —


async def answered_once(
    request: Request,
    who: Person,
    answer: Callable[[Request], Awaitable[Response]],
    *,
    keeps: bool,
) -> Response:
    """Answer, or say again what was answered under the same key.

    `keeps`: for whoever asks later, in the database. Else only those are answered alike who ask within
    half a minute, by the memory of this process: what a page says may be a secret that is shown once, and
    is written down nowhere.
    """
    key = request.headers.get(ONCE)
    if key is None:
        return await answer(request)
    asked = await _asked_of(request, who, _checked(key))
    house = house_of(request)
    repeat = house.repeats.enter(who.name, key)
    try:
        async with repeat.lock:  # the second press waits for the answer to the first
            if keeps:
                return await _answered(request, house, asked, answer)
            if repeat.given is not None and repeat.asked is not None:
                check_same(asked, repeat.asked.what, repeat.asked.hash)
                return _response_of(repeat.given)
            response = await answer(request)
            repeat.asked, repeat.given = asked, _kept_of(response)
            return response
    finally:
        house.repeats.leave(repeat)


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
    headers = {
        name: response.headers[name] for name in KEPT_HEADERS if name in response.headers
    }
    return {"status": response.status_code, "headers": headers, "body": text}


def _response_of(kept: Mapping[str, Any]) -> Response:
    status = HTTPStatus(kept["status"])
    return Response(
        kept["body"] or None,
        status_code=HTTPStatus.OK if status is HTTPStatus.CREATED else status,
        headers=kept["headers"],
    )
