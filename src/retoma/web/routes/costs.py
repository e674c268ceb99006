"""`/api/costs`, `/api/budgets`, `/api/prices`: what work costs, and how much of it may be spent."""

from typing import Annotated

from fastapi import Query

from retoma.engine.rules.cost import NAME
from retoma.services import money
from retoma.services.money import ACCOUNTS, MOST_DAYS, BudgetShown, CostSeen
from retoma.web.cursor import Cursor
from retoma.web.house import AHouse
from retoma.web.money import (
    CostShown,
    ExchangeShown,
    NewBudget,
    NewExchange,
    NewPrice,
    PriceShown,
    Whose,
    cost_shown,
    price_shown,
)
from retoma.web.route import router
from retoma.web.sign_in import Admin, Operator, Viewer
from retoma.web.wire import BatchId, JobId, Limit, NextPage, PageOf

routes = router("costs")

By = Annotated[
    str, Query(pattern=f"^({'|'.join(ACCOUNTS)})$", description="What it is told by.")
]
Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="With `by=day`: how many.")]
ProviderOf = Annotated[
    str | None, Query(min_length=1, max_length=NAME, description="Of this provider alone.")
]


@routes.get("/api/costs")
async def list_costs(
    _: Viewer,
    house: AHouse,
    by: By = "provider",
    days: Days = 30,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[CostShown]:
    """What was spent and saved, by provider, kind, application or day; each model by itself."""
    stamp = Cursor("costs", [by, days])
    after = tuple(stamp.read(cursor, str, str, str, str) or ())
    seen = await money.show_costs(house.retoma, by, days)
    left = [each for each in seen if _place(each) > after]
    shown = left[:limit]
    following = _place(shown[-1]) if len(left) > limit else (None,)
    return PageOf(items=[cost_shown(each) for each in shown], next=stamp.write(*following))


def _place(seen: CostSeen) -> tuple[str, str, str, str]:
    return seen.name, seen.period, seen.provider, seen.model


@routes.get("/api/jobs/{job}/costs")
async def costs_of_job(job: JobId, _: Viewer, house: AHouse) -> list[CostShown]:
    """What this job has cost and saved, each provider and model by itself."""
    await house.retoma.get(job)
    return [cost_shown(each) for each in (await money.show_costs(house.retoma, job=job))[:200]]


@routes.get("/api/batches/{batch}/costs")
async def costs_of_batch(batch: BatchId, _: Viewer, house: AHouse) -> list[CostShown]:
    """What the jobs of this batch have cost and saved together."""
    await house.retoma.batches.get(batch)
    return [
        cost_shown(each) for each in (await money.show_costs(house.retoma, batch=batch))[:200]
    ]


# — budgets —


@routes.get("/api/budgets")
async def list_budgets(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[BudgetShown]:
    """How much may be spent, and how each budget stands; by the names of their gates."""
    stamp = Cursor("budgets", None)
    [after] = stamp.read(cursor, str) or [""]
    shown = await money.list_budgets(house.retoma, after, limit)
    return PageOf(
        items=shown, next=stamp.write(shown[-1].gate if len(shown) == limit else None)
    )


@routes.put("/api/budgets")
async def set_budget(body: NewBudget, who: Operator, house: AHouse) -> BudgetShown:
    """Let so much be spent; whoever waits for it goes on where something is left of it now."""
    return await money.set_budget(house.retoma, **body.model_dump(), actor=who.name)


@routes.post("/api/budgets/remove", status_code=204)
async def remove_budget(body: Whose, who: Operator, house: AHouse) -> None:
    """No bound any more; whoever waits for it goes on."""
    await money.remove_budget(house.retoma, **body.model_dump(), actor=who.name)


# — prices —


@routes.get("/api/prices")
async def list_prices(
    _: Viewer,
    house: AHouse,
    provider: ProviderOf = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[PriceShown]:
    """What units cost: the shipped list, and what was set, also for later."""
    stamp = Cursor("prices", provider)
    [begin] = stamp.read(cursor, int) or [0]
    seen = (await money.list_prices(house.retoma, provider)).prices
    end = max(begin, 0) + limit
    shown = [price_shown(each) for each in seen[max(begin, 0) : end]]
    return PageOf(items=shown, next=stamp.write(end if len(seen) > end else None))


@routes.put("/api/prices")
async def set_price(body: NewPrice, who: Admin, house: AHouse) -> NewPrice:
    """So much for so many units, from now or from an instant on; without a model for all of them."""
    await money.set_price(house.retoma, house.settings, **body.model_dump(), actor=who.name)
    return body


@routes.get("/api/exchange")
async def show_exchange(_: Viewer, house: AHouse) -> ExchangeShown:
    """What a dollar is in reais now."""
    rate = (await money.list_prices(house.retoma)).exchange
    if rate is None:
        return ExchangeShown(brl_per_usd=None)
    return ExchangeShown(brl_per_usd=f"{rate.brl_per_usd:f}", since=rate.since, by=rate.by)


@routes.put("/api/exchange")
async def set_exchange(body: NewExchange, who: Admin, house: AHouse) -> ExchangeShown:
    """So many reais are a dollar, from now or from an instant on."""
    await money.set_exchange(
        house.retoma, house.settings, body.brl_per_usd, body.since, actor=who.name
    )
    return await show_exchange(who, house)
