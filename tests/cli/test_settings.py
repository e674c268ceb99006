"""`retoma settings`: what stands where, and a hand on what changes while processes run."""

import json

import pytest

from retoma.manifest import APPLICATIONS, application_of
from tests.cli.conftest import with_app


@pytest.fixture
def there(url):
    async def used(app):
        await app.upgrade()

    with_app(url, used)
    return url


def test_a_knob_is_listed_changed_and_reset(there, verb):
    changed = verb("settings", "set", "keep_done", "30d")
    listed = {each["name"]: each for each in json.loads(verb("settings", "list", "--json").out)}
    page = verb("settings", "list", "--all").out
    reset = verb("settings", "reset", "keep_done")
    after = {each["name"]: each for each in json.loads(verb("settings", "list", "--json").out)}

    assert "keep_done is 2592000 s from now on\n" == changed.out
    assert (2_592_000, "database", "cli") == tuple(
        listed["keep_done"][name] for name in ("value", "source", "changed_by")
    )
    assert "slots" not in listed
    assert "with a restart" in page
    assert "keep_done is nothing from now on\n" == reset.out
    assert (None, "default") == (after["keep_done"]["value"], after["keep_done"]["source"])


APP = """
from retoma import Retoma
from retoma.engine.rules.live_settings import Knob

app = Retoma("sqlite:///elsewhere.db")
app.knobs.declare("ads", [Knob("session_limit", 5, "int", least=1, most=100, why="Sessions.")])
"""


def test_the_knobs_of_an_application_are_known_by_its_app(there, verb, tmp_path):
    (tmp_path / "knobbed_shop.py").write_text(APP)
    named = ("--app", "knobbed_shop:app")
    changed = verb("settings", "set", "ads.session_limit", "9", *named)
    listed = json.loads(verb("settings", "list", "--json", *named).out)

    assert "ads.session_limit is 9 from now on\n" == changed.out
    assert [("ads.session_limit", 9, "database")] == [
        (each["name"], each["value"], each["source"]) for each in listed[-1:]
    ]
    assert 1 == verb("settings", "set", "ads.session_limit", "9").code
    assert 2 == verb("settings", "set", "ads.session_limit", "0", *named).code
    assert 2 == verb("settings", "list", "--app", "knobbed_shop").code
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_settings_of_the_applications_that_are_named_can_be_changed(
    there, verb, name, monkeypatch
):
    knobs = application_of(name).knobs
    if not knobs:
        return
    setting, value = f"{name}.{knobs[0].name}", str(knobs[0].default)

    assert 1 == verb("settings", "set", setting, value).code
    monkeypatch.setenv("RETOMA_APPLICATIONS", name)
    changed = verb("settings", "set", setting, value)
    listed = json.loads(verb("settings", "list", "--json").out)
    assert (0, "") == (changed.code, changed.err)
    assert "database" in {each["source"] for each in listed if each["name"] == setting}
    assert 0 == verb("settings", "reset", setting).code
    assert 2 == verb("settings", "set", setting, "\n").code


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("alert_stuck", "-1"), 2, ""),
        (("alert_stuck", "many"), 2, "a whole number from 0 to 1000000, not 'many'"),
        (("nobody", "1"), 1, "no knob is called 'nobody'"),
        (("slots", "7"), 1, "set RETOMA_SLOTS in its environment"),
    ],
)
def test_row_35_what_cannot_be_is_refused_with_the_rule(there, verb, words, code, told):
    answer = verb("settings", "set", *words)

    assert code == answer.code
    assert told in answer.err
    listed = json.loads(verb("settings", "list", "--json").out)
    assert {"default"} == {each["source"] for each in listed}
