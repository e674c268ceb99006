"""Exact money: whole billionths of a dollar or a real, never floats. Pure.

A token may cost less than a millionth of a dollar; a billionth is finer than any price list, and 64
bits of them hold nine thousand million dollars.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from retoma.engine.rules.errors import BadInput
from retoma.words import Said, say

NANOS = 1_000_000_000  # in one dollar or real
MOST = (
    100_000  # dollars or reais that one charge may say: beyond it somebody has mixed up units
)
LARGEST = 9_000_000_000  # of either in one account
EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)


class Currency(StrEnum):
    """What money is told in."""

    USD = "usd"
    BRL = "brl"


@dataclass(frozen=True, slots=True)
class Money:
    """So many billionths of a currency."""

    nanos: int
    currency: Currency

    def __str__(self) -> str:
        return f"{plain(self.nanos)} {self.currency.upper()}"


def currency(text: object) -> Currency:
    try:
        return Currency(str(text).lower())
    except ValueError:
        raise BadInput(
            say(
                "{currency} is no currency here: there are {all}",
                currency=repr(text),
                all=", ".join(each.upper() for each in Currency),
            )
        ) from None


def nanos(what: str | Said, amount: Any, *, most: int = MOST) -> int:
    """An amount as whole billionths; a float counts as what it is printed as."""
    number = decimal(what, amount)
    if not 0 <= number <= most:
        raise BadInput(
            say(
                "{name} is from {least} to {most}, not {amount!r}",
                name=what,
                least=0,
                most=most,
                amount=amount,
            )
        )
    return int(EXACT.quantize(EXACT.multiply(number, NANOS), Decimal(1)))


def decimal(what: str | Said, amount: Any) -> Decimal:
    """A finite number, exactly."""
    if isinstance(amount, bool) or not isinstance(amount, int | float | str | Decimal):
        raise BadInput(say("{name} is a number, not {amount!r}", name=what, amount=amount))
    text = repr(amount) if isinstance(amount, float) else amount
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadInput(
            say("{name} is a number, not {amount!r}", name=what, amount=amount)
        ) from None
    if not number.is_finite():
        raise BadInput(say("{name} is finite, not {amount!r}", name=what, amount=amount))
    return number


def money(what: str | Said, text: object) -> Money:
    """`25 USD` and the like: more than nothing."""
    amount, _, named = text.strip().rpartition(" ") if isinstance(text, str) else ("", "", "")
    if not amount or not isinstance(text, str):
        raise BadInput(
            say(
                "{name} is an amount and a currency, such as '25 USD', not {text!r}",
                name=what,
                text=text,
            )
        )
    told = currency(named)
    whole = nanos(what, amount.strip(), most=LARGEST)
    if not whole:
        raise BadInput(say("{name} is more than nothing, not {text!r}", name=what, text=text))
    return Money(whole, told)


def plain(amount: int) -> str:
    """Billionths as a decimal: cents always, what is finer where there is some."""
    whole, rest = divmod(abs(amount), NANOS)
    digits = f"{rest:09d}".rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}{whole}.{digits}"


def exchanged(amount: int, frm: Currency, to: Currency, brl_per_usd: Decimal) -> int:
    """The same in the other currency."""
    if frm is to:
        return amount
    number = Decimal(amount)
    other = (
        EXACT.multiply(number, brl_per_usd)
        if frm is Currency.USD
        else EXACT.divide(number, brl_per_usd)
    )
    return int(EXACT.quantize(other, Decimal(1)))
