"""What a unit costs: prices as data, by provider, model and unit, each from a day on.

A charge that tells no money gets it from here. What an operator has set comes before the list that is
shipped; a price for a model before one for all models of its provider (the empty name).
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from retoma.engine.rules.cost import NAME, UNIT, Charge
from retoma.engine.rules.duration import instant
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.money import EXACT, NANOS, Currency, currency, decimal
from retoma.words import say

SHIPPED = "shipped"  # whose word a price of our own list is
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
MOST_PER = 10**12
MOST_PRICE = 10**6
FIELDS = frozenset(("provider", "model", "unit", "price", "currency", "per", "since"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """So much money for so many units, from an instant on."""

    provider: str
    model: str
    unit: str
    amount: Decimal
    currency: Currency
    per: int
    since: datetime | None  # None: from when it is said; of a shipped one, always
    by: str = SHIPPED

    def __post_init__(self) -> None:
        for what, name, least in (("provider", self.provider, 1), ("model", self.model, 0)):
            if not least <= len(name) <= NAME or not (name.isprintable() or not name):
                raise BadInput(
                    say(
                        "a {what} has 1 to {most} printable characters: {text!r}",
                        what=what,
                        most=NAME,
                        text=name,
                    )
                )
        if not UNIT.fullmatch(self.unit):
            raise BadInput(
                say("a unit is a word such as input_tokens, not {name!r}", name=self.unit)
            )
        if not 0 <= self.amount <= MOST_PRICE:
            raise BadInput(
                say(
                    "{name} is from {least} to {most}, not {amount!r}",
                    name=say("a price"),
                    least=0,
                    most=MOST_PRICE,
                    amount=str(self.amount),
                )
            )
        if type(self.per) is not int or not 1 <= self.per <= MOST_PER:
            raise BadInput(
                say(
                    "{name} is a whole number from {least} to {most}, not {number!r}",
                    name="per",
                    least=1,
                    most=MOST_PER,
                    number=self.per,
                )
            )

    def of(self, n: int) -> Decimal:
        """What so many units cost, in billionths."""
        return EXACT.divide(EXACT.multiply(self.amount, n * NANOS), self.per)


def new_price(
    *,
    provider: Any,
    unit: Any,
    price: Any,
    currency_: Any = Currency.USD,
    model: Any = "",
    per: Any = 1,
    since: datetime | None = None,
    by: str = SHIPPED,
) -> Price:
    """Checks what somebody says."""
    for what, text in (("provider", provider), ("model", model), ("unit", unit)):
        if not isinstance(text, str):
            raise BadInput(say("{what}: text, not {text!r}", what=what, text=text))
    return Price(
        provider=provider,
        model=model,
        unit=unit,
        amount=decimal(say("a price"), price),
        currency=currency(currency_),
        per=per,
        since=None if since is None else instant(since),
        by=by,
    )


def read_list(text: str, by: str) -> list[Price]:
    """A list as it is shipped and imported: TOML, one table [[price]] each."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(say("this is no TOML: {error}", error=str(error))) from error
    listed = told.get("price")
    if not isinstance(listed, list) or set(told) != {"price"} or not listed:
        raise BadInput(say("a list of prices has tables [[price]], and nothing else"))
    return [_read(each, by, place) for place, each in enumerate(listed, 1)]


def _read(told: Any, by: str, place: int) -> Price:
    try:
        _check_fields(told)
        named = {name: told[name] for name in FIELDS & set(told) - {"currency"}}
        return new_price(**named, currency_=told.get("currency", Currency.USD), by=by)
    except BadInput as error:
        raise BadInput(say("price {place}: {error}", place=place, error=error)) from error


def _check_fields(told: Any) -> None:
    if not isinstance(told, dict) or not set(told) <= FIELDS:
        raise BadInput(say("a price has {all}", all=", ".join(sorted(FIELDS))))
    missing = {"provider", "unit", "price"} - set(told)
    if missing:
        raise BadInput(say("it needs {missing}", missing=", ".join(sorted(missing))))


@cache
def shipped() -> tuple[Price, ...]:
    """Our own small list."""
    text = (
        resources.files("retoma.engine.rules")
        .joinpath("prices.toml")
        .read_text(encoding="utf-8")
    )
    return tuple(read_list(text, SHIPPED))


def began(price: Price) -> datetime:
    return price.since or ALWAYS


Key = tuple[str, str, str]  # provider, model, unit


def in_force(prices: Iterable[Price]) -> dict[Key, Price]:
    """The newest word on each; of one instant the later one."""
    ordered = sorted(prices, key=began)
    return {(each.provider, each.model, each.unit): each for each in ordered}


def priced(charge: Charge, prices: Mapping[Key, Price]) -> Charge:
    """With its money, if it tells none; known only where every unit has a price."""
    if charge.known or charge.money:
        return charge
    paid: dict[Currency, Decimal] = {}
    known = True
    for unit, n in charge.units.items():
        price = prices.get((charge.provider, charge.model, unit)) or prices.get(
            (charge.provider, "", unit)
        )
        if price is None:
            known = False
        else:
            before = paid.get(price.currency, Decimal(0))
            paid[price.currency] = EXACT.add(before, price.of(n))
    whole = {each: int(EXACT.quantize(n, Decimal(1))) for each, n in paid.items()}
    return replace(charge, money=whole, known=known)
