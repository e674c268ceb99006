"""Money is exact: what is added up is what was said, to the billionth."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from retoma import BadInput
from retoma.engine.rules.money import Currency, Money, currency, exchanged, money, nanos, plain
from retoma.engine.rules.period import Per, span


@pytest.mark.parametrize(
    ("amount", "whole"),
    [
        (1, 1_000_000_000),
        (0.1, 100_000_000),  # as it is printed, not as it is stored
        ("0.000000001", 1),
        (Decimal("0.0000000015"), 2),
        (Decimal("0.0000000005"), 0),  # half to even: no drift either way
        (100_000, 100_000_000_000_000),
    ],
)
def test_an_amount_is_whole_billionths(amount, whole):
    assert whole == nanos("usd", amount)


@pytest.mark.parametrize(
    "amount",
    [-1, "-0.01", float("nan"), "NaN", float("inf"), "1,5", "", None, True, [], 100_001, 1e300],
)
def test_what_is_no_amount_is_refused(amount):
    with pytest.raises(BadInput, match="usd is"):
        nanos("usd", amount)


def test_a_thousand_tenths_are_a_hundred():
    assert 100 * 10**9 == sum(nanos("usd", 0.1) for _ in range(1_000))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("25 USD", Money(25 * 10**9, Currency.USD)),
        (" 0.5 brl ", Money(5 * 10**8, Currency.BRL)),
    ],
)
def test_money_is_an_amount_and_a_currency(text, told):
    assert told == money("a budget", text)


@pytest.mark.parametrize(
    "text",
    ["0 USD", "0.0000000001 USD", "-5 USD", "NaN USD", "inf BRL", "5", "USD", "", 5, None],
)
def test_nothing_and_less_is_no_budget(text):
    with pytest.raises(BadInput, match="a budget is"):
        money("a budget", text)


@pytest.mark.parametrize("text", ["5 EUR", "5 $", "5 usdt"])
def test_an_unknown_currency_is_refused_and_the_known_are_named(text):
    with pytest.raises(BadInput, match="is no currency here: there are USD, BRL"):
        money("a budget", text)


def test_a_currency_is_known_in_any_case():
    assert Currency.BRL is currency("Brl")


@pytest.mark.parametrize(
    ("whole", "text"),
    [(0, "0.00"), (1, "0.000000001"), (25 * 10**8, "2.50"), (-1_250_000_000, "-1.25")],
)
def test_money_is_shown_with_cents_and_with_what_is_finer(whole, text):
    assert text == plain(whole)


def test_the_other_currency_is_worth_what_the_rate_says():
    rate = Decimal("5.40")

    assert 54 * 10**8 == exchanged(10**9, Currency.USD, Currency.BRL, rate)
    assert 10**9 == exchanged(54 * 10**8, Currency.BRL, Currency.USD, rate)
    assert 7 == exchanged(7, Currency.BRL, Currency.BRL, rate)


def test_a_day_and_a_month_go_by_the_clocks_of_a_place():
    now = datetime(2026, 3, 1, 2, 59, tzinfo=UTC)  # still February in São Paulo

    day = span(now, Per.DAY, "America/Sao_Paulo")
    month = span(now, Per.MONTH, "America/Sao_Paulo")

    assert ("2026-02-28", "2026-02") == (day.name, month.name)
    assert datetime(2026, 3, 1, 3, tzinfo=UTC) == day.until == month.until
    assert datetime(2026, 2, 1, 3, tzinfo=UTC) == month.since
    assert "2026-03-01" == span(now, Per.DAY, "UTC").name
    assert day.has(now)
    assert not day.has(datetime(2026, 3, 1, 3, tzinfo=UTC))


def test_the_whole_has_no_end():
    whole = span(datetime(2026, 3, 1, tzinfo=UTC), Per.WHOLE, "UTC")

    assert ("", None) == (whole.name, whole.until)
