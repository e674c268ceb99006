"""A body is read once its sender may send it, and checked the same wherever JSON comes in."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from retoma.access import Access, Role
from retoma.web import Bound, Refusal
from retoma.web.body import KEYS, Shape, read_json
from retoma.web.pages.route import _fields
from retoma.web.request_body import LEAST, BodyLimit, RequestBody
from retoma.web.room import Room
from tests.web.aids import World, code_of, world

THREE = "quotes,embeddings,documents"
PIECE = b" " * 65_536
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Sent:
    """A body of many pieces that counts how many were asked for."""

    def __init__(self, first: bytes = b"", pieces: int = 100) -> None:
        self.first, self.pieces, self.asked = first, pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in [self.first or PIECE, *[PIECE] * self.pieces]:
            self.asked += 1
            yield each


async def browser(house: World, role: Role) -> tuple[dict[str, str], str]:
    """Headers of a browser that is signed in, and the token its forms bring."""
    access = Access(await house.app.database(), house.app.clock, house.app.ids)
    cookie = await access.enter(await access.invite(f"Bea {role}", role, "cli"), "a browser")
    assert cookie is not None
    session = await access.session(cookie)
    assert session is not None
    return {"Cookie": f"retoma={cookie}", "Origin": "http://127.0.0.1"}, session.csrf


async def test_nothing_of_a_body_is_read_before_the_sender_may_send_it(database_url):
    async with world(database_url) as house:
        viewer, _ = await browser(house, Role.VIEWER)
        for headers, expected in (
            (JSON, HTTPStatus.UNAUTHORIZED),
            ({**viewer, **JSON}, HTTPStatus.FORBIDDEN),
            ({**viewer, **FORM}, HTTPStatus.FORBIDDEN),
        ):
            for path in ("/api/jobs", "/api/dead/retry", "/jobs/1/cancel"):
                sent = Sent()
                answer = await house.nobody.post(path, content=sent, headers=headers)

                assert (expected, 0) == (answer.status_code, sent.asked), (path, headers)


async def test_nothing_of_a_body_is_read_where_no_route_is(database_url):
    async with world(database_url) as house:
        sent = Sent()
        answer = await house.operator.post("/api/nothing", content=sent, headers=JSON)

        assert ((404, "not_found"), 0) == (code_of(answer), sent.asked)


async def test_a_route_for_anybody_takes_a_small_body(database_url):
    async with world(database_url) as house:
        origin = {"Origin": "http://127.0.0.1", **FORM}
        small = b"theme=dark&next=" + b"a" * 60_000
        for body, expected in ((small, 303), (small + b"a" * 10_000, 413)):
            answer = await house.nobody.post("/preferences", content=body, headers=origin)
            assert expected == answer.status_code


async def test_a_form_that_may_be_large_brings_its_token_first(database_url):
    async with world(database_url, applications=THREE) as house:
        browser_headers, csrf = await browser(house, Role.OPERATOR)
        headers = {**browser_headers, **FORM}
        late = Sent(f"text=a&csrf={csrf}&x=".encode())
        refused = await house.nobody.post("/quotes/import", content=late, headers=headers)
        first = Sent(f"csrf={csrf}&text=descricao%0Ageladeira&x=".encode(), pieces=3)
        taken = await house.nobody.post("/quotes/import", content=first, headers=headers)

        assert ((403, "csrf"), 1) == (code_of(refused), late.asked)
        assert (303, 4) == (taken.status_code, first.asked)


LARGE = ("/api/lotes", "/api/embeddings/documents", "/classificador/execucoes")


@pytest.mark.parametrize("path", LARGE)
async def test_json_is_checked_alike_where_it_may_be_large(database_url, path):
    async with world(database_url, applications=THREE) as house:
        for body, media, expected in (
            (b'{"a": 1, "a": 2}', "application/json", (400, "bad_json")),
            ('{"a": 1}'.encode("utf-16"), "application/json", (400, "bad_json")),
            (b'{"a": NaN}', "application/json", (400, "bad_json")),
            (b"[" * 100 + b"]" * 100, "application/json", (400, "bad_json")),
            (b"{}", "text/plain", (415, "bad_media_type")),
            (b"{}", "application/json; charset=utf-16", (415, "bad_media_type")),
            (b"{}", "application/json; " + "x" * 300, (415, "bad_media_type")),
            (b"{}", "application/json", (422, "bad_input")),
        ):
            answer = await house.operator.post(
                path, content=body, headers={"Content-Type": media}
            )
            assert expected == code_of(answer), (body, media)


async def test_a_head_has_a_bound_and_one_length(database_url):
    async with world(database_url) as house:

        async def pieces() -> AsyncIterator[bytes]:
            yield b"{}"

        for name, value in (("X-Large", "a" * 16_384), ("Cookie", "a=b;" * 4_096)):
            answer = await house.viewer.get("/api/jobs", headers={name: value})
            assert (431, "headers_too_large") == code_of(answer)
        both = {"Content-Length": "2", "Transfer-Encoding": "chunked", **JSON}
        answer = await house.operator.post("/api/jobs", content=pieces(), headers=both)
        assert (400, "bad_request") == code_of(answer)


async def test_a_correlation_that_is_refused_is_not_looked_through_for_the_log(
    database_url, capsys
):
    async with world(database_url) as house:
        answer = await house.viewer.get(
            "/api/jobs", headers={"X-Correlation-Id": "%41" * 5_000}
        )

        assert (400, "bad_header") == code_of(answer)
        assert f"correlation={answer.headers['x-trace-id']}" in capsys.readouterr().out


async def test_a_stream_that_brings_nothing_is_not_waited_for(database_url):
    async def stalls() -> AsyncIterator[bytes]:
        yield b"PK"
        await asyncio.Event().wait()

    quick = Bound(seconds=0.2, per_key=1e6, per_address=1e6)
    async with world(database_url, applications=THREE, bound=quick) as house:
        answer = await house.operator.post("/api/lotes/import", content=stalls())

        assert (408, "too_slow_request") == code_of(answer)


async def test_an_upload_that_trickles_is_ended_however_often_it_sends(database_url):
    async def trickle() -> AsyncIterator[bytes]:
        for _ in range(2_000):
            yield b"a"
            await asyncio.sleep(0.01)

    quick = Bound(seconds=0.5, per_key=1e6, per_address=1e6)
    async with world(database_url, applications=THREE, bound=quick) as house:
        began = asyncio.get_running_loop().time()
        answer = await house.operator.post("/api/lotes/import", content=trickle())
        took = asyncio.get_running_loop().time() - began

    assert (408, "too_slow_request") == code_of(answer)
    assert f"at least {int(0.5 * LEAST)} bytes" in answer.json()["detail"]
    assert took < 10


async def test_time_that_the_application_takes_for_a_piece_is_not_its_senders():
    pieces = [b"a"] * 5

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    limit = BodyLimit(size=100, seconds=0.5)
    body = RequestBody(receive, {"path": "/"}, {}, limit, Room())
    while pieces:
        await body.receive()
        await asyncio.sleep(0.2)


async def test_an_upload_has_the_whole_time_again_after_enough_bytes():
    loop = asyncio.get_running_loop()
    limit = BodyLimit(size=1 << 20, seconds=2.0)

    async def receive() -> dict[str, object]:
        await asyncio.sleep(0.5)
        return {"type": "http.request", "body": b"a" * limit.least, "more_body": True}

    body = RequestBody(receive, {"path": "/"}, {}, limit, Room())
    began = loop.time()
    while loop.time() < began + 1.5 * limit.seconds:
        await body.receive()


def test_one_object_has_fewer_keys_than_all_of_a_large_body():
    shape = Shape(keys=2 * KEYS)
    whole = json.dumps({f"a{n}": 1 for n in range(KEYS)})
    read_json(f"[{whole}, {{}}]".encode(), shape)
    with pytest.raises(Refusal) as refused:
        read_json(f'{whole[:-1]}, "b": 1}}'.encode(), shape)
    assert "an object in it has more than 10000 keys" in refused.value.detail


def test_a_flaw_is_named_by_its_path():
    deep = b'{"a": [1, {"b\\u001b": [0, "x\\u0000"]}]}'
    with pytest.raises(Refusal) as refused:
        read_json(deep, Shape())
    assert ["body.a[1].b\\x1b[1]"] == [each.path for each in refused.value.flaws]


def test_a_form_is_read_as_a_browser_wrote_it():
    assert {"a": ["1", "é +"], "b&": [""]} == _fields(b"a=1&a=%C3%A9+%2B&b%26=")
    assert {} == _fields(b"")
    long = "é%" * 50_000
    assert {"a": [long]} == _fields(b"a=" + b"%C3%A9%25" * 50_000)
    for bad in (b"a", b"a=%ff", b"a=%00", b"&".join([b"a=1"] * 20_001)):
        with pytest.raises(ValueError, match=r"field|NUL|utf-8"):
            _fields(bad)


def test_values_are_counted_where_they_are_values():
    small = Shape(values=10)
    text = b'"' + b",[{" * 9 + b'\\"' + b"," * 9 + b'\\\\"'
    read_json(b"[" + text + b"," + text + b"]", small)
    for raw in (b"[" + b"1," * 10 + b"1]", b'["' + b"," * 70_000 + b'"' + b",1" * 10 + b"]"):
        with pytest.raises(Refusal) as refused:
            read_json(raw, Shape(values=10, text=None))
        assert "bad_json" == refused.value.code
