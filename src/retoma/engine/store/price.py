"""The price list and the exchange rate, as operators set them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from retoma.db import Transaction
from retoma.engine.rules.price import Key, Price, began, in_force, shipped
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL


@dataclass(frozen=True, slots=True)
class Exchange:
    """How many reais a dollar is, since when, by whose word."""

    brl_per_usd: Decimal
    since: datetime
    by: str


def prices_of(tx: Transaction, providers: Iterable[str]) -> dict[Key, Price]:
    """What their units cost now. An operator's word comes before the shipped list."""
    wanted = sorted(set(providers) - {""})
    set_ = [
        price for each in wanted for price in tx.all(SQL.find_prices, into=Price, provider=each)
    ]
    return in_force([*shipped(), *set_])


def list_prices(tx: Transaction) -> list[Price]:
    """The shipped ones, and those that somebody has set, also for later."""
    set_ = tx.all(SQL.list_prices, into=Price)
    return sorted(
        [*shipped(), *set_],
        key=lambda each: (each.provider, each.model, each.unit, began(each)),
    )


def put_prices(tx: Transaction, prices: Iterable[Price], *, actor: str) -> int:
    """All of them; how many."""
    listed = list(prices)
    for price in listed:
        tx.run(
            SQL.put_price,
            provider=price.provider,
            model=price.model,
            unit=price.unit,
            since=price.since,
            amount=str(price.amount),
            currency=price.currency,
            per=price.per,
            actor=actor,
        )
        tell(tx, actor=actor, verb="price.set", subject=shown(price))
    return len(listed)


def shown(price: Price) -> str:
    named = " ".join(filter(None, (price.provider, price.model, price.unit)))
    return f"{named}: {price.amount:f} {price.currency.upper()} per {price.per}"


def put_exchange(
    tx: Transaction, brl_per_usd: Decimal, since: datetime | None, *, actor: str
) -> None:
    told = format(brl_per_usd, "f")
    tx.run(SQL.put_exchange, brl_per_usd=told, since=since, actor=actor)
    tell(tx, actor=actor, verb="exchange.set", subject=f"1 USD is {told} BRL")


def exchange(tx: Transaction) -> Exchange | None:
    """As it is now; None: nobody has said."""
    return tx.one(SQL.find_exchange, into=Exchange)
