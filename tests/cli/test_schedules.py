"""`retoma schedules`: listed, held, let go, run at once."""

import json

import pytest

from tests.cli.conftest import with_app


@pytest.fixture
def nightly(url):
    async def declared(app):
        app.schedule("nightly", "note", cron="0 3 * * *", payload="good night")
        await app.schedules.list()

    with_app(url, declared)
    return url


def test_a_schedule_is_listed_with_its_next_tick(nightly, verb):
    [told] = json.loads(verb("schedules", "list", "--json").out)

    assert ("nightly", "note", "0 3 * * *") == (told["name"], told["kind"], told["cron"])
    assert told["next_at"]
    assert "nightly" in verb("schedules", "list").out


def test_it_is_paused_and_unpaused(nightly, verb):
    held = verb("schedules", "pause", "nightly")
    page = verb("schedules", "list").out
    going = verb("schedules", "unpause", "nightly")

    assert (0, "schedule nightly is paused\n") == (held.code, held.out)
    assert "paused" in page
    assert going.out.startswith("schedule nightly goes on; its next tick is 20")


def test_it_is_run_at_once(nightly, verb):
    said = verb("schedules", "run", "nightly")

    assert "schedule nightly: job 1 waits its turn" in said.out
    assert "note" == json.loads(verb("jobs", "show", "1", "--json").out)["kind"]


@pytest.mark.parametrize("word", ["pause", "unpause", "run"])
def test_an_unknown_schedule_is_refused(nightly, verb, word):
    said = verb("schedules", word, "hourly")

    assert (1, "") == (said.code, said.out)
    assert "hourly" in said.err
