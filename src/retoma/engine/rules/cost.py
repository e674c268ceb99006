"""What a call cost, as its story tells it, and how that is kept with a step. Pure.

A charge is units (tokens, bytes, calls) and perhaps money; where no money is told the price list says
it, when the charge is written. Money that nobody knows stays unknown, and is told as such.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.money import Currency, nanos, plain
from retoma.words import say

MOST_UNITS = 10**14  # in one charge
NAME = 100  # characters of a provider or model
UNIT = re.compile(r"[a-z][a-z0-9_]{3,39}")
UNPRICED = "unpriced"  # charges whose money nobody knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call cost. `money` is empty until it is known."""

    provider: str = ""
    model: str = ""
    units: Mapping[str, int] = field(default_factory=dict)
    money: Mapping[Currency, int] = field(default_factory=dict)
    known: bool = False  # whether the money is all there is to it

    def amounts(self) -> dict[str, int]:
        """By unit, as they are counted."""
        counted = {**self.units, **{str(each): n for each, n in self.money.items()}}
        return counted if self.known else {**counted, UNPRICED: 1}

    def document(self) -> dict[str, Any]:
        """As it is kept with its step; money as decimals."""
        told: dict[str, Any] = {
            name: value
            for name, value in (("provider", self.provider), ("model", self.model))
            if value
        }
        told |= dict(self.units)
        told |= {str(each): plain(n) for each, n in self.money.items()}
        return told if self.known else {**told, UNPRICED: True}


def charge(
    *,
    provider: object = None,
    model: object = None,
    usd: Any = None,
    brl: Any = None,
    units: Mapping[str, Any],
) -> Charge:
    """Checks what a story says."""
    told = {Currency.USD: usd, Currency.BRL: brl}
    paid = {each: nanos(each, n) for each, n in told.items() if n is not None}
    counted = {_unit(name): _whole(name, n) for name, n in units.items() if n is not None}
    if not paid and not counted:
        raise BadInput(say("a cost says at least one number: money, tokens, bytes or others"))
    return Charge(
        provider=_named("provider", provider),
        model=_named("model", model),
        units={name: n for name, n in counted.items() if n},
        money=paid,
        known=bool(paid) or not any(counted.values()),
    )


def read_charges(text: str | None) -> list[Charge]:
    """The other way: the charges a step was kept with; none where it was reused itself."""
    told = json.loads(text) if text else {}
    return [_read(each) for each in told.get("charges", ())] if "from" not in told else []


def _read(told: dict[str, Any]) -> Charge:
    known = not told.pop(UNPRICED, False)
    provider, model = told.pop("provider", ""), told.pop("model", "")
    paid = {each: nanos(each, told.pop(each)) for each in Currency if each in told}
    return Charge(provider=provider, model=model, units=told, money=paid, known=known)


@dataclass(frozen=True, slots=True)
class Payer:
    """Under what names a job's charges are counted."""

    job: int
    batch: int | None
    kind: str
    application: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A step's result, for other jobs to use again."""

    hash: str
    kind: str
    step: str
    version: int
    key: str
    key_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What is written with a save or a settling: what was spent, what was not, what is offered."""

    payer: Payer
    own: Sequence[Charge] = ()  # of the step that is saved
    others: Sequence[Charge] = ()  # of what failed, and of the story between its steps
    saved: Sequence[Charge] = ()  # would have been spent again, had nothing been kept
    reused_from: int | None = None
    offer: Offer | None = None

    @property
    def spent(self) -> list[Charge]:
        return [*self.own, *self.others]

    def with_prices(self, own: Iterable[Charge], others: Iterable[Charge]) -> "Bill":
        return replace(self, own=tuple(own), others=tuple(others))

    def kept(self) -> str | None:
        """What a step remembers of it; None: nothing."""
        if self.reused_from is not None:
            charges = [each.document() for each in self.saved]
            return json.dumps({"from": self.reused_from, "charges": charges})
        if self.own:
            return json.dumps({"charges": [each.document() for each in self.own]})
        return None


def _unit(name: str) -> str:
    if len(name) == 3:
        raise BadInput(
            say(
                "{currency} is no currency here: there are {all}",
                currency=repr(name),
                all=", ".join(each.upper() for each in Currency),
            )
        )
    if not UNIT.fullmatch(name) or name == UNPRICED:
        raise BadInput(say("a unit is a word such as input_tokens, not {name!r}", name=name))
    return name


def _whole(name: str, n: object) -> int:
    if type(n) is not int or not 0 <= n <= MOST_UNITS:
        raise BadInput(
            say(
                "{name} is a whole number from {least} to {most}, not {number!r}",
                name=name,
                least=0,
                most=MOST_UNITS,
                number=n,
            )
        )
    return n


def _named(what: str, name: object) -> str:
    if name is None:
        return ""
    if not isinstance(name, str) or not 0 < len(name) <= NAME or not name.isprintable():
        raise BadInput(
            say(
                "a {what} has 1 to {most} printable characters: {text!r}",
                what=what,
                most=NAME,
                text=name,
            )
        )
    return name
