"""`retoma alerts`: what somebody should know of, and who knows."""

import json

import pytest

from retoma.engine.store import alerts
from retoma.engine.store.alerts import Cause, Rule
from tests.cli.conftest import with_app


@pytest.fixture
def alerted(url):
    async def raised(app):
        database = await app.database()
        cause = Cause(Rule.BREAKER, "shop\x1b[31m")
        await database.write(
            lambda tx: alerts.raise_alert(tx, cause, {"reason": "down"}), verb="test"
        )

    with_app(url, raised)
    return url


def test_an_alert_is_listed_acknowledged_and_silenced(alerted, verb):
    page = verb("alerts", "list").out
    known = verb("alerts", "acknowledge", "1")
    silent = verb("alerts", "silence", "1", "--for", "2h")
    [after] = json.loads(verb("alerts", "list", "--all", "--json").out)

    assert "BreakerOpen" in page
    assert "\x1b" not in page
    assert "alert 1 is known to cli\n" == known.out
    assert silent.out.startswith("alert 1: nobody is told before 20")
    assert ("cli", "cli", True) == (
        after["acknowledged_by"],
        after["silenced_by"],
        after["silent"],
    )
    assert "silent until" in verb("alerts", "list").out


def test_where_nothing_is_wrong_it_says_so(worked, verb):
    assert "BatchFinished" in verb("alerts", "list").out
    assert "no alerts" in verb("alerts", "list", "--before", "1").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("acknowledge", "2"), 1),
        (("acknowledge", "0"), 2),
        (("silence", "1", "--for", "long"), 2),
        (("silence", "1", "--for", "90d"), 2),
        (("silence", "1"), 2),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(alerted, verb, words, code):
    assert code == verb("alerts", *words).code
    [after] = json.loads(verb("alerts", "list", "--json").out)
    assert (None, None) == (after["acknowledged_by"], after["silenced_by"])
