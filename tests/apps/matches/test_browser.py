"""Matches in a real Chromium: a round begun and watched, a refused page looked at, read again, complete."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, Response, expect
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from retoma import Retoma
from retoma.apps.matches import APP
from retoma.apps.matches.sandbox import Layout, Matches, Odd, Season, build_site
from retoma.cli.serve import Server
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.matches.aids import LEAGUE
from tests.apps.quotes.aids import serving
from tests.web.aids import beside, link_into, server_alone, set_up
from tests.web.chromium import PHONE, axe_source, browser, context, stays
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
# All that a page may try; none of it may happen to whoever looks at it.
HOSTILE = b"""<!doctype html><html><head><title>x</title><base href="http://127.0.0.1:9/">
<meta http-equiv="refresh" content="0;url=/hurt?refresh"><link rel="stylesheet" href="/hurt?style">
<script>top.hurt = 1; parent.hurt = 1; alert("script"); fetch("/hurt?fetch")</script></head>
<body onload="alert('load')"></iframe></section><h1>Hostil</h1><img src="/hurt?img" onerror="alert('img')">
<svg onload="alert('svg')"><animate onbegin="alert('animate')" attributeName="x" dur="1s"/></svg>
<iframe src="javascript:alert('inner')"></iframe><object data="/hurt?object"></object>
<form action="/matches" method="post"><button id="send">enviar</button></form>
<style>body { background: url(/hurt?css) }</style><p>fim da p\xc3\xa1gina</p></body></html>"""
STRANGER = "Ninguém Conhece"


@dataclass(frozen=True, slots=True)
class House:
    """A server and the site in a thread; a runner works when a test says so."""

    link: str
    app: Retoma
    site: Matches
    pages: dict[str, bytes]  # what the site says in place of a page of its own
    loop: asyncio.AbstractEventLoop

    @property
    def origin(self) -> str:
        return self.link.rpartition("/enter/")[0]

    @contextmanager
    def runner(self) -> Iterator[None]:
        """Somebody who works, until the block ends."""
        working = asyncio.run_coroutine_threadsafe(self.app.run(grace=5.0), self.loop)
        try:
            yield
        finally:
            self.loop.call_soon_threadsafe(self.app.stop)
            working.result(60)

    def do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(120)


@dataclass(frozen=True, slots=True)
class Overlaid:
    """The site, some of whose pages are somebody else's."""

    site: Matches
    pages: dict[str, bytes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = self.pages.get(scope.get("path", ""))
        answer = self.site if page is None else HTMLResponse(page)
        await answer(scope, receive, send)


@asynccontextmanager
async def house(url: str, *, unfinished: float = 0.0) -> AsyncIterator[tuple[House, Server]]:
    site = build_site(Season(7, unfinished=unfinished))
    pages: dict[str, bytes] = {}
    async with (
        serving(Overlaid(site, pages)) as port,
        Retoma(url) as app,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        where = {"matches_url": f"http://127.0.0.1:{port}"}
        app.install(APP, Tools(app, out, settings=set_up(url, **where)))
        server = server_alone(app, APP, url, **where)
        link, loop = await link_into(app, server.origin), asyncio.get_running_loop()
        yield House(link, app, site, pages, loop), server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def its_url(request: pytest.FixtureRequest) -> str:
    """What a browser shows is the same on both; what it asks for is tested on both elsewhere."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def test_rounds_are_begun_watched_repaired_and_complete(its_url, chromium):
    """Shows 5 and 6: nothing is loaded again after a click, and nothing of a page or a name executes."""
    with beside(house(its_url)) as there, context(chromium, language="pt_BR") as theirs:
        page = theirs.new_page()
        page.set_default_timeout(PATIENCE)
        happened = _watched(page)
        enter(page, there.link)
        with there.runner():
            task = _a_round_is_begun_and_fills(page, there)
            _nothing_of_its_page_executes(page, there, task)
            _it_is_tried_again(page, there)
            _the_layout_changes(page, there)
            _refused_pages_are_read_again(page, there)
            _a_match_is_put_right_by_hand(page, there)
        _look_right(page, there)
        assert [] == happened
        assert page.evaluate("window.hurt === undefined")


def _watched(page: Page) -> list[str]:
    """What must not happen: an error, a dialog, an answer to what a refused page asks for."""
    happened: list[str] = []

    def spoke(dialog: Dialog) -> None:
        happened.append(dialog.message)
        dialog.dismiss()

    def answered(response: Response) -> None:
        if "hurt" in response.url:
            happened.append(response.url)

    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("dialog", spoke)
    page.on("response", answered)
    return happened


def _a_round_is_begun_and_fills(page: Page, there: House) -> str:
    """One match of it is a page that nobody knows. Where its task is."""
    hostile = there.site.world.season.round(LEAGUE, 1)[3]
    there.pages[hostile.path] = HOSTILE
    page.goto(f"{there.origin}/matches")
    expect(page.locator("#home-seasons")).to_contain_text("Nenhuma rodada foi coletada ainda")
    page.locator("#start [name=season]").fill("2026")
    page.locator("#start [name=round]").fill("1")
    page.get_by_role("button", name="Começar", exact=True).click()
    expect(page).to_have_url(f"{there.origin}/matches/rodada/1")
    stays(page)
    expect(page.locator(".match")).to_have_count(10)
    expect(page.locator(".match.done")).to_have_count(9)
    dead = page.locator(".match.dead")
    expect(dead).to_contain_text("LAYOUT_CHANGED #jogo")
    expect(page.locator("#round-head .gate")).to_contain_text("Partidas que faltam: 1 de 10.")
    assert page.evaluate("window.same") is True
    dead.click()
    return page.url


def _nothing_of_its_page_executes(page: Page, there: House, task: str) -> None:
    """In its frame; and by itself, whoever opens it so."""
    expect(page.locator("#task-evidence")).to_contain_text("Seletor que nada encontrou")
    expect(page.frame_locator(".frame").get_by_text("fim da página")).to_be_visible()
    assert page.locator(".frame").get_attribute("sandbox") == ""
    assert page.evaluate("window.hurt === undefined")
    _fits(page)
    page.goto(f"{task}/pagina")
    expect(page.get_by_text("fim da página")).to_be_visible()
    page.locator("#send").click()
    assert page.url == f"{task}/pagina"
    page.goto(task)
    there.pages.clear()


def _it_is_tried_again(page: Page, there: House) -> None:
    stays(page)
    page.get_by_role("button", name="Tentar de novo").click()
    expect(page.locator("#task-head .state.big")).to_have_text("DONE")
    assert page.evaluate("window.same") is True
    page.goto(f"{there.origin}/matches/rodada/1")
    expect(page.locator("#round-head .gate")).to_contain_text("Completa: pode ser publicada.")


def _the_layout_changes(page: Page, there: House) -> None:
    """The page of the round cannot be read; by the new parser it can, and its matches are known."""
    there.site.world.draw(Layout.MODERN)
    page.goto(f"{there.origin}/matches")
    stays(page)
    page.get_by_role("button", name="Coletar a rodada 2 de").click()
    cell = page.locator(f"#round-{LEAGUE}-2026-2 .round.dead")
    expect(cell).to_contain_text("FAILED")
    expect(page.locator("#home-alerts")).to_contain_text("LayoutChanged")
    expect(page.locator("#home-alerts")).to_contain_text("table.jogos")
    assert page.evaluate("window.same") is True
    cell.click()
    expect(page.frame_locator(".frame").get_by_text("Palmeiras").first).to_be_visible()
    _is_read_again(page, "0 de 1", "1 de 1")
    expect(page.locator(".match.dead")).to_have_count(10)


def _is_read_again(page: Page, before: str, after: str) -> None:
    page.get_by_role("link", name="Reler páginas recusadas").click()
    expect(page.locator("main h2").first).to_contain_text(f"lidas: {before}")
    expect(page.locator("#do-gravar button")).to_be_disabled()
    page.locator("[name=leitores]").first.select_option("modern,classic")
    page.get_by_role("button", name="Mostrar o que mudaria").click()
    expect(page.locator("main h2").first).to_contain_text(f"lidas: {after}")
    _fits(page)
    page.locator("#do-gravar button").click()
    expect(page.locator("#round-head")).to_be_visible()


def _refused_pages_are_read_again(page: Page, there: House) -> None:
    """A dead task's snapshot is looked at; all are promoted, and nothing is asked of the site."""
    here = page.url
    page.locator(".match.dead").first.click()
    expect(page.frame_locator(".frame").locator("h2").first).to_be_visible()
    page.goto(here)
    asked = len(there.site.log())
    _is_read_again(page, "0 de 10", "10 de 10")
    expect(page.locator("#round-head .gate")).to_contain_text("Completa: pode ser publicada.")
    expect(page.locator(".match.done")).to_have_count(10)
    assert asked == len(there.site.log())


def _a_match_is_put_right_by_hand(page: Page, there: House) -> None:
    """What is wrong is told where it is; then it is stored, with who and why."""
    there.site.world.draw(Layout.CLASSIC)
    wrong = there.site.world.season.round(LEAGUE, 3)[0]
    there.site.world.make_odd(LEAGUE, wrong.key, Odd.STRANGER)
    page.goto(f"{there.origin}/matches")
    page.get_by_role("button", name="Coletar a rodada 3 de").click()
    page.locator(f"#round-{LEAGUE}-2026-3 .round.dead").click()
    expect(page.locator(".match.done")).to_have_count(9)
    page.locator(".match.dead").click()
    page.get_by_role("link", name="Editar e aceitar").click()
    expect(page.locator("[name=why]")).to_be_visible()  # the page that is looked at is there
    _fits(page)
    player = page.locator(f'[name=event-player][value="{STRANGER}"]')
    line = page.locator(".event").filter(has=player)
    line.locator("[name=event-minute]").fill("")
    line.locator("[name=event-player]").fill("")
    page.locator("[name=why]").fill("conferido no vídeo")
    page.get_by_role("button", name="Aceitar a partida").click()
    told = page.locator(".notice.bad")
    expect(told).to_contain_text("score")
    expect(told).to_contain_text("e os gols somam")
    assert wrong.score is not None
    page.locator("[name=score-home]").fill(str(wrong.score[0]))
    page.get_by_role("button", name="Aceitar a partida").click()
    expect(page.locator("#task-head .state.big")).to_have_text("DONE")
    expect(page.locator("#job-timeline")).to_contain_text("conferido no vídeo")
    page.get_by_role("link", name="A partida, como está gravada").click()
    expect(page.locator(".result .score")).to_contain_text(str(wrong.score[0]))
    expect(page.locator("main")).to_contain_text("gravada por Ana")


def _fits(page: Page) -> None:
    """Also for whoever cannot see it, and on a phone."""
    page.evaluate(axe_source())
    found = page.evaluate("() => axe.run(document, {iframes: false})")["violations"]
    wide = page.viewport_size
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    broad = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.set_viewport_size(wide)  # type: ignore[arg-type]
    told = [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]
    assert ([], False) == (told, broad), page.url


def _look_right(page: Page, there: House) -> None:
    for room in ("/matches", "/matches/rodada/2", "/matches/partidas", "/matches/partidas/1"):
        page.goto(f"{there.origin}{room}")
        _fits(page)
