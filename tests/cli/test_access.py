"""`retoma keys`, `people` and `secrets`: a token is told once, a secret never."""

import json

import pytest

from retoma.bootstrap import build_vault
from retoma.secret import Secret, known
from retoma.settings import read
from retoma.vault import SecretRef, SecretSlot
from tests.cli.conftest import with_app

CANARY = "CANARY-5b1f-of-the-command-line"


@pytest.fixture
def made(url, verb):
    assert 0 == verb("db", "upgrade").code
    return url


def test_a_key_is_made_listed_rotated_and_revoked(made, verb):
    said = verb(
        "keys", "create", "Ana", "--role", "operator", "--label", "ci", "--expires", "90d"
    )
    token = said.out.strip()
    id_ = token.split("_")[1]
    rotated = json.loads(verb("keys", "rotate", id_, "--overlap", "1h", "--json").out)
    listed = json.loads(verb("keys", "list", "--json").out)
    revoked = verb("keys", "revoke", id_)

    assert said.out == f"{token}\n"
    assert f"key {id_}: this is shown once and kept nowhere\n" == said.err
    assert rotated["token"].startswith(f"retoma_{rotated['id']}_")
    assert {(id_, True), (rotated["id"], True)} == {
        (each["id"], each["good"]) for each in listed
    }
    assert {"Ana"} == {each["person"] for each in listed}
    assert f"key {id_} opens nothing any more\n" == revoked.out
    assert [rotated["id"]] == [
        each["id"] for each in json.loads(verb("keys", "list", "--json").out)
    ]
    table = verb("keys", "list", "--all").out
    assert "revoked" in table
    assert "ci" in table
    assert token.split("_")[2] not in table
    assert token.split("_")[2] not in verb("keys", "list", "--all", "--json").out


def test_people_are_invited_listed_and_removed(made, verb):
    said = verb("people", "invite", "Ana", "--role", "admin", "--expires", "2h")
    listed = json.loads(verb("people", "list", "--json").out)

    assert said.out.startswith("http://127.0.0.1:8321/enter/retoma_link_")
    assert "signs Ana in once, within 2h\n" == said.err
    assert [("Ana", "admin", 0)] == [(p["name"], p["role"], p["keys"]) for p in listed]
    assert "Ana" in verb("people", "list").out
    assert "nobody is signed in" in verb("people", "sessions").out
    assert "over" in verb("people", "remove", "Ana").out
    assert "nobody yet" in verb("people", "list").out
    assert 1 == verb("people", "remove", "Ana").code


def test_somebody_is_signed_out(made, verb):
    async def signed_in(app):
        from retoma.access import Access

        access = Access(await app.database(), app.clock, app.ids)
        await access.enter(await access.invite("Ana", "viewer", "cli"), "Firefox \x1b[31m")

    with_app(made, signed_in)
    [session] = json.loads(verb("people", "sessions", "--json").out)

    assert "Firefox" in verb("people", "sessions").out
    assert f"session {session['id']} is over\n" == verb("people", "sign-out", session["id"]).out
    assert [] == json.loads(verb("people", "sessions", "--json").out)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("keys", "create", ""), 2),
        (("keys", "create", "a" * 10_000), 2),
        (("keys", "create", "Ana", "--role", "root"), 2),
        (("keys", "create", "Ana", "--expires", "0s"), 2),
        (("keys", "create", "Ana", "--expires", "yesterday"), 2),
        (("keys", "revoke", "nothing"), 1),
        (("keys", "rotate", "nothing"), 1),
        (("people", "invite", "cli"), 2),
        (("people", "invite", "Ana", "--expires", "8d"), 2),
        (("people", "sign-out", "nothing"), 1),
    ],
)
def test_what_cannot_be_is_said_in_one_line(made, verb, words, code):
    said = verb(*words)

    assert (code, "", 1) == (said.code, said.out, said.err.count("\n"))
    assert "nobody yet" in verb("people", "list").out


def test_e27_secrets_are_listed_and_sealed_anew_without_being_shown(made, verb, monkeypatch):
    async def filled(app):
        vault = build_vault(read(), await app.database(), app.ids)
        await vault.put(SecretSlot("workers", "api_key", "1"), Secret(CANARY), actor="Ana")
        await vault.put(
            SecretSlot("workers", "api_key", "2"), SecretRef.parse("env:A_KEY"), actor="Bo"
        )

    with_app(made, filled)
    said = [
        verb("secrets", "list").out,
        verb("secrets", "list", "--json").out,
        verb("secrets", "rotate").out,
        verb("secrets", "rotate", "--json").out,
    ]

    assert CANARY not in "".join(said)
    assert "env" in said[0]
    assert ["A_KEY", "Bo"] == [json.loads(said[1])[1][name] for name in ("where", "set_by")]
    assert CANARY[-4:] == json.loads(said[1])[0]["last4"]
    assert said[2].startswith("1 secrets are sealed with key ")
    assert (1, []) == tuple(json.loads(said[3])[name] for name in ("sealed", "unreadable"))


def test_e27_an_error_is_told_without_its_secrets(made, verb, monkeypatch):
    Secret(CANARY)
    for debug in ("0", "1"):
        monkeypatch.setenv("RETOMA_DEBUG", debug)
        said = verb("keys", "revoke", CANARY.replace("-", ""))
        told = verb("people", "remove", CANARY)

        assert 1 == said.code == told.code
        assert "CANARY-" not in told.err
        assert "***" in told.err
    known._forget(CANARY)


def test_two_ways_to_the_key_contradict_each_other(made, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_SECRET_KEY", "x")
    monkeypatch.setenv("RETOMA_SECRET_KEY_FILE", "y")

    said = verb("secrets", "list")

    assert 2 == said.code
    assert "contradict" in said.err
