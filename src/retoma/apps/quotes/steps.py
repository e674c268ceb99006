"""The verbs of a quote: analysed once, searched once, priced page by page; resumed where it stopped.

The names of the steps are the document's checkpoints. What is paid for is begun only after the intent to
do so is committed, and never done again once its answer is.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from retoma.apps.quotes import store
from retoma.apps.quotes.before import Before, Unreadable, read_before
from retoma.apps.quotes.cleanup import clean_up
from retoma.apps.quotes.clients import Analyst, Asked, Fipe, Shopping, Shops
from retoma.apps.quotes.clients.shopping import chosen_of, offers_of
from retoma.apps.quotes.clients.shops import Page, shops_policy
from retoma.apps.quotes.model import (
    CODES,
    CURRENCY,
    KIND,
    PERCENT,
    Offer,
    Plan,
    ProcessingCheckpoint,
    Tested,
    Vehicle,
    result_of,
)
from retoma.apps.tools import Tools
from retoma.codec import digest
from retoma.engine.context import Context
from retoma.engine.errors import Permanent, Transient
from retoma.engine.kind import Kind, job
from retoma.engine.off_loop import off_loop
from retoma.engine.outcome import Unknown
from retoma.engine.retry import Retry
from retoma.secret import Secret

T = TypeVar("T")
At = ProcessingCheckpoint
ANTHROPIC: Final = "quotes.anthropic"
SERPAPI: Final = "quotes.serpapi"
FIPE: Final = "quotes.fipe"
RECOVER: Final = "recover_stuck_quotes"
CLEAN_UP: Final = "cleanup_old_processing"


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    quotes = Quotes(tools)

    @job(
        name=KIND,
        application="quotes",
        retry=Retry(attempts=5, base=5.0, cap=300.0),
        codes=CODES,
        timeout="15m",
    )
    async def quote(ctx: Context, quote: int) -> Any:
        return await quotes.tell(ctx, quote)

    @job(name=RECOVER, application="quotes")
    async def recover_stuck_quotes(ctx: Context) -> int:
        return await tools.retoma.take_back(actor=f"job {ctx.job}")

    @job(name=CLEAN_UP, application="quotes")
    async def cleanup_old_processing(ctx: Context) -> int:
        actor = f"job {ctx.job}"
        await tools.retoma.take_back(actor=actor)
        done = await clean_up(tools.retoma, actor=actor)
        return len(done.waiting) + len(done.parked)

    made: list[Any] = [quote, recover_stuck_quotes, cleanup_old_processing]
    return [each.kind for each in made]


class Quotes:
    """The story of a quote."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._analyst: Analyst | None = None

    async def tell(self, ctx: Context, quote: int) -> dict[str, Any]:
        database = await self._tools.retoma.database()
        wanted = await database.read(lambda tx: store.wanted_of(tx, quote))
        before = _before(wanted)
        asked = await self._analysed(ctx, wanted, before.asked)
        meaning = asked.meaning()
        # Which way it goes is kept: a later version of ours that reads the answer otherwise changes no
        # quote that is under way.
        branch = await ctx.step(At.AI_ANALYSIS_DONE, _branch_of, asked.tool)
        await self._reached(ctx, At.AI_ANALYSIS_DONE)
        if branch == "vehicle":
            if not isinstance(meaning, Vehicle):
                raise Permanent("the analysis names no vehicle", code="bad_plan")
            found = await self._worth(ctx, meaning)
        else:
            if not isinstance(meaning, Plan):
                raise Permanent("the analysis is no plan", code="bad_plan")
            found = await self._priced(ctx, meaning, before)
        return await ctx.step(At.FINALIZATION, _final, branch, found)

    # — what it means —

    async def _analysed(self, ctx: Context, wanted: store.Wanted, kept: Asked | None) -> Asked:
        def used(asked: int, answered: int) -> None:
            ctx.cost(
                provider="anthropic",
                model=self._tools.settings.anthropic_model,
                input_tokens=asked,
                output_tokens=answered,
            )

        async def analyse() -> Asked:
            if kept is not None:
                return kept  # paid for before it came to us
            return await self._analysts().analyse(wanted.description, wanted.kind, used)

        try:
            return await self._paid(ctx, At.AI_ANALYSIS_START, ANTHROPIC, analyse)
        except Permanent as error:
            if error.code != "bad_plan":
                raise
            # Asked again it may answer better. Said out here: the breaker counts what is transient.
            raise Transient(str(error), code=error.code) from error

    def _analysts(self) -> Analyst:
        if self._analyst is None:
            settings = self._tools.settings
            key = _key(settings.anthropic_key, "ANTHROPIC")
            self._analyst = Analyst(
                self._tools.out, settings.anthropic_url, key, settings.anthropic_model
            )
        return self._analyst

    # — a vehicle —

    async def _worth(self, ctx: Context, vehicle: Vehicle) -> dict[str, Any]:
        fipe = Fipe(self._tools.out, self._tools.settings.fipe_url)

        async def look_up() -> dict[str, Any]:
            found = await fipe.worth(vehicle)
            ctx.cost(provider="fipe", calls=4, usd=0)
            return found

        if ctx.kept(At.FIPE_SEARCH):
            return await ctx.step(At.FIPE_SEARCH, look_up)
        async with ctx.breaker(FIPE), ctx.rate(FIPE, 4, adaptive=True):
            return await ctx.step(At.FIPE_SEARCH, look_up)

    # — a product —

    async def _priced(self, ctx: Context, plan: Plan, before: Before) -> dict[str, Any]:
        async def search() -> dict[str, Any]:
            if before.found is not None:
                return before.found
            settings = self._tools.settings
            key = _key(settings.serpapi_key, "SERPAPI")
            told = await Shopping(self._tools.out, settings.serpapi_url, key).search(plan)
            ctx.cost(provider="serpapi", searches=1)
            return told

        told = await self._paid(ctx, At.SHOPPING_SEARCH_START, SERPAPI, search)
        offers = await ctx.step(At.SHOPPING_SEARCH_DONE, _offers, told, plan)
        if not offers and not before.tested:
            raise Permanent("the search found nothing that fits", code="no_results")
        await self._reached(ctx, At.SHOPPING_SEARCH_DONE)
        return await self._tested(ctx, offers, before)

    async def _tested(
        self, ctx: Context, offers: list[Offer], before: Before
    ) -> dict[str, Any]:
        """Every page is a step: what was tested is never tested again, and the list only grows."""
        settings = self._tools.settings
        shops = Shops(self._tools.out, shops_policy(settings.shop_hosts), ctx.read_apart)
        most, at_once = await self._knob("max_products"), await self._knob("stores_at_once")
        chosen = await ctx.step(At.PRICE_EXTRACTION_START, _chosen, offers, most, before.offers)

        names = _names(chosen)

        async def test(offer: Offer) -> Tested:
            if offer.url in before.tested:
                return before.tested[offer.url]
            page = await shops.test(offer)
            if page.tested.price is None or page.html is None:
                return page.tested
            return await self._shown(ctx, names[offer.url], page)

        tested = await self._rounds(ctx, chosen, test, at_once)
        found: dict[str, Any] | None = await ctx.step(At.PRICE_EXTRACTION_DONE, _found, tested)
        await self._reached(ctx, At.PRICE_EXTRACTION_DONE)
        if found is None:
            said = sorted({each.code or "" for each in tested})
            raise Permanent(
                f"none of {len(tested)} pages says a price: {said}", code="no_price"
            )
        return found

    async def _rounds(
        self,
        ctx: Context,
        chosen: list[Offer],
        test: Callable[[Offer], Awaitable[Tested]],
        at_once: int,
    ) -> list[Tested]:
        """All of them. One shop that is away is passed over; where nobody says a price, and some were
        away, those are asked again: a network that was down for a minute ends no quote."""
        told: dict[str, Tested] = {}
        asking, turn, fresh = chosen, 1, False
        while asking:
            key = partial(_turn_key, turn)
            name = At.PRICE_EXTRACTION_PROGRESS
            kept = all(ctx.kept(name, key=key(each)) for each in asking)
            if fresh and not kept:
                raise Transient(f"{len(asking)} shops did not answer", code="shops_away")
            fresh = fresh or not kept
            tested = await ctx.each(name, asking, test, key=key, concurrency=at_once)
            told |= {each.url: each for each in tested}
            priced = any(each.price is not None for each in told.values())
            asking = [] if priced else [each for each in asking if told[each.url].away]
            turn += 1
        return [told[each.url] for each in chosen]

    async def _shown(self, ctx: Context, name: str, page: Page) -> Tested:
        """What a price was read from, to look at; a picture that fails harms no quote."""
        tested, size = page.tested, len(page.html or b"")
        html = await off_loop(size, page.text)
        await ctx.attach(f"{name}.html", await off_loop(size, html.encode), "text/html")
        painter = await self._tools.painter()
        if painter is None:
            return replace(tested, evidence=name)
        picture = await painter.draw(html)
        if isinstance(picture, str):
            return replace(tested, evidence=name, no_picture=picture)
        await ctx.attach(f"{name}.png", picture, "image/png")
        return replace(tested, evidence=name)

    # — how —

    async def _paid(
        self,
        ctx: Context,
        name: ProcessingCheckpoint,
        service: str,
        call: Callable[[], Awaitable[T]],
    ) -> T:
        """Within the rate that all runners share; done again only where nobody knows whether it was."""
        within = nullcontext() if ctx.kept(name) else ctx.rate(service, adaptive=True)
        provider = service.partition(".")[2]
        async with ctx.breaker(service), within:
            return await ctx.step(name, call, once=True, unknown=Unknown.REPEAT, pays=provider)

    async def _knob(self, name: str) -> Any:
        return (await self._tools.retoma.knobs.get(f"quotes.{name}")).value

    async def _reached(self, ctx: Context, at: ProcessingCheckpoint) -> None:
        await ctx.progress(PERCENT[at] / 100)


