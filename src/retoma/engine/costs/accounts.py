"""What people may ask and set of costs, budgets, prices and results that are used again."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from retoma.codec import Unstorable
from retoma.db import Database
from retoma.engine import store
from retoma.engine.rules.cost import NAME
from retoma.engine.rules.duration import instant
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import StepId
from retoma.engine.rules.money import decimal, money
from retoma.engine.rules.period import Per, per
from retoma.engine.rules.price import Price, new_price, read_list
from retoma.engine.store.budget import Budget, BudgetSeen
from retoma.engine.store.cost import MOST_DAYS, CostSeen, Scope
from retoma.engine.store.price import Exchange
from retoma.engine.store.reuse import ReuseSeen, Which, offer_of
from retoma.words import say

Opener = Callable[[], Awaitable[Database]]
MOST = 200  # on one page
RATES = (0.0001, 1_000_000)  # reais that a dollar may be


class Costs:
    """What was spent, and what was saved by steps that were kept or used again."""

    def __init__(self, opened: Opener, zone: str) -> None:
        self._opened = opened
        self._zone = zone

    async def of_job(self, job: int) -> list[CostSeen]:
        return await self._list(Scope.JOB, str(job))

    async def of_batch(self, batch: int) -> list[CostSeen]:
        return await self._list(Scope.BATCH, str(batch))

    async def by_kind(self, kind: str | None = None) -> list[CostSeen]:
        return await self._list(Scope.KIND, kind)

    async def by_application(self, application: str | None = None) -> list[CostSeen]:
        return await self._list(Scope.APPLICATION, application)

    async def by_provider(self, provider: str | None = None) -> list[CostSeen]:
        return await self._list(Scope.PROVIDER, provider)

    async def total(self) -> list[CostSeen]:
        """Of everything, each provider and model by itself."""
        return await self._list(Scope.ALL, "")

    async def by_day(
        self, days: int = 30, *, provider: str | None = None, application: str | None = None
    ) -> list[CostSeen]:
        """The last days, today's among them: of everything, one provider or one application."""
        if type(days) is not int or not 1 <= days <= MOST_DAYS:
            raise BadInput(
                say(
                    "{name} is a whole number from {least} to {most}, not {number!r}",
                    name="days",
                    least=1,
                    most=MOST_DAYS,
                    number=days,
                )
            )
        scope, name = Scope.ALL, ""
        if provider is not None:
            scope, name = Scope.PROVIDER, provider
        elif application is not None:
            scope, name = Scope.APPLICATION, application
        return await (await self._opened()).read(
            lambda tx: store.cost.list_days(tx, scope, self._zone, name=name, days=days)
        )

    async def _list(self, scope: Scope, name: str | None) -> list[CostSeen]:
        return await (await self._opened()).read(
            lambda tx: store.cost.list_costs(tx, scope, self._zone, name=name)
        )


class BudgetsDesk:
    """How much may be spent before jobs wait."""

    def __init__(self, opened: Opener, actor: str, zone: str) -> None:
        self._opened = opened
        self._actor = actor
        self._zone = zone

    async def set(
        self,
        amount: str,
        *,
        batch: int | None = None,
        provider: str | None = None,
        application: str | None = None,
        per: Per | str | None = None,
        actor: str | None = None,
    ) -> BudgetSeen:
        """`set("25 USD", batch=7)`, or `set("300 BRL", provider="anthropic", per="day")`.

        Whoever waits for it goes on by itself where something is left of it now.
        """
        wanted = money(say("a budget"), amount)
        scope, name, length = _account(batch, provider, application, per)
        budget = Budget(scope=scope, name=name, per=length, money=wanted)

        def write(tx: Any) -> BudgetSeen:
            if batch is not None:
                store.batch_exists(tx, batch)
            return store.budget.put_budget(tx, budget, self._zone, actor=actor or self._actor)

        return await (await self._opened()).write(write, verb="put_budget")

    async def remove(
        self,
        *,
        batch: int | None = None,
        provider: str | None = None,
        application: str | None = None,
        per: Per | str | None = None,
        actor: str | None = None,
    ) -> None:
        """No bound any more; whoever waits for it goes on."""
        scope, name, length = _account(batch, provider, application, per)
        gate = store.budget.gate(scope, name, length)
        await (await self._opened()).write(
            lambda tx: store.budget.remove_budget(tx, gate, actor=actor or self._actor),
            verb="remove_budget",
        )

    async def of_batch(self, batch: int) -> BudgetSeen | None:
        """None: it may spend what it likes."""
        gate = store.budget.gate(Scope.BATCH, str(batch), Per.WHOLE)
        return await (await self._opened()).read(
            lambda tx: store.budget.look_up(tx, gate, self._zone)
        )

    async def list(self, *, after: str = "", limit: int = 50) -> list[BudgetSeen]:
        """By the names of their gates, a page at a time; how each stands in its period."""
        most = _page(limit)
        return await (await self._opened()).read(
            lambda tx: store.budget.list_budgets(tx, self._zone, after=after, limit=most)
        )


