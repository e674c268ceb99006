"""A body that is read piece by piece: the same caps and the same failures as for one that is read whole."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retoma.engine.rules.errors import Permanent, Transient
from retoma.outbound import Outbound, Policy
from tests.outbound.fakes import answer, endless, redirect, serving

BODY = b"0123456789" * 50_000


def toward(url: str, **rules: Any) -> Policy:
    return Policy.toward("test", url, private=True, **rules)


async def read(out: Outbound, policy: Policy, url: str) -> bytes:
    async with out.stream(policy, url) as pieces:
        return b"".join([piece async for piece in pieces])


async def cut() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\nhalf"


@pytest.mark.parametrize("packed", [True, False])
async def test_what_comes_is_what_was_sent(packed):
    body = gzip.compress(BODY) if packed else BODY
    headers = {"content_encoding": "gzip"} if packed else {}
    async with serving(answer(200, body, **headers)) as server, Outbound() as out:
        assert BODY == await read(out, toward(server.url), f"{server.url}/x")


async def test_each_failure_is_one_the_house_knows():
    bomb = gzip.compress(b"\0" * 3_000_000)
    says: dict[str, Any] = {
        "/large": lambda: answer(200, BODY),
        "/bomb": lambda: answer(200, bomb, content_encoding="gzip"),
        "/half": lambda: answer(200, bomb[:500], content_encoding="gzip"),
        "/cut": cut,
        "/silent": lambda: endless(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 1.0),
        "/drips": lambda: endless(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.05),
        "/gone": lambda: answer(404),
        "/away": lambda: redirect("http://example.org/"),
    }
    rules = {"most_bytes": 100_000, "most_unpacked": 1_000_000, "read": 0.2, "deadline": 0.5}
    codes = {}
    async with serving(lambda asked: says[asked.target]()) as server, Outbound() as out:
        for path in says:
            with pytest.raises((Transient, Permanent)) as raised:
                await read(out, toward(server.url, redirects=1, **rules), server.url + path)
            codes[path] = getattr(raised.value, "code", None)
            assert raised.value.__cause__ is None
        with pytest.raises(Permanent) as raised:
            await read(out, Policy.toward("test", server.url), f"{server.url}/x")

    assert "ssrf_blocked" == raised.value.code
    assert {
        "/large": "too_large",
        "/bomb": "too_large",
        "/half": "bad_answer",
        "/cut": "bad_answer",
        "/silent": "timeout",
        "/drips": "timeout",
        "/gone": "permanent",
        "/away": "ssrf_blocked",
    } == codes


async def test_whoever_reads_may_take_longer_than_the_way_and_leave_when_they_like():
    async with serving(answer(200, BODY)) as server, Outbound() as out:
        async with out.stream(toward(server.url), f"{server.url}/x") as pieces:
            first = await anext(aiter(pieces))
        with pytest.raises(ZeroDivisionError):
            async with out.stream(toward(server.url), f"{server.url}/x"):
                raise ZeroDivisionError

        assert BODY.startswith(first)
        assert BODY == await read(out, toward(server.url), f"{server.url}/x")
