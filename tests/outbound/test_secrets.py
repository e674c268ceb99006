"""What a request carries is told to nobody: no message, repr or log line (E27, §6 row 34, M22)."""

import asyncio
import logging
import os
import traceback
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retoma.engine.rules.errors import RetomaError
from retoma.outbound import Outbound, Policy, Proxy
from retoma.secret import Secret
from tests.outbound.fakes import PUBLIC, Names, Streets, answer, endless, redirect, serving

CANARY = "CANARYx7Qz"
SHAPES = st.sampled_from(
    [
        *("{}", "{}\r\nX: y", "\x00{}", "ü{}", "%0d%0a{}", " {} ", "{}@evil", "a:{}", "//{}"),
        *('"{}"', "'{}", "\\{}", "{}#", "?{}", "&x={}", "[{}]", "\u202e{}", "\ud800{}"),
    ]
).map(lambda shape: shape.format(CANARY))
ANSWERS = {
    "good": answer(200, CANARY.encode(), set_cookie=CANARY, x_echo=CANARY),
    "401": answer(401, CANARY.encode(), www_authenticate=CANARY),
    "500": f"HTTP/1.1 500 {CANARY}\r\ncontent-length: 0\r\n\r\n".encode(),
    "429": answer(429, retry_after=CANARY),
    "elsewhere": redirect(f"http://evil.example/{CANARY}?{CANARY}#{CANARY}"),
    "user": redirect(f"http://{CANARY}:{CANARY}@shop.example/"),
    "nonsense": f"{CANARY}\r\n\r\n".encode(),
    "bad header": f"HTTP/1.1 200 OK\r\n{CANARY}\x00\r\n\r\n".encode(),
    "bad length": f"HTTP/1.1 200 OK\r\ncontent-length: {CANARY}\r\n\r\n".encode(),
    "bad type": answer(200, b"x", content_type=CANARY, content_encoding=CANARY),
}


@contextmanager
def overhearing():
    """Every log line of this process, at its most talkative."""
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(f"{record.getMessage()} {record.args}")  # type: ignore[method-assign]
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    structlog.configure(processors=[_kept_in(heard)])
    try:
        yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        structlog.reset_defaults()


def _kept_in(heard):
    def keep(_, __, event):
        heard.append(repr(event))
        return str(event)

    return keep


async def told(out, policy, url, heard, **asked):
    """All that anybody may come to read of one call."""
    try:
        got = await out.request(policy, asked.pop("method", "GET"), url, **asked)
    except RetomaError as error:
        rendered = "".join(traceback.format_exception(error))
        chain = [repr(error), str(error), repr(error.__cause__), repr(error.__context__)]
        return " ".join([rendered, *chain, repr(vars(error)), *heard])
    return " ".join([repr(got), str(got), repr(out), repr(policy), *heard])


def test_the_ear_hears():
    with overhearing() as heard:
        logging.getLogger("anything").debug("one %s", CANARY)
        structlog.get_logger().info("two", key=CANARY)

    assert 2 == sum(CANARY in line for line in heard)


@pytest.mark.parametrize("says", ANSWERS.values(), ids=ANSWERS)
@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(
    secret=SHAPES, place=st.sampled_from(["query", "path", "header", "body", "params", "form"])
)
def test_e27_row_34_no_secret_survives_a_call(says, secret, place):
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "query": (f"http://shop.example/x?key={secret}", {}),
        "path": (f"http://shop.example/{secret}", {}),
        "header": ("http://shop.example/", {"headers": {"Authorization": secret}}),
        "params": ("http://shop.example/", {"params": {"api_key": Secret(secret)}}),
        "body": ("http://shop.example/", {"method": "POST", "json": {"password": secret}}),
        "form": ("http://shop.example/", {"method": "POST", "form": {"password": secret}}),
    }
    url, asked = places[place]

    async def call():
        policy = Policy(
            purpose="shop",
            hosts={"shop.example"},
            schemes={"http"},
            redirects=1,
            types={"text/plain"},
            deadline=20,
        )
        async with serving(says) as server:
            streets = Streets().leads(PUBLIC, server)
            names = Names(shop_example=[[PUBLIC]])
            async with Outbound(resolver=names, network=streets) as out:
                with overhearing() as heard:
                    return await told(out, policy, url, heard, **asked)

    assert CANARY not in asyncio.run(call())


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    secret=SHAPES,
    url=st.sampled_from(
        [
            *("http://user:{}@shop.example/", "http://{}@shop.example/", "http://{}/", "{}", "{}://x"),
            *("http://shop.example:{}/", "http://shop.example/{}", "http://[{}]/", "http://x.{}/"),
        ]
    ),
)  # fmt: skip
def test_an_address_that_is_refused_is_not_repeated(secret, url):
    async def call():
        policy = Policy(purpose="shop", hosts={"shop.example"}, schemes={"http"})
        async with Outbound(resolver=Names()) as out:
            with overhearing() as heard:
                return await told(out, policy, url.format(secret), heard)

    said = asyncio.run(call())

    # A name of a host that is well formed is told: whoever is refused must see what was.
    assert CANARY not in said.replace(CANARY.lower(), "")


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(lambda _: endless(CANARY.encode(), b""), id="silence"),
        pytest.param(
            lambda _: endless(b"HTTP/1.1 200 OK\r\n\r\n", CANARY.encode()), id="endless"
        ),
    ],
)
async def test_a_call_that_is_cut_off_tells_nothing(says):
    async with serving(says) as server, Outbound() as out:
        policy = Policy.toward("x", server.url, private=True, deadline=0.3, most_bytes=1000)
        with overhearing() as heard:
            said = await told(
                out, policy, f"{server.url}/{CANARY}", heard, headers={"x-key": CANARY}
            )

    assert CANARY not in said


def test_e27_row_34_a_proxy_shows_its_password_to_nobody():
    proxy = Proxy(host="proxy.example", port=3128, user=f"session-{CANARY}", password=CANARY)

    assert CANARY not in f"{proxy!r} {proxy} {proxy.password!r}"
    assert (f"session-{CANARY}".encode(), CANARY.encode()) == proxy.credentials


@pytest.mark.parametrize(
    "text", ["nonsense://{}", "http://u:{}@h:port", "http://a:{}@[", "{}:x"]
)
async def test_a_proxy_in_the_environment_that_is_none_is_not_repeated(text, monkeypatch):
    monkeypatch.setitem(os.environ, "http_proxy", text.format(CANARY))
    policy = Policy(
        purpose="x", hosts={"shop.example"}, schemes={"http"}, environment=True, deadline=5
    )
    async with Outbound(resolver=Names()) as out:
        with overhearing() as heard:
            said = await told(out, policy, "http://shop.example/", heard)

    assert CANARY not in said
