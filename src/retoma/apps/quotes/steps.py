"""The verbs of a quote: analysed once, searched once, priced page by page; resumed where it stopped.

The names of the steps are the document's checkpoints. What is paid for is begun only after the intent to
do so is committed, and never done again once its answer is.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

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
    PICTURE,
    Offer,
    Plan,
    ProcessingCheckpoint,
    Tested,
    Vehicle,
    no_key,
    result_of,
)
from retoma.codec import digest
from retoma.db import DatabaseError
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.isolation.off_loop import off_loop
from retoma.engine.rules.errors import LeaseLost, Permanent, Transient
from retoma.engine.rules.outcome import Unknown
from retoma.engine.rules.retry import Retry
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from retoma.words import say

if TYPE_CHECKING:  # an extra
    from retoma.chromium import Painter

T = TypeVar("T")
At = ProcessingCheckpoint
ANTHROPIC: Final = "quotes.anthropic"
SERPAPI: Final = "quotes.serpapi"
FIPE: Final = "quotes.fipe"
RECOVER: Final = "recover_stuck_quotes"
CLEAN_UP: Final = "cleanup_old_processing"
# Seconds for one picture, its wait for the browser included: a third of what an attempt may take.
DRAWING: Final = 300.0


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
        return await tools.retoma.runners.take_back(actor=f"job {ctx.job}")

    @job(name=CLEAN_UP, application="quotes")
    async def cleanup_old_processing(ctx: Context) -> int:
        actor = f"job {ctx.job}"
        await tools.retoma.runners.take_back(actor=actor)
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
                raise Permanent(say("the analysis names no vehicle"), code="bad_plan")
            found = await self._worth(ctx, meaning)
        else:
            if not isinstance(meaning, Plan):
                raise Permanent(say("the analysis is no plan"), code="bad_plan")
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
            raise Permanent(say("the search found nothing that fits"), code="no_results")
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
            return await _with_page(ctx, names[offer.url], page)

        tested = await self._rounds(ctx, chosen, test, at_once)
        found: dict[str, Any] | None = await ctx.step(At.PRICE_EXTRACTION_DONE, _found, tested)
        await self._reached(ctx, At.PRICE_EXTRACTION_DONE)
        if found is None:
            said = sorted({each.code or "" for each in tested})
            raise Permanent(
                say(
                    "none of {n} pages says a price: {codes}",
                    n=len(tested),
                    codes=", ".join(said),
                ),
                code="no_price",
            )
        return await self._with_pictures(ctx, tested, found)

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
                raise Transient(
                    say("{n} shops did not answer", n=len(asking)), code="shops_away"
                )
            fresh = fresh or not kept
            tested = await ctx.each(name, asking, test, key=key, concurrency=at_once)
            told |= {each.url: each for each in tested}
            priced = any(each.price is not None for each in told.values())
            asking = [] if priced else [each for each in asking if told[each.url].away]
            turn += 1
        return [told[each.url] for each in chosen]

    # — pictures of the pages —

    async def _with_pictures(
        self, ctx: Context, tested: Sequence[Tested], found: dict[str, Any]
    ) -> dict[str, Any]:
        """Draw each page that named a price, once every page and the price are saved; add to each
        source why it has no picture. A picture that fails or hangs costs the quote nothing else."""
        painter = await self._tools.painter()
        names = {each.url: each.evidence for each in tested if each.evidence is not None}
        if painter is None or not names:
            return found

        async def draw(name: str) -> str | None:
            try:
                async with asyncio.timeout(DRAWING):
                    return await self._draw(ctx, painter, name)
            except (DatabaseError, LeaseLost):
                raise
            except TimeoutError:
                return say("no screenshot within {seconds:g} s", seconds=DRAWING)
            except Exception as error:  # noqa: BLE001 — no picture is worth an attempt of the quote
                return str(error).partition("\n")[0][:200]

        drawn = await ctx.each(
            At.FINALIZATION,
            names.values(),
            draw,
            key=lambda name: f"{PICTURE}{digest(name)}",
            concurrency=len(names),
        )
        failed = {url: why for url, why in zip(names, drawn, strict=True) if why is not None}
        sources = [
            {**each, "no_picture": failed[each["url"]]} if each["url"] in failed else each
            for each in found["sources"]
        ]
        return {**found, "sources": sources}

    async def _draw(self, ctx: Context, painter: "Painter", name: str) -> str | None:
        """Draw a page as it was kept, without asking its shop again; say why there is no picture."""
        retoma = self._tools.retoma
        kept = {each.name: each for each in await retoma.evidence.list(ctx.job)}
        if f"{name}.png" in kept:
            return None  # drawn by an attempt that ended before it could save this step
        page = kept.get(f"{name}.html")
        if page is None:
            return say("the page was not kept")
        html = await retoma.evidence.read(page.sha256)
        picture = await painter.draw(await off_loop(len(html), html.decode, "utf-8", "replace"))
        if isinstance(picture, str):
            return picture
        await ctx.attach(f"{name}.png", picture, "image/png")
        return None

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
        why = say(
            "{column} was paid for before, in a shape that we do not know", column=error.column
        )
        raise Permanent(why, code="bad_payload") from error


def _key(key: Any, name: str) -> Secret:
    if key is None:
        raise Permanent(str(no_key(f"RETOMA_{name}_KEY")), code="no_key")
    return Secret(key.get_secret_value())


async def _with_page(ctx: Context, name: str, page: Page) -> Tested:
    """Keep the page that a price was read from, to look at and to draw."""
    size = len(page.html or b"")
    html = await off_loop(size, page.text)
    await ctx.attach(f"{name}.html", await off_loop(size, html.encode), "text/html")
    return replace(page.tested, evidence=name)


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