def _before(wanted: store.Wanted) -> Before:
    try:
        return read_before(wanted.was)
    except Unreadable as error:
        why = f"{error.column} was paid for before, in a shape that we do not know"
        raise Permanent(why, code="bad_payload") from error


def _key(key: Any, name: str) -> Secret:
    if key is None:
        raise Permanent(f"RETOMA_{name}_KEY says nothing", code="no_key")
    return Secret(key.get_secret_value())


async def _branch_of(tool: str) -> str:
    return "vehicle" if tool == "vehicle" else "product"


async def _offers(told: dict[str, Any], plan: Plan) -> list[Offer]:
    return offers_of(told, plan)


async def _chosen(offers: list[Offer], most: int, before: list[Offer]) -> list[Offer]:
    """What was tested before is never left out; others fill up what is left of `most`."""
    known = {each.url for each in before}
    others = [each for each in offers if each.url not in known]
    return [*before, *chosen_of(others, max(most - len(before), 0))]


def _turn_key(turn: int, offer: Offer) -> str:
    plain = digest(offer.url)
    return plain if turn == 1 else f"{plain}.{turn}"


def _names(offers: Sequence[Offer]) -> dict[str, str]:
    """By their addresses: each is called as its shop is, a second one of the same with its number."""
    met: Counter[str] = Counter()
    names: dict[str, str] = {}
    for each in offers:
        met[each.store] += 1
        many = met[each.store] > 1
        names[each.url] = f"{each.store} {met[each.store]}" if many else each.store
    return names


async def _found(tested: list[Tested]) -> dict[str, Any] | None:
    return result_of(tested) if any(each.price is not None for each in tested) else None


async def _final(branch: str, found: dict[str, Any]) -> dict[str, Any]:
    if branch == "vehicle":
        source = {"store": "FIPE", "price": found["price"], "used": True, **found}
        told = {"price": found["price"], "currency": CURRENCY, "method": "fipe"}
        return {"branch": branch, **told, "sources": [source]}
    return {"branch": branch, **found}
