"""How money looks on the wire: what was spent and saved, budgets, prices. Amounts are text, never floats."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field, StrictInt, StrictStr, model_validator

from retoma.engine.rules.cost import NAME
from retoma.engine.rules.money import NANOS, plain
from retoma.engine.rules.price import MOST_PER, Price
from retoma.services.money import CostSeen, Total
from retoma.web.wire import Body, Id, Instant, Name, Shown
from retoma.words import say

Amount = Annotated[StrictStr, Field(min_length=1, max_length=40)]
Account = Annotated[Name, Field(max_length=NAME)]


class TotalShown(Shown):
    """What it came to, each currency by itself."""

    usd: str = Field(examples=["0.48"])
    brl: str
    units: dict[str, int] = Field(examples=[{"input_tokens": 812}])
    unpriced: int = Field(description="Charges whose money nobody knows; they are not in it.")


class CostShown(Shown):
    """What one account came to in one period, for one provider and model of it."""

    name: str = Field(description="Of the job, batch, kind, application or provider.")
    period: str = Field(description="The day; empty: all of it.")
    provider: str
    model: str
    spent: TotalShown
    saved: TotalShown = Field(description="Not paid again, because a step was kept.")


class CostsShown(Shown):
    """What one account came to, of all providers together and of each."""

    spent: TotalShown
    saved: TotalShown = Field(description="Not paid again, because a step was kept.")
    by_provider: dict[str, TotalShown] = Field(description="What of it was spent with whom.")


def costs_shown(seen: Sequence[CostSeen]) -> CostsShown:
    providers = sorted({each.provider for each in seen})
    return CostsShown(
        spent=_total(Total.sum(each.spent for each in seen)),
        saved=_total(Total.sum(each.saved for each in seen)),
        by_provider={
            name: _total(Total.sum(each.spent for each in seen if each.provider == name))
            for name in providers
        },
    )


def cost_shown(seen: CostSeen) -> CostShown:
    return CostShown(
        name=seen.name,
        period=seen.period,
        provider=seen.provider,
        model=seen.model,
        spent=_total(seen.spent),
        saved=_total(seen.saved),
    )


def _total(total: Total) -> TotalShown:
    usd, brl = (plain(int(each * NANOS)) for each in (total.usd, total.brl))
    return TotalShown(usd=usd, brl=brl, units=total.units, unpriced=total.unpriced)


class Whose(Body):
    """Whose budget: of one batch; or of one provider or application in each day or month."""

    batch: Id | None = None
    provider: Account | None = None
    application: Account | None = None
    per: Annotated[StrictStr, Field(pattern="^(day|month)$")] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> "Whose":
        named = [each for each in (self.batch, self.provider, self.application) if each]
        if len(named) != 1:
            raise ValueError(say("a budget is of one batch, one provider or one application"))
        if (self.batch is None) == (self.per is None):
            raise ValueError(
                say("the budget of a batch is for all of it, any other is per day or month")
            )
        return self


class NewBudget(Whose):
    """How much may be spent."""

    amount: Amount = Field(examples=["25 USD"])


class PriceShown(Shown):
    """So much money for so many units, from an instant on."""

    provider: str
    model: str = Field(description="Empty: of all models.")
    unit: str
    price: str
    currency: str
    per: int
    since: datetime | None
    by: str


def price_shown(price: Price) -> PriceShown:
    return PriceShown(
        provider=price.provider,
        model=price.model,
        unit=price.unit,
        price=f"{price.amount:f}",
        currency=price.currency.upper(),
        per=price.per,
        since=price.since,
        by=price.by,
    )


class NewPrice(Body):
    """What units cost from now, or from an instant, on."""

    provider: Account
    unit: Annotated[StrictStr, Field(min_length=1, max_length=100, examples=["input_tokens"])]
    price: Amount = Field(examples=["3.00"])
    currency: Annotated[StrictStr, Field(pattern="^(USD|BRL)$")] = "USD"
    model: Annotated[StrictStr, Field(max_length=NAME)] = ""
    per: Annotated[StrictInt, Field(ge=1, le=MOST_PER)] = 1
    since: Instant | None = None


class ExchangeShown(Shown):
    """What a dollar is in reais; null where nobody has said."""

    brl_per_usd: str | None
    since: datetime | None = None
    by: str | None = None


class NewExchange(Body):
    """What a dollar is from now, or from an instant, on."""

    brl_per_usd: Amount = Field(examples=["5.40"])
    since: Instant | None = None
