"""`retoma pools`, `rates`, `breakers`, and what a person says of work that nobody saw end."""

import json
from typing import Any

import pytest

from retoma import Context, Edge, Remote, Status
from tests.cli.conftest import with_app


@pytest.fixture
def reaching(url):
    async def declared(app):
        await app.pools.declare("proxies", {"a": {"password": "s3cret"}, "b": 2})
        await app.rates.set("site", 5)
        await app.breakers.declare("site")

    with_app(url, declared)
    return url


def test_e17_pools_are_shown_and_switched_but_their_secrets_are_not_told(reaching, verb):
    said = [
        verb("pools", "list").out,
        verb("pools", "off", "proxies", "a", "b", "--why", "they are slow").out,
        verb("pools", "show", "proxies").out,
        verb("pools", "show", "proxies", "--json").out,
        verb("pools", "on", "proxies", "b", "--why", "it is quick again").out,
    ]
    [pool] = json.loads(verb("pools", "list", "--json").out)

    assert "proxies" in said[0]
    assert "pool proxies: switched off a, b; who holds it may end with it\n" == said[1]
    assert "they are slow" in said[2]
    assert ["off", "off"] == [each["state"] for each in json.loads(said[3])]
    assert "pool proxies: switched on b\n" == said[4]
    assert (2, 1, 0) == (pool["items"], pool["on"], pool["held"])
    assert "s3cret" not in "".join(said)


def test_e17_a_thing_is_declared_free(reaching, verb):
    async def held(app):
        async def story(ctx: Context) -> None:
            await ctx.use("proxies", scope="release")

        await app.submit(app.job(name="borrow")(story))
        await app.run(until_idle=True)

    with_app(reaching, held)
    [thing] = [
        e for e in json.loads(verb("pools", "show", "proxies", "--json").out) if e["job"]
    ]

    freed = verb("pools", "free", "proxies", thing["name"])

    assert f"pool proxies: {thing['name']} is free\n" == freed.out
    assert "held" not in verb("pools", "list", "--json").out.replace('"held": 0', "")
    assert 1 == verb("pools", "free", "proxies", thing["name"]).code


def test_e16_a_rate_is_set_while_it_is_in_force(reaching, verb):
    said = verb("rates", "set", "site", "50", "--burst", "10")
    [rate] = json.loads(verb("rates", "list", "--json").out)

    assert "rate site: 50 calls a second from now on\n" == said.out
    assert ("site", 50.0, 10.0) == (rate["key"], rate["per_second"], rate["burst"])
    assert "50" in verb("rates", "list").out


def test_e16_a_breaker_is_opened_and_closed(reaching, verb):
    opened = verb("breakers", "open", "site", "--why", "they asked us to")
    page = verb("breakers", "list").out
    [during] = json.loads(verb("breakers", "list", "--json").out)
    closed = verb("breakers", "close", "site")
    [after] = json.loads(verb("breakers", "list", "--json").out)

    assert "breaker site is open: who needs it waits outside" in opened.out
    assert "they asked us to" in page
    assert ("open", "closed") == (during["state"], after["state"])
    assert "breaker site is closed: all go on\n" == closed.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("pools", "show", "nobody's"), 1),
        (("pools", "off", "nobody's", "a", "--why", "x"), 1),
        (("pools", "off", "proxies", "a", "z", "--why", "x"), 1),
        (("pools", "off", "proxies", "a"), 2),
        (("pools", "off", "proxies", "a", "--why", " "), 2),
        (("pools", "free", "proxies", "a"), 1),
        (("rates", "set", "site", "--", "-1"), 2),
        (("rates", "set", "site", "0"), 2),
        (("rates", "set", "site", "nan"), 2),
        (("rates", "set", "site", "5", "--burst", "0.5"), 2),
        (("breakers", "open", "nobody's", "--why", "x"), 1),
        (("breakers", "close", "nobody's"), 1),
        (("jobs", "send-again", "1"), 1),
        (("jobs", "adopt", "1", "17"), 1),
        (("jobs", "adopt", "1", "w-17"), 2),
    ],
)
def test_what_cannot_be_or_is_not_there_is_refused_and_changes_nothing(
    reaching, verb, words, code
):
    before = seen(verb)

    said = verb(*words)

    assert code == said.code
    assert said.err
    assert before == seen(verb)


def test_where_there_is_nothing_it_is_said(url, verb):
    verb("db", "upgrade")

    for group in ("pools", "rates", "breakers"):
        assert f"no {group}\n" == verb(group, "list").out
        assert [] == json.loads(verb(group, "list", "--json").out)


def test_e6_a_person_says_that_work_is_gone_or_which_one_it_is(url, verb):
    async def lost(app):
        await app.submit(mission(app), "first")
        await app.submit("mission", "second")
        await app.run(until_idle=True)

    with_app(url, lost)
    why = verb("jobs", "explain", "1").out
    too_long = verb("jobs", "adopt", "2", json.dumps("x" * 10_000))
    nothing = verb("jobs", "adopt", "2", "null")

    gone = verb("jobs", "send-again", "1")
    found = verb("jobs", "adopt", "2", '"w-2"')

    assert "`retoma jobs send-again 1`" in why
    assert (2, 2) == (too_long.code, nothing.code)
    assert "at most 8192 characters" in too_long.err
    assert "job 1 waits again, and does anew what it had begun\n" == gone.out
    assert "job 2 waits again, and goes on with what you gave it\n" == found.out
    assert "ends canceled once its remote work" in verb("jobs", "cancel", "2").out
    job = json.loads(verb("jobs", "show", "2", "--json").out)
    assert ['"w-2"'] == [step["value"] for step in job["steps"]]


def mission(app: Any) -> Any:
    async def send(key: str, payload: Any) -> str:
        raise ConnectionError("hung up")

    async def ask(handle: str) -> Status:
        return Status("done")

    remote = Remote(send=send, ask=ask, statuses={"done": Edge.DONE})

    async def story(ctx: Context, name: str) -> Any:
        return await ctx.remote("scrape", remote)

    return app.job(name="mission")(story)


def seen(verb: Any) -> list[str]:
    return [
        verb(*words, "--json").out
        for words in (("pools", "show", "proxies"), ("rates", "list"), ("breakers", "list"))
    ]
