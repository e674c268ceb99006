"""Pictures of every page, in both themes: `python -m tests.web.screens FOLDER [PAGE …] [--look LOOK …]`. Somebody
looks at them. A look is a theme and a width: `light-tablet`, `dark-phone`.

The house they show has a bit of everything: work that runs, waits, is parked, died of several things; names
that are too long and full of markup; a million of something. The applications are shown in the world of
`retoma up`, at every width; and on their first day, with nothing in them.

`python -m tests.web.screens docs/images readme` takes the two that the README shows.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from retoma import Context, Park, Permanent, Retoma, Retry, Transient
from retoma.cli.serve import Server, prepare
from retoma.manifest import Application
from retoma.web.pages.kit import TOUR
from tests.web.aids import PATIENT, beside, link_into, set_up
from tests.web.chromium import browser, context, folder
from tests.web.dressed import PNG, WORD, dress, furnish_last, furnish_more
from tests.web.living import DETAILS, FOUND, LISTS, addresses, first_day, living

House = tuple[str, str, dict[str, Any]]  # where it is, a link into it, and its ids
LONG = "cotação de peças " + "<b>muito</b> longa " * 9
SNAPSHOT = "<h1>Loja fechada</h1><script>alert(1)</script>"
SLOTS = 3
PAGES = {
    "board": "/",
    "jobs": "/jobs",
    "jobs-empty": "/jobs?code=NOBODY",
    "job-dead": "/jobs/{dead}",
    "job-running": "/jobs/{running}",
    "job-parked": "/jobs/{parked}",
    "job-evidence": "/jobs/{dead}?evidence={page}",
    "batches": "/batches",
    "batch": "/batches/{batch}",
    "batch-running": "/batches/{slow}",
    "dead": "/dead",
    "runners": "/runners",
    "pools": "/pools",
    "pool": "/pools?pool=proxies",
    "gates": "/gates",
    "pauses": "/pauses",
    "schedules": "/schedules",
    "audit": "/audit",
    "audit-empty": "/audit?actor=Nobody",
    "people": "/people",
    "settings": "/settings",
    "disk": "/disk",
    "problem": "/jobs?state=nonsense",
    "missing": "/jobs/99999",
}
MORE = {  # for who looks: axe has seen all that these are made of
    "board-day": "/?last=1d",
    "job-waiting": "/jobs/{waiting}",
    "job-scheduled": "/jobs/{scheduled}",
    "job-done": "/jobs/{done}",
    "job-skipped": "/jobs/{skipped}",
    "job-canceled": "/jobs/{canceled}",
    "job-long": "/jobs/{long}",
    "job-broken": "/jobs/{broken}",
    "job-picture": "/jobs/{dead}?evidence={picture}",
    "job-json": "/jobs/{dead}?evidence={answer}",
    "batch-million": "/batches/{million}",
    "batch-stopped": "/batches/{stopped}",
    "batch-paused": "/batches/{paused}",
    "dead-empty": "/dead?code=NOBODY",
    "pool-long": "/pools?pool={word}",
}
EMPTY = (
    "/",
    "/jobs",
    "/batches",
    "/dead",
    "/runners",
    "/pools",
    "/gates",
    "/schedules",
    "/audit",
    *(address for name, address in LISTS.items() if not name.startswith("board")),
)
WIDTHS = {"wide": 1440, "laptop": 1024, "tablet": 768, "phone": 390}
HEIGHT = 900
THEMES = ("light", "dark")
ON_PHONES = ("board", "ads-mission")  # of the applications; tests see that the others fit
README = {"board-light": ("board", "light", 860), "mission-dark": ("ads-mission", "dark", 560)}
READY = 40_000  # milliseconds: until a world has something to tell of its last minutes
LOOKS = [f"{theme}-{width}" for width in WIDTHS for theme in THEMES]
ENGINE_LOOKS = [look for look in LOOKS if look.endswith(("-wide", "-phone"))]


def stories(url: str, hostile: str) -> Retoma:
    app = Retoma(url, timezone="America/Sao_Paulo")

    @app.job(name="quotes.price", retry=Retry(attempts=2, base=0, cap=0))
    async def price(ctx: Context, wanted: dict[str, Any]) -> Any:
        await ctx.step("ai_analysis", _plan, wanted.get("product", ""))
        ctx.cost(provider="anthropic", model="claude", usd="0.0123", input_tokens=1_200)
        await ctx.step("shopping_search", _offers)
        if "dies" in wanted:
            await ctx.attach("page.html", hostile.encode())
            await ctx.attach("screen.png", PNG)
            await ctx.attach("answer.json", b'{"status": 503, "retry": null}')
            raise Permanent(wanted["dies"], code=wanted["code"])
        if "breaks" in wanted:
            raise RuntimeError(wanted["breaks"])
        if "fails" in wanted:
            raise Transient(wanted["fails"], code="ERROR502")
        if "parks" in wanted:
            return Park(wanted["parks"])
        return {"price": 42.5, "shop": wanted.get("product")}

    @app.job(name="documents.classify")
    async def slow(ctx: Context, n: int) -> int:
        await ctx.step("read", _offers)
        await ctx.progress(0.4, f"page {n} of 12")
        await asyncio.Event().wait()
        return n

    @app.job(name="matches.scrape")
    async def later(ctx: Context, n: int) -> int:
        return n

    app.schedule("rodada da semana", "matches.scrape", cron="0 6 * * 1", payload=1)
    app.schedule("de hora em hora", "matches.scrape", cron="5 * * * *", payload=2)
    app.schedule(WORD[:100], "matches.scrape", cron="*/5 8-18 1,15 1-6 1-5", payload=3)
    return app


async def _plan(product: str) -> dict[str, Any]:
    return {"product": product, "terms": ["a", "b"], "confidence": 0.93}


async def _offers() -> list[int]:
    return [1, 2, 3]


async def furnish(app: Retoma) -> dict[str, Any]:
    """Everything a page can show; the ids that the addresses need."""
    goods = [{"product": f"peça {n}"} for n in range(30)]
    bad = [
        {"product": "x", "dies": f"the shop {n} has closed since Monday", "code": "ERROR202"}
        for n in range(9)
    ]
    odd = [{"product": "y", "dies": LONG, "code": "LONG_" + "CODE_" * 18}]
    await app.submit_many("quotes.price", goods, name="lote-41 · peças de janeiro")
    batch = await app.submit_many("quotes.price", [*goods, *bad, *odd], name=LONG)
    await app.submit("quotes.price", {"fails": "answered 503 twice"}, key=LONG[:190])
    parked = await app.submit("quotes.price", {"parks": "Ana decides about the price"})
    ended = await app.submit_many("matches.scrape", range(5), name="rodada 7")
    await app.run(until_idle=True, slots=4)
    await app.submit("matches.scrape", 1, delay="3h")
    canceled = await app.submit("matches.scrape", 2)
    await app.cancel(canceled.id, actor="Ana")
    await (await app.batches.get(ended.id)).again(actor="Ana")
    slow = await app.submit_many("documents.classify", range(12), name="projeto 9")
    await _hold_back(app)
    [dead, *_] = [job for job in await app.dead.list(limit=50) if job.batch == batch.id][-1:]
    evidence = await app.evidence.list(dead.id)
    [page, picture, answer] = (
        next(each.sha256 for each in evidence if each.name == name)
        for name in ("page.html", "screen.png", "answer.json")
    )
    return {
        "dead": dead.id,
        "parked": parked.id,
        "canceled": canceled.id,
        "batch": batch.id,
        "slow": slow.id,
        "page": page,
        "picture": picture,
        "answer": answer,
        "word": WORD,
    }


async def _hold_back(app: Retoma) -> None:
    """Pools, breakers, limits and rates: short, long, full, switched off."""
    proxies = {f"proxy-{n:02}.example.org": n for n in range(12)}
    await app.pools.declare(
        "proxies", {**proxies, LONG: 0}, off_after=3, cool_down=30, use_cap=1_000_000
    )
    await app.pools.declare(LONG[:150], {})
    await app.pools.switch("proxies", ["proxy-03.example.org"], on=False, reason=LONG)
    await app.breakers.declare("shopping", threshold=5)
    await app.breakers.declare(LONG[:150], threshold=3, rest=600)
    await app.breakers.open("shopping", "the provider is down since Monday", actor="Ana")
    await app.rates.set("shopping.search", 2.5)
    await app.rates.set(LONG[:150], 0.01, burst=1_000_000)
    await app.limits.set("user 7", 3, actor="Ana")
    await app.limits.set(LONG[:150], 1_000_000, actor="Ana")


@contextmanager
def house(url: str, *, hostile: str = SNAPSHOT, more: bool = False) -> Iterator[House]:
    """A server and a runner that holds some jobs."""
    with beside(_furnished(url, hostile, more=more)) as made:
        yield made


@asynccontextmanager
async def _furnished(
    url: str, hostile: str, *, more: bool
) -> AsyncIterator[tuple[House, Server]]:
    async with stories(url, hostile) as app:
        ids = await furnish_more(app) if more else {}
        ids |= await furnish(app)
        kinds = Application(name="demo", kinds=list(app.kinds))
        server = await prepare(app, set_up(url, serve_port=0), [kinds], bound=PATIENT)
        runner = asyncio.create_task(
            app.run(name="runner 1", slots=SLOTS, grace=0.1, let_go=0.1)
        )
        while len(held := await app.jobs(state="running")) < SLOTS:
            await app.clock.sleep(0.05)
        ids["running"] = held[0].id
        if more:
            await furnish_last(app, ids)
        yield (server.origin, await link_into(app, server.origin), ids), server
        app.stop()
        await runner


def take(where: Path, only: list[str], looks: list[str]) -> None:
    """`looks`: these alone, and each of every page."""
    with tempfile.TemporaryDirectory() as temporary, browser() as started:
        folder = Path(temporary)
        if wanted := _among({**PAGES, **MORE}, only):
            _take_engine(started, where, folder / "work.db", wanted, looks)
        if not only or "empty" in only:
            _take_first_day(started, where, f"sqlite:///{folder}/empty.db", looks)
        if _among({**dict.fromkeys((*LISTS, *DETAILS, *FOUND), ""), "readme": ""}, only):
            _take_living(started, where, folder, only, looks)


def _among(pages: Mapping[str, str], only: list[str]) -> dict[str, str]:
    return {name: address for name, address in pages.items() if not only or name in only}


def _take_engine(
    started: Browser,
    where: Path,
    database: Path,
    wanted: Mapping[str, str],
    looks: list[str],
) -> None:
    with house(f"sqlite:///{database}", more=True) as (origin, link, ids):
        pages = {name: origin + address.format(**ids) for name, address in wanted.items()}
        _take_all(started, where, link, pages, looks, lambda: dress(database, ids))


def _take_first_day(started: Browser, where: Path, url: str, looks: list[str]) -> None:
    with beside(first_day(url)) as link:
        origin = link.partition("/enter")[0]
        pages = {
            f"empty-{address[1:].replace('/', '-') or 'board'}": origin + address
            for address in EMPTY
        }
        _take_all(started, where, link, pages, looks, lambda: None)


def _take_living(
    started: Browser, where: Path, folder: Path, only: list[str], looks: list[str]
) -> None:
    """The applications at work."""
    with living(folder) as link, context(started) as first:
        origin = link.partition("/enter")[0]
        enter(first.new_page(), link)
        pages = addresses(first, origin)
        cookies: Any = first.cookies()
        for look in looks or LOOKS:
            with _somebody(started, look, cookies) as page:
                for name, address in _among(pages, only).items():
                    if looks or not look.endswith("-phone") or name in ON_PHONES:
                        _take_page(page, origin + address, where / f"app-{name}-{look}.png")
        if "readme" in only:
            _take_readme(started, where, origin, pages, cookies)


@contextmanager
def _somebody(started: Browser, look: str, cookies: Any) -> Iterator[Page]:
    """One theme speaks Portuguese, the other English."""
    theme, _, width = look.partition("-")
    language = "pt_BR" if theme == "light" else "en"
    with context(started, language=language, theme=theme) as someone:
        someone.add_cookies(cookies)
        page = someone.new_page()
        page.set_viewport_size({"width": WIDTHS[width], "height": HEIGHT})
        yield page


def _take_page(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.wait_for_timeout(600)  # charts
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        print(f"{path.stem} is broader than the window", file=sys.stderr)
    page.screenshot(path=path, full_page=True)


def _take_readme(
    started: Browser, where: Path, origin: str, pages: Mapping[str, str], cookies: Any
) -> None:
    seen: Any = {"name": TOUR, "value": "over", "url": origin}
    for name, (shown, theme, height) in README.items():
        with context(started, theme=theme) as someone:
            someone.add_cookies([*cookies, seen])
            page = someone.new_page()
            page.set_viewport_size({"width": 1280, "height": height})
            page.goto(origin + pages[shown])
            page.wait_for_timeout(READY if shown == "board" else 600)
            page.screenshot(path=where / f"{name}.png")


def _take_all(
    started: Browser,
    where: Path,
    link: str,
    pages: Mapping[str, str],
    looks: list[str],
    dressed: Callable[[], None],
) -> None:
    cookies: Any = []
    origin = link.partition("/enter")[0]
    for look in looks or ENGINE_LOOKS:
        called = partial(_called, where, look)
        with _somebody(started, look, []) as page:
            for name, address in {"enter": link, "sign-in": f"{origin}/sign-in"}.items():
                page.goto(address)
                page.screenshot(path=called(name))
            if not cookies:
                enter(page, link)
                cookies = page.context.cookies()
            page.context.add_cookies(cookies)
            dressed()
            for name, address in pages.items():
                _take_page(page, address, called(name))
            if "jobs" in pages:
                _take_questions(page, origin, called)
            if "batch-running" in pages:
                _take_silence(page, pages["batch-running"], called)


def _called(where: Path, look: str, name: str) -> Path:
    return where / f"{name}-{look}.png"


def _take_questions(page: Page, origin: str, called: Callable[[str], Path]) -> None:
    """What stands over a page: what is ticked, a question, a form, what is said and kept."""
    page.goto(f"{origin}/jobs?state=waiting")
    for row in range(3):
        page.locator("#rows .tick input").nth(row).check()
    page.screenshot(path=called("jobs-ticked"))
    page.locator("#order button[value=cancel]").click()
    page.screenshot(path=called("jobs-asked"))
    page.goto(f"{origin}/gates")
    page.locator("[data-open=ask-rate]").first.click()
    page.screenshot(path=called("gates-asked"))
    page.goto(f"{origin}/people")
    page.locator("[data-open=ask-key]").click()
    page.locator("#ask-key [name=person]").fill("robot")
    page.locator("#ask-key .primary").click()
    page.locator(".notice pre").wait_for()
    page.screenshot(path=called("people-told"))


def _take_silence(page: Page, batch: str, called: Callable[[str], Path]) -> None:
    """A batch of which nothing moves, and a page whose server cannot be heard."""
    page.clock.install()
    page.goto(batch)
    page.clock.fast_forward(61_000)
    page.locator("[data-silence]").wait_for()
    page.screenshot(path=called("batch-silent"))
    page.route("**/live/**", lambda route: route.abort())
    page.goto(batch)
    page.wait_for_timeout(1_500)
    page.screenshot(path=called("no-signal"))


def enter(page: Page, link: str) -> None:
    page.goto(link)
    with page.expect_navigation():
        page.locator("form[action^='/enter/'] button").click()


def _asked() -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=folder)
    asked.add_argument("pages", nargs="*")
    asked.add_argument("--look", action="append", default=[], choices=LOOKS)
    return asked.parse_args()


if __name__ == "__main__":
    asked = _asked()
    take(asked.folder, asked.pages, asked.look)