class Prices:
    """What units cost, and what a dollar is worth."""

    def __init__(self, opened: Opener, actor: str) -> None:
        self._opened = opened
        self._actor = actor

    async def set(
        self,
        provider: str,
        unit: str,
        price: Any,
        *,
        currency: str = "USD",
        model: str = "",
        per: int = 1,
        since: datetime | None = None,
        actor: str | None = None,
    ) -> None:
        """So much for `per` units, from now or from `since` on; without a model for all of them."""
        who = actor or self._actor
        made = new_price(
            provider=provider,
            unit=unit,
            price=price,
            currency_=currency,
            model=model,
            per=per,
            since=since,
            by=who,
        )
        await self._put([made], who)

    async def read_in(self, text: str, *, actor: str | None = None) -> int:
        """A list in TOML, all of it or nothing; how many prices it has."""
        who = actor or self._actor
        return await self._put(read_list(text, who), who)

    async def list(self) -> Sequence[Price]:
        """The shipped ones and those that were set, also for later."""
        return await (await self._opened()).read(store.price.list_prices)

    async def set_exchange(
        self, brl_per_usd: Any, *, since: datetime | None = None, actor: str | None = None
    ) -> None:
        """So many reais are a dollar, from now or from `since` on."""
        rate = decimal(say("an exchange rate"), brl_per_usd)
        least, most = RATES
        if not least <= rate <= most:
            raise BadInput(
                say(
                    "{name} is from {least} to {most}, not {amount!r}",
                    name=say("an exchange rate"),
                    least=least,
                    most=most,
                    amount=brl_per_usd,
                )
            )
        at, who = None if since is None else instant(since), actor or self._actor
        await (await self._opened()).write(
            lambda tx: store.price.put_exchange(tx, rate, at, actor=who), verb="put_exchange"
        )

    async def exchange(self) -> Exchange | None:
        """As it is now; None: nobody has said."""
        return await (await self._opened()).read(store.price.exchange)

    async def _put(self, prices: Sequence[Price], actor: str) -> int:
        return await (await self._opened()).write(
            lambda tx: store.price.put_prices(tx, prices, actor=actor), verb="put_prices"
        )


class Reuse:
    """Results that other jobs may use again."""

    def __init__(self, opened: Opener, actor: str) -> None:
        self._opened = opened
        self._actor = actor

    async def list(
        self, *, kind: str | None = None, step: str | None = None, limit: int = 50
    ) -> Sequence[ReuseSeen]:
        """The newest first."""
        most = _page(limit)
        return await (await self._opened()).read(
            lambda tx: store.reuse.list_reuse(tx, kind=kind, step=step, limit=most)
        )

    async def forget(
        self,
        *,
        kind: str | None = None,
        step: str | None = None,
        version: int | None = None,
        key: Any = None,
        before: datetime | None = None,
        everything: bool = False,
        actor: str | None = None,
    ) -> int:
        """Those that fit all that is given are made anew when they are next wanted; how many.

        What jobs have already read stays theirs. `everything=True` where nothing is given.
        """
        given = (kind, step, version, key, before)
        if everything == any(each is not None for each in given):
            raise BadInput(
                say("say what is to be forgotten: a kind, step, key or date; or everything")
            )
        which = Which(
            kind=kind,
            step=step,
            version=version,
            key_hash=None if key is None else _key_hash(key),
            before=None if before is None else instant(before),
        )
        who, gone = actor or self._actor, 0
        database = await self._opened()
        while True:
            bite = await database.write(
                lambda tx: store.reuse.forget(tx, which, actor=who), verb="forget"
            )
            gone += bite
            if bite < store.reuse.BITE:
                return gone


def _account(
    batch: int | None, provider: str | None, application: str | None, length: Per | str | None
) -> tuple[Scope, str, Per]:
    """Whose budget it is, and by what length of time it counts."""
    given = {
        Scope.BATCH: batch,
        Scope.PROVIDER: provider,
        Scope.APPLICATION: application,
    }
    named = {scope: name for scope, name in given.items() if name is not None}
    if len(named) != 1:
        raise BadInput(say("a budget is of one batch, one provider or one application"))
    [(scope, name)] = named.items()
    if scope is Scope.BATCH:
        if length is not None:
            raise BadInput(say("the budget of a batch is for all of it, not per day or month"))
        if type(name) is not int:
            raise BadInput(say("a batch is named by its number, not {name!r}", name=name))
        return scope, str(name), Per.WHOLE
    if not isinstance(name, str) or not 0 < len(name) <= NAME or not name.isprintable():
        raise BadInput(
            say(
                "a {what} has 1 to {most} printable characters: {text!r}",
                what=str(scope),
                most=NAME,
                text=name,
            )
        )
    told = per(length)
    if told is Per.WHOLE:
        raise BadInput(
            say("a budget is per {all}, not {text!r}", all="day, month", text=str(told))
        )
    return scope, name, told


def _key_hash(key: Any) -> str:
    try:
        return offer_of("", StepId(""), key).key_hash
    except Unstorable as error:
        raise BadInput(
            say("this cannot be the key of a result: {error}", error=error)
        ) from error


def _page(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise BadInput(
            say(
                "{name} is a whole number from {least} to {most}, not {number!r}",
                name="limit",
                least=1,
                most=MOST,
                number=limit,
            )
        )
    return limit
