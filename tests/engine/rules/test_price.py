"""Prices are data: what a unit costs is looked up when a charge is written, and never guessed."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from retoma import BadInput, Context, Retoma
from retoma.db import moment
from retoma.engine.rules.cost import charge
from retoma.engine.rules.money import Currency
from retoma.engine.rules.price import in_force, new_price, priced, read_list, shipped
from retoma.engine.store.cost import Total
from retoma.engine.testing import drain
from tests.engine.aids import rows

LIST = """
[[price]]
provider = "acme"
unit = "input_tokens"
price = "0.075"
per = 1_000_000

[[price]]
provider = "acme"
unit = "calls"
price = "0.50"
currency = "BRL"
"""


def of(**units: Any) -> Any:
    return charge(provider="acme", model="m1", units=units)


def test_a_price_is_exact_down_to_one_token():
    prices = in_force(read_list(LIST, "me"))

    told = priced(of(input_tokens=1, calls=2), prices)

    assert {Currency.USD: 75, Currency.BRL: 10**9} == told.money
    assert told.known


def test_the_price_of_a_model_comes_before_that_of_its_provider():
    dear = new_price(provider="acme", model="m1", unit="calls", price=7)

    told = priced(of(calls=1), in_force([*read_list(LIST, "me"), dear]))

    assert {Currency.USD: 7 * 10**9} == told.money


def test_a_unit_without_a_price_leaves_the_money_unknown():
    told = priced(of(input_tokens=1_000_000, output_tokens=1), in_force(read_list(LIST, "me")))

    assert not told.known
    assert {"usd": 75_000_000, "unpriced": 1} == {
        unit: n for unit, n in told.amounts().items() if "tokens" not in unit
    }


def test_money_that_was_told_is_not_looked_up():
    told = charge(provider="acme", usd=1, units={"input_tokens": 5})

    assert told == priced(told, in_force(read_list(LIST, "me")))


def test_the_shipped_list_has_every_unit_of_each_model_and_holds_from_the_beginning():
    models: dict[str, set[str]] = {}
    for price in shipped():
        assert price.since is None
        if price.provider == "anthropic":
            models.setdefault(price.model, set()).add(price.unit)
    assert 1 == len({frozenset(units) for units in models.values()})


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "",
        "price = 5",
        "[[price]]\nprovider = 'acme'",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = 'x'",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = -1",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = nan",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = 1\ncurrency = 'EUR'",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = 1\nper = 0",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = 1\nsince = 2026-01-01",
        "[[price]]\nprovider = 'acme'\nunit = 'EUR'\nprice = 1",
        "[[price]]\nprovider = ''\nunit = 'calls'\nprice = 1",
        "[[price]]\nprovider = 'acme'\nunit = 'calls'\nprice = 1\ncolour = 'red'",
        "[[other]]\n",
    ],
)
async def test_a_list_that_makes_no_sense_changes_nothing(tmp_path, text):
    async with Retoma(f"sqlite:///{tmp_path / 'work.db'}") as app:
        before = await app.prices.list()

        with pytest.raises(BadInput):
            await app.prices.read_in(f"{LIST}{text}" if text.startswith("[[") else text)

        assert before == await app.prices.list()


async def test_a_price_holds_from_its_day_on_and_what_was_charged_stays(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await app.prices.read_in(LIST)
        test_clock.jump(0)

        @app.job
        async def label(ctx: Context) -> None:
            ctx.cost(provider="acme", input_tokens=1_000_000)

        [[now]] = await rows(await app.database(), "SELECT clock()")
        tomorrow = cast("datetime", moment(now)) + timedelta(days=1)
        await app.prices.set("acme", "input_tokens", 10, per=1_000_000, since=tomorrow)
        await app.submit(label)
        await drain(app)
        [before] = await app.costs.total()
        test_clock.jump(86_400 + 60)
        await app.submit(label)
        await drain(app)
        [after] = await app.costs.total()

        assert Decimal("0.075") == before.spent.usd
        assert Decimal("10.075") == after.spent.usd


async def test_a_charge_without_a_price_is_counted_and_seen_never_as_nothing(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            ctx.cost(provider="nobody", model="x", input_tokens=7)
            ctx.cost(tokens=3)

        await app.submit(label)
        await drain(app)

        own, named = await app.costs.total()
        assert Total(units={"tokens": 3}, unpriced=1) == own.spent
        assert Total(units={"input_tokens": 7}, unpriced=1) == named.spent


@pytest.mark.parametrize("rate", [0, -5, "NaN", "five", None, 10**9])
async def test_an_exchange_rate_that_makes_no_sense_is_refused(tmp_path, rate):
    async with Retoma(f"sqlite:///{tmp_path / 'work.db'}") as app:
        with pytest.raises(BadInput, match="an exchange rate is"):
            await app.prices.set_exchange(rate)

        assert None is await app.prices.exchange()
