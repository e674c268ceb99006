"""`retoma costs show`, `budgets`, `prices`, `reuse`."""

import json

import pytest

from retoma import Context
from tests.cli.conftest import with_app


@pytest.fixture
def spending(url):
    async def spent(app):
        async def story(ctx: Context, page: str) -> None:
            async def ask() -> str:
                ctx.cost(provider="acme", model="m1", tokens=100, usd="0.25")
                ctx.cost(provider="nobody", pages=1)
                return page

            await ctx.step("ask", ask, pays="acme", reuse=page)

        label = app.job(name="label", application="documents")(story)
        await app.submit_many(label, ["a", "b", "a"], budget="1 USD")
        await app.run(until_idle=True, slots=1)

    with_app(url, spent)
    return url


def test_costs_are_told_by_whatever_is_asked_for(spending, verb):
    by = {
        each: json.loads(verb("costs", "show", "--by", each, "--json").out)
        for each in ("provider", "kind", "application", "day")
    }
    batch = json.loads(verb("costs", "show", "--batch", "1", "--json").out)

    for told in (*by.values(), batch):
        paid = next(each for each in told if each["provider"] == "acme")
        assert ("0.50", {"tokens": 200}) == (paid["spent"]["usd"], paid["spent"]["units"])
        assert "0.25" == paid["saved"]["usd"]
        unknown = next(each for each in told if each["provider"] == "nobody")
        assert 2 == unknown["spent"]["unpriced"]
    assert {"documents"} == {each["name"] for each in by["application"]}
    assert "tokens 200" in verb("costs", "show").out
    assert "0.25" in verb("costs", "show", "--job", "1").out
    assert "no costs\n" == verb("costs", "show", "--job", "77").out
    assert 2 == verb("costs", "show", "--by", "weather").code


def test_a_budget_is_set_shown_warned_of_and_removed(spending, verb):
    said = verb("budgets", "set", "0.60 USD", "--provider", "acme", "--per", "day")
    shown = {each["gate"]: each for each in json.loads(verb("budgets", "list", "--json").out)}
    removed = verb("budgets", "remove", "--provider", "acme", "--per", "day")

    assert "budget:provider:acme:day: 0.60 USD may be spent, 0.50 USD are\n" == said.out
    assert {"budget:provider:acme:day", "budget:batch:1"} == set(shown)
    assert (83, True, False) == (
        shown["budget:provider:acme:day"]["share"],
        shown["budget:provider:acme:day"]["warning"],
        shown["budget:provider:acme:day"]["exhausted"],
    )
    assert 2 == shown["budget:batch:1"]["unpriced"]
    assert "2 charges not counted: no price" in verb("budgets", "list").out
    assert "removed: who waited for it goes on\n" == removed.out
    assert 1 == verb("budgets", "remove", "--provider", "acme", "--per", "day").code


def test_doctor_tells_of_what_is_nearly_spent(spending, verb):
    verb("budgets", "set", "0.60 USD", "--provider", "acme", "--per", "day")

    checks = {
        each["check"]: each for each in json.loads(verb("doctor", "--json").out)["checks"]
    }

    assert "warn" == checks["budgets"]["verdict"]
    assert "budget:provider:acme:day has 0.50 USD of 0.60 USD" in checks["budgets"]["found"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("budgets", "set", "0 USD", "--batch", "1"), "more than nothing"),
        (("budgets", "set", "5 EUR", "--batch", "1"), "is no currency here"),
        (("budgets", "set", "NaN USD", "--batch", "1"), "a budget is finite"),
        (("budgets", "set", "5 USD"), "of one batch, one provider or one application"),
        (("budgets", "set", "5 USD", "--provider", "x", "--per", "year"), "per day, month"),
        (("prices", "set", "acme", "eur", "1"), "a unit is a word"),
        (("prices", "set", "acme", "pages", "1e9"), "a price is from"),
        (("prices", "set", "acme", "pages", "1", "--currency", "EUR"), "is no currency here"),
        (("prices", "set", "acme", "pages", "1", "--since", "soon"), "is no date such as"),
        (("prices", "exchange", "0"), "an exchange rate is from"),
        (("prices", "import", "nowhere.toml"), "No such file"),
        (("reuse", "forget"), "say what is to be forgotten"),
        (("reuse", "forget", "--key", "a"), "a key is given as JSON"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(spending, verb, arguments, told):
    before = [verb(each, "list", "--json").out for each in ("budgets", "prices", "reuse")]

    refused = verb(*arguments)

    assert (2, "") == (refused.code, refused.out)
    assert told in refused.err
    assert before == [verb(e, "list", "--json").out for e in ("budgets", "prices", "reuse")]


def test_prices_are_set_imported_and_listed(spending, verb, tmp_path):
    file = tmp_path / "prices.toml"
    file.write_text('[[price]]\nprovider = "acme"\nunit = "calls"\nprice = "0.01"\n')

    said = [
        verb("prices", "set", "ocr", "pages", "0.02", "--currency", "brl", "--per", "10").out,
        verb("prices", "import", str(file)).out,
        verb("prices", "exchange", "5.40").out,
    ]
    told = json.loads(verb("prices", "list", "--json").out)

    assert [
        "ocr pages cost 0.02 BRL for 10\n",
        "1 prices hold now\n",
        "1 USD is 5.40 BRL\n",
    ] == said
    assert "5.40" == told["exchange"]["brl_per_usd"]
    own = {each["provider"] for each in told["prices"] if each["by"] == "cli"}
    assert {"ocr", "acme"} == own
    assert "shipped" in verb("prices", "list").out
    assert "1 USD is 5.40 BRL since" in verb("prices", "list", "--provider", "ocr").out


def test_what_may_be_used_again_is_listed_and_forgotten(spending, verb):
    listed = json.loads(verb("reuse", "list", "--step", "ask", "--json").out)
    one = verb("reuse", "forget", "--kind", "label", "--step", "ask", "--key", '"a"')
    rest = json.loads(verb("reuse", "forget", "--all", "--json").out)

    assert ['"a"', '"b"'] == sorted(each["key"] for each in listed)
    assert "1 results are forgotten; they are made anew when wanted\n" == one.out
    assert {"forgotten": 1} == rest
    assert "nothing to use again\n" == verb("reuse", "list").out
