"""E27: a secret that this process knows is in no text that is told, however nested and encoded."""

import base64
import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from retoma.secret import STARS, Secret, redact, redact_text

Encode = Callable[[str], str]

# One layer each; a secret may lie under several.
ENCODINGS: dict[str, Encode] = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps(text)[1:-1],
    "json_utf8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "bytes": lambda text: repr(text.encode())[2:-1],
    "url": lambda text: quote(text, safe=""),
    "path": quote,
    "form": quote_plus,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64_url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "html": html.escape,
}
# Around a layer: what a program would have put there.
AROUND: dict[str, Encode] = {
    "nothing": lambda text: text,
    "sentence": lambda text: f"the other side said: {text} (401)",
    "object": lambda text: f'{{"a": ["{text}"]}}',
    "user": lambda text: f"someone:{text}",
    "after": lambda text: f"{text}:rest",
}
layers = st.lists(
    st.tuples(st.sampled_from(sorted(ENCODINGS)), st.sampled_from(sorted(AROUND))),
    min_size=1,
    max_size=3,
)
secrets = st.text(st.characters(codec="utf-8"), min_size=8, max_size=40) | st.text(
    st.sampled_from("abcXYZ019+/=%&\\\"' _-é漢"), min_size=8, max_size=40
)


def veiled(secret: str, how: list[tuple[str, str]]) -> str:
    text = secret
    for encoding, around in how:
        text = ENCODINGS[encoding](AROUND[around](text))
    return text


@settings(max_examples=400, deadline=None)
@given(secrets, layers)
def test_e27_no_nesting_of_encodings_lets_a_secret_through(plain, how):
    assume(len(set(plain)) > 2 and plain not in "someone:rest the other side said: (401)")
    Secret(plain)
    text = veiled(plain, how)

    told = redact_text(text)

    assert text not in told or plain in STARS
    assert not any(hidden in told for hidden in {text, plain} if len(hidden) > len(STARS))
    core = veiled(plain, [(encoding, "nothing") for encoding, _ in how])
    assert core not in told


@settings(max_examples=200, deadline=None)
@given(
    secrets,
    layers,
    st.recursive(
        st.just("HERE"),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=2)
            | st.dictionaries(st.sampled_from(["a", "HERE"]), inner, min_size=1, max_size=2)
            | inner.map(lambda each: (each, 1))
            | inner.map(ValueError)
            | inner.map(lambda each: str(each).encode())
        ),
        max_leaves=6,
    ),
)
def test_e27_no_shape_of_a_value_lets_a_secret_through(plain, how, shape):
    assume(len(set(plain)) > 2)
    Secret(plain)
    text = veiled(plain, how)

    told = json.dumps(redact(placed(shape, text)), ensure_ascii=False)

    spelt = json.dumps(text, ensure_ascii=False)[1:-1]
    assert spelt not in told


def placed(shape, text):
    match shape:
        case str():
            return shape.replace("HERE", text)
        case bytes():
            return shape.replace(b"HERE", text.encode())
        case dict():
            return {placed(name, text): placed(each, text) for name, each in shape.items()}
        case list() | tuple():
            return type(shape)(placed(each, text) for each in shape)
        case ValueError():
            return ValueError(*(placed(each, text) for each in shape.args))
        case _:
            return shape


@pytest.mark.parametrize("before", range(4))
def test_base64_of_a_longer_text_is_known_by_its_middle(before):
    Secret("CANARY-in-the-middle")
    whole = base64.b64encode(b"x" * before + b"CANARY-in-the-middle" + b"yz").decode()

    told = redact_text(f"got {whole} back")

    assert f"got {STARS} back" == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgresql://ana:pa55@db/x failed", "postgresql://***@db/x failed"),
        ("postgresql://ana:p@55@db/x", "postgresql://***@db/x"),
        ("https://x.example/a?key=abc&b=1", "https://x.example/a?key=***&b=1"),
        ("https://x.example/a?b=1&sig=abc#top", "https://x.example/a?b=1&sig=***#top"),
        ("Authorization: Bearer abc.def-g", "Authorization: ***"),
        ("{'x-api-key': 'abc', 'b': 1}", "{'x-api-key': '***', 'b': 1}"),
        ("sent Basic dXNlcjpwYXNz to it", "sent Basic *** to it"),
        ('{"password": "a b", "user": "x"}', '{"password": "***", "user": "x"}'),
        (
            '"{\\"password\\": \\"a b\\", \\"u\\": 1}"',
            '"{\\"password\\": \\"***\\", \\"u\\": 1}"',
        ),
        ("host=db password=abc dbname=x", "host=db password=*** dbname=x"),
        ("db_password=abc", "db_password=***"),
        (f"retoma_{'0' * 16}_{'aZ9' * 14}b no", f"retoma_{'0' * 16}_*** no"),
        (f"/sign-in#retoma_link_{'a' * 16}_{'b' * 43}", f"/sign-in#retoma_link_{'a' * 16}_***"),
        ("job 7: 3 tokens left, key abc", "job 7: 3 tokens left, key abc"),
        ("https://x.example/a?page=2", "https://x.example/a?page=2"),
    ],
)
def test_what_looks_like_a_secret_is_not_shown(text, told):
    assert told == redact_text(text)


def test_what_is_called_a_secret_is_not_shown():
    given_ = {
        "password": "short",
        "api-key": b"x",
        "X-Api-Key": ["a"],
        "db_password": 1234,
        "Authorization": "x",
        "token": None,
        "secret": True,
        "tokens": 5,
        "key": "idempotency",
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "nested": [{"cookie": "x", "n": 1.5}],
    }

    assert {
        "password": STARS,
        "api-key": STARS,
        "X-Api-Key": STARS,
        "db_password": STARS,
        "Authorization": STARS,
        "token": None,
        "secret": True,
        "tokens": 5,
        "key": "idempotency",
        "at": "2026-01-01T00:00:00+00:00",
        "nested": [{"cookie": STARS, "n": 1.5}],
    } == redact(given_)


def test_a_value_in_itself_and_one_that_cannot_speak_are_told_all_the_same():
    class Mute:
        def __str__(self):
            raise RuntimeError

    endless: list[object] = []
    endless.append(endless)

    assert STARS == redact(Mute())
    assert STARS in json.dumps(redact(endless))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**5,
        "a-" * 50_000,
        "a_" * 50_000,
        "://" * 30_000,
        "password" * 10_000,
        'token":"' * 10_000,
    ],
)
def test_no_text_takes_long(text):
    """What is worse than linear would take minutes, and the time of this test is limited."""
    Secret("CANARY-not-in-there")

    assert len(redact_text(text)) <= len(text) * 2


def test_what_is_too_much_to_look_through_is_not_shown():
    Secret("CANARY-too-much")
    deep = base64.b64encode(b"\x00\xff" * 60_000).decode()

    assert STARS == redact_text(f"it said {deep * 2}")
    assert STARS == redact_text("a" * 200_001)


def test_an_innocent_line_stays_as_it_is():
    Secret("CANARY-of-this-test")
    line = "job 7 settled: done in 3.2 s; https://x.example/path?page=2 said 200 OK (100% of 5)"

    assert line == redact_text(line)


def test_short_values_are_hidden_by_their_names_only():
    Secret("abc")

    assert "abc" == redact_text("abc")
    assert re.fullmatch(r"\*{3}", redact({"password": "abc"})["password"])
