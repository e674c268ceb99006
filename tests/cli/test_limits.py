"""`retoma limits`: what may run at once, and a person's word over the code's."""

import json

import pytest

from tests.cli.conftest import with_app
from tests.cli.stories import note


@pytest.fixture
def limited(url):
    async def used(app):
        app.job(name="bounded", limit=3)(note)
        await app.submit("bounded", "x")
        await app.run(until_idle=True)

    with_app(url, used)
    return url


def test_a_limit_is_listed_and_set_over_the_code_and_given_back(limited, verb):
    [before] = json.loads(verb("limits", "list", "--json").out)
    raised = verb("limits", "set", "kind:bounded", "--cap", "9")
    page = verb("limits", "list").out
    verb("limits", "set", "kind:bounded")
    [after] = json.loads(verb("limits", "list", "--json").out)

    assert ("kind:bounded", 3, 0, False) == (
        before["key"],
        before["cap"],
        before["used"],
        before["by_hand"],
    )
    assert "limit kind:bounded: at most 9 run at once\n" == raised.out
    assert "a person" in page
    assert before == after


@pytest.mark.parametrize(
    ("words", "code"), [(("kind:bounded", "--cap", "0"), 2), (("",), 2), (("nobody:knows",), 1)]
)
def test_a_limit_that_cannot_be_or_is_not_there_is_refused(limited, verb, words, code):
    assert code == verb("limits", "set", *words).code
    assert [3] == [each["cap"] for each in json.loads(verb("limits", "list", "--json").out)]
