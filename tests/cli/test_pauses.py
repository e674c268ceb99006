"""`retoma pauses pause`, `resume`, `list`: said, said again, listed, taken back."""

import json

import pytest

from tests.cli.conftest import with_app


@pytest.fixture
def noted(url):
    async def submitted(app):
        await app.submit("note", "one")
        await app.pauses.pause("kind", "note")
        await app.pauses.resume("kind", "note")

    with_app(url, submitted)
    return url


def test_it_is_paused_listed_and_resumed(noted, verb):
    said = verb("pauses", "pause", "kind", "note", "--why", "too loud")
    again = verb("pauses", "pause", "kind", "note")
    [listed] = json.loads(verb("pauses", "list", "--json").out)
    page = verb("pauses", "list").out
    why = verb("jobs", "explain", "1").out
    resumed = [verb("pauses", "resume", "kind", "note").out for _ in range(2)]

    assert (0, "kind note is paused: what runs ends\n") == (said.code, said.out)
    assert again.out.startswith("kind note is paused already, since 20")
    assert ("kind", "note", "cli", "too loud") == tuple(
        listed[name] for name in ("scope", "name", "actor", "why")
    )
    assert "too loud" in page
    assert "its kind note is paused since " in why
    assert ["kind note goes on\n", "kind note was not paused\n"] == resumed
    assert "nothing is paused" in verb("pauses", "list").out


@pytest.mark.parametrize("words", [("kind", "nobody"), ("batch", "1"), ("queue", "nobody")])
def test_what_is_unknown_is_refused(noted, verb, words):
    for word in ("pause", "resume"):
        said = verb(word, *words)

        assert (said.code, said.out) in [(1, ""), (2, "")]
        assert said.err
