"""Quotes in Mission Control: lotes taken in and steered, a quote with its way and its prices, what is stuck."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import httpx2
import pytest

from retoma.apps.quotes import APP, store
from retoma.apps.quotes.model import KIND, ProcessingCheckpoint, QuoteStatus
from retoma.apps.quotes.pages.lotes import LIST, PAGE, LoteScreen
from retoma.apps.quotes.pages.plot import plot_of
from retoma.apps.quotes.pages.presenters import CONCERN
from retoma.apps.quotes.pages.system import bars_of
from retoma.apps.quotes.pages.trail import Branch, branch_of, trail_of
from retoma.apps.quotes.sandbox import Odd
from retoma.engine.query.tail import Slice
from retoma.web.pages.live import changes
from tests.apps.people import EN, PT, Site, pages
from tests.apps.quotes.aids import WHO, World, world
from tests.apps.quotes.test_api import left_by_a_dead_runner
from tests.engine.aids import change
from tests.web.aids import client
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import HOSTILE, told_of
from tests.web.test_sign_in import signed_in

PLACES = ("/quotes/lotes", "/quotes", "/quotes/stuck", "/quotes/stats", "/quotes/import")
CAR, THING = 0, 2  # of the catalogue
C = ProcessingCheckpoint
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def site_of(url: str, folder: Any) -> AsyncIterator[Site[World]]:
    async with world(url, folder) as house, pages(house, APP, url) as site:
        yield site


async def add_lote(
    site: Site[World], *wanted: store.NewQuote, name: str = "lote"
) -> store.Added:
    return await site.app.write(lambda tx: store.add_lote(tx, wanted, actor=WHO, name=name))


def text_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


# — what is seen —


async def test_a_canceled_lote_is_not_shown_as_done(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        about = site.house.catalogue.describe
        lote = (await add_lote(site, *(store.NewQuote(about(n)) for n in (1, 2)))).lote
        await (await site.app.batches.get(lote or 0)).cancel()

        seen = text_of(await site.viewer.get(f"/quotes/lotes/{lote}", headers=PT))

        assert '<span class="state big canceled">Cancelado</span>' in seen


async def test_what_waits_for_a_key_says_why_and_how_it_goes_on(database_url, tmp_path):
    lacking = {"anthropic_key": None}
    async with (
        world(database_url, tmp_path, told=lacking) as house,
        pages(house, APP, database_url) as site,
    ):
        about = site.house.catalogue.describe
        lote = (await add_lote(site, *(store.NewQuote(about(n)) for n in (1, 2)))).lote
        await house.drained()

        for path in (f"/quotes/lotes/{lote}", "/quotes/1", "/quotes/stuck"):
            seen = text_of(await site.viewer.get(path, headers=PT))
            assert "RETOMA_ANTHROPIC_KEY não está definida onde os executores rodam" in seen, (
                path
            )
            assert "Defina a chave que é citada" in seen, path
        assert "travadas: 2" in text_of(await site.viewer.get("/quotes/lotes/1", headers=PT))


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url, tmp_path):
    """With nothing to show it says what to do; then with words that are markup. A viewer has no buttons."""
    async with site_of(database_url, tmp_path) as site:
        seen = {path: text_of(await site.viewer.get(path, headers=PT)) for path in PLACES}
        assert "Ainda não há lotes. Importe uma tabela" in seen["/quotes/lotes"]
        assert "Ainda não há cotações" in seen["/quotes"]
        assert "Nenhuma cotação está travada" in seen["/quotes/stuck"]
        assert "Nada está em processamento agora" in seen["/quotes/stats"]
        assert "Um operador importa cotações aqui" in seen["/quotes/import"]

        await _menu_and_doors(site)

        about = site.house.catalogue.describe
        added = await add_lote(
            site,
            store.NewQuote(about(CAR)),
            store.NewQuote(about(THING), code=HOSTILE[:90]),
            store.NewQuote(f"{about(7, Odd.ZERO)} {HOSTILE}"),
            name=f"maio {HOSTILE}",
        )
        below = [f"/quotes/lotes/{added.lote}", *(f"/quotes/{each}" for each in added.quotes)]
        for path in below[:2]:  # while there is something to do
            assert 'form="do-' in (await site.operator.get(path, headers=PT)).text
            assert '="do-' not in (await site.viewer.get(path, headers=PT)).text
        await site.house.drained()
        below += [f"{below[0]}?status=ERROR", f"/quotes/stats?lote={added.lote}"]
        for who, headers in ((site.admin, PT), (site.operator, EN), (site.viewer, PT)):
            for path in (*PLACES, *below):
                answer = await who.get(path, headers=headers)
                assert answer.status_code == 200, (path, answer.text)
                assert "<script>alert" not in answer.text
                assert not re.search(r"\sstyle=|\son\w+=", answer.text), path
                seen[path] = unescape(answer.text)
                assert ('="do-' in answer.text) <= (who is not site.viewer), path
        assert HOSTILE in seen["/quotes/lotes"]
        assert HOSTILE in seen[f"/quotes/{added.quotes[2]}"]


async def _menu_and_doors(site: Site[World]) -> None:
    """What is not there is told as a page; nobody looks without a key."""
    words = ("Lotes de cotações", "Cotações", "Cotações travadas", "Estatísticas")
    for path, word in zip(PLACES, words, strict=False):
        drawn = text_of(await site.viewer.get(path, headers=PT))
        current = re.findall(r'<a href="([^"]*)" aria-current="page">([^<]*)<', drawn)
        assert current == [(path, word)]
    wrong = {
        "/quotes/999": 404,
        "/quotes/lotes/999": 404,
        "/quotes/stats?lote=999": 404,
        "/quotes/lotes?cursor=forged": 422,
        "/quotes?status=nonsense": 422,
        "/quotes/nonsense": 422,
    }
    for path, status in wrong.items():
        answer = await site.viewer.get(path, headers=PT)
        assert answer.status_code == status, path
        assert "text/html" in answer.headers["content-type"]
    nobody = client(site.site)
    for path in PLACES[:4]:
        assert (await nobody.get(f"/live{path}")).status_code == 401
    await nobody.aclose()


async def test_a_quote_shows_its_way_its_sources_and_the_chosen_price(database_url, tmp_path):
    """The product by the shops with outliers set apart, the vehicle by the table; evidence for operators."""
    async with site_of(database_url, tmp_path) as site:
        thing, car = await site.house.quote(THING), await site.house.quote(CAR)
        ahead = text_of(await site.viewer.get(f"/quotes/{thing}", headers=PT))
        assert ahead.count("se for um produto") == 5
        assert ahead.count("se for um veículo") == 1
        await site.house.drained()

        told = await site.house.seen(thing)
        page = text_of(await site.operator.get(f"/quotes/{thing}", headers=PT))
        names = re.findall(r'<li class="(\w+)"[^>]*>\s*<span class="name" title="(\w+)"', page)
        assert [name for _, name in names] == [
            str(each) for each in C if each is not C.FIPE_SEARCH
        ]
        assert {look for look, _ in names} == {"saved"}
        sources = told["result"]["sources"]
        apart = [each for each in sources if not each["used"]]
        assert apart
        assert page.count('class="used"') == len(sources) - len(apart)
        assert page.count('class="outlier"') == page.count("discrepante: à parte") == len(apart)
        assert f"apartados como discrepantes: {len(apart)}" in page
        tested = told["resume_data"]["tested_products"]
        silent = [each for each in tested if each["price"] is None]
        assert page.count(">sem preço<") == len(silent)
        assert all(each["code"] in page for each in silent)
        shown = {each.sha256 for each in await site.app.evidence.list(told["job"])}
        assert shown == set(re.findall(rf"/jobs/{told['job']}\?evidence=(\w+)", page))
        assert f'href="/jobs/{told["job"]}">Job {told["job"]}<' in page
        assert "US$ 0,015" in page  # of the search
        assert "<dd>produto</dd>" in page
        assert "mediana dos preços, discrepantes à parte" in page
        assert "<dt>Tentativas</dt><dd>1</dd>" in page
        assert "evidence=" not in (await site.viewer.get(f"/quotes/{thing}", headers=PT)).text

        await _pictured(site, thing)

        worth = await site.house.seen(car)
        page = text_of(await site.viewer.get(f"/quotes/{car}", headers=PT))
        assert "SHOPPING_SEARCH_START" not in page
        assert 'title="FIPE_SEARCH"' in page
        [source] = worth["result"]["sources"]
        assert source["CodigoFipe"] in page
        assert source["Modelo"] in page
        assert "<dd>veículo</dd>" in page
        assert "tabela FIPE" in page


async def test_a_budget_in_reais_says_what_it_does_not_count(database_url, tmp_path):
    """Services are paid in dollars, and nobody has said what those are worth."""
    async with site_of(database_url, tmp_path) as site:
        wanted = [store.NewQuote(site.house.catalogue.describe(THING))]
        await site.app.write(
            lambda tx: store.add_lote(tx, wanted, actor=WHO, name="maio", budget="1250 BRL")
        )
        before = text_of(await site.viewer.get("/quotes/lotes/1", headers=PT))
        await site.house.drained()
        after = text_of(await site.viewer.get("/quotes/lotes/1", headers=PT))

        assert "R$ 1.250,00 · 0 %" in before
        assert "· 1 cotação<" in before
        assert "não contam no orçamento" not in before
        assert re.search(r"US\$ 0,01\d+ não contam no orçamento", after)


async def _pictured(site: Site[World], quote: int) -> None:
    """A picture is shown where it is, a page only in its frame."""
    seen = await site.house.seen(quote)
    tested = seen["resume_data"]["tested_products"]
    called = next(each["evidence"] for each in tested if each["price"] is not None)
    [page, *_] = await site.app.evidence.list(seen["job"])
    before = text_of(await site.operator.get(f"/quotes/{quote}", headers=PT))
    assert "<img" not in before
    assert f"/jobs/{seen['job']}?evidence={page.sha256}" in before

    database = await site.app.database()
    await change(
        database,
        f"UPDATE job_evidence SET name = '{called}.png', media = 'image/png'"  # noqa: S608
        f" WHERE name = '{called}.html'",
    )
    after = text_of(await site.operator.get(f"/quotes/{quote}", headers=PT))
    [shot] = re.findall(r'<img class="shot"[^>]* src="([^"]+)"', after)
    assert (await site.operator.get(shot)).headers["content-type"] == "image/png"
    assert "<img" not in (await site.viewer.get(f"/quotes/{quote}", headers=PT)).text


# — what comes in —


async def test_a_table_with_a_mistake_says_its_line_and_nothing_is_taken(
    database_url, tmp_path
):
    async with site_of(database_url, tmp_path) as site:
        browser, csrf = await signed_in(site, "operator")
        bad = {
            "descricao;tipo\ngeladeira;product\nfogão;barco\n": r">3</td><td><code>tipo</code></td><td>is none of",
            "nome\ngeladeira\n": "descricao",
            "descricao\ngeladeira \ufffd\n": "cannot be read",
            "descricao;codigo\nmesa;A\nbanco;A\n": "</td><td>A is that of line 2",
            "descricao\n": "no lines",
        }
        for table, word in bad.items():
            refused = await posted(browser, "/quotes/import", csrf, text=table, nome="maio")
            assert refused.status_code == 422, refused.text
            assert word in unescape(refused.text), table
            assert 'hx-target="#import-result"' in refused.text
        assert (
            await posted(browser, "/quotes/new", csrf, descricoes=" \n ")
        ).status_code == 422
        assert [(0,)] == await site.house.rows("SELECT count(*) FROM quotes")

        await _pasted(site, browser, csrf)

        large = "descricao;codigo\n" + "".join(
            f"geladeira {'x' * 400} {n};A-{n}\n" for n in range(4_000)
        )
        taken = await posted(browser, "/quotes/import", csrf, text=large, nome="maio")
        assert (204, "/quotes/lotes/2") == (taken.status_code, taken.headers["hx-redirect"])
        shown = text_of(await browser.get("/quotes/lotes/2", headers=PT))
        assert "<h1>maio</h1>" in shown
        assert "4.000 cotações" in shown
        await browser.aclose()


async def _pasted(site: Site[World], browser: httpx2.AsyncClient, csrf: str) -> None:
    """Lines are a lote, one line is a quote by itself."""
    one = await posted(browser, "/quotes/new", csrf, descricoes="geladeira", tipo="product")
    many = await posted(browser, "/quotes/new", csrf, descricoes="a\r\n\r\nb\n", nome="dois")
    wrong = await posted(browser, "/quotes/new", csrf, descricoes="a", tipo="barco")
    plain = await browser.post(
        "/quotes/new",
        data={"csrf": csrf, "descricoes": "fogão"},
        headers={**PT, "Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"},
    )

    assert ("/quotes/1", "/quotes/lotes/1") == (
        one.headers["hx-redirect"],
        many.headers["hx-redirect"],
    )
    assert wrong.status_code == 422
    assert "line 1: tipo is none of" in wrong.text
    assert (303, "/quotes/4") == (plain.status_code, plain.headers["location"])
    assert [(1, "product", "Bia", None), (2, "auto", "Bia", 1), (3, "auto", "Bia", 1)] == (
        await site.house.rows(
            "SELECT id, kind, created_by, lote FROM quotes WHERE id < 4 ORDER BY id"
        )
    )


# — what is done —


async def test_a_lote_is_paused_resumed_and_canceled_on_its_page(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        about = site.house.catalogue.describe
        await add_lote(site, store.NewQuote(about(CAR)), store.NewQuote(about(7, Odd.ZERO)))
        browser, csrf = await signed_in(site, "operator")
        page = "/quotes/lotes/1"
        fresh = text_of(await browser.get(page, headers=PT))
        assert re.search(r'form="do-pause"[^>]*>Pausar<', fresh)
        assert "Retomar lote</button>\n      <button" not in fresh
        told(await posted(browser, f"{page}/pause", csrf))
        paused = text_of(await browser.get(page, headers=PT))
        assert "Pausado<" in paused
        assert re.search(r'class="primary" form="do-resume">Retomar lote<', paused)
        await site.house.drained()
        assert "PENDING <b>2</b>" in text_of(await browser.get(page, headers=PT))

        assert "lote 1 goes on" in told(await posted(browser, f"{page}/resume", csrf))
        await site.house.drained()
        done = text_of(await browser.get(page, headers=PT))
        assert "Concluído com erros" in done
        assert "<code>no_price</code>" in done
        assert "DONE <b>1</b>" in done
        assert "Cancelar<" not in done
        assert "1" in told(await posted(browser, f"{page}/retry", csrf, code="no_price"))
        told(await posted(browser, f"{page}/cancel", csrf))
        assert "CANCELED <b>1</b>" in text_of(await browser.get(page, headers=PT))
        assert (await posted(browser, f"{page}/fly", csrf)).status_code == 404
        assert (await posted(browser, "/quotes/lotes/99/pause", csrf)).status_code == 404
        await browser.aclose()


async def test_h11_a_stuck_quote_is_recovered_by_its_row_by_its_page_and_with_all(
    database_url, tmp_path
):
    """H-11: one whose runner lives is left alone, and the page offers nothing."""
    async with site_of(database_url, tmp_path) as site:
        quote = await left_by_a_dead_runner(site.house, THING)
        browser, csrf = await signed_in(site, "operator")
        listed = text_of(await browser.get("/quotes/stuck", headers=PT))
        assert re.search(rf'form="do-one" name="quote" value="{quote}"[^>]*>Recuperar<', listed)
        assert re.search(r'form="do-all">Recuperar todas<', listed)
        assert "vencida" in listed
        shown = text_of(await browser.get(f"/quotes/{quote}", headers=PT))
        assert re.search(r'form="do-recover">Recuperar<', shown)
        stats = text_of(await browser.get("/quotes/stats", headers=PT))
        assert "<b>1</b><span>travadas</span>" in stats

        database = await site.app.database()
        await change(database, "UPDATE runners SET lease_until = clock_in(60)")
        await change(database, "UPDATE jobs SET started_at = clock_in(-900)")
        alive = text_of(await browser.get("/quotes/stuck", headers=PT))
        assert "o executor vive" in alive
        assert "Recuperar</button" not in alive
        assert "Recuperar</button" not in text_of(
            await browser.get(f"/quotes/{quote}", headers=PT)
        )
        refused = await posted(browser, "/quotes/stuck/one", csrf, quote=str(quote))
        assert refused.status_code == 409, refused.text
        await change(database, "UPDATE runners SET lease_until = clock_in(-1)")

        told(await posted(browser, "/quotes/stuck/one", csrf, quote=str(quote)))
        said = told(await posted(browser, "/quotes/stuck/all", csrf))
        assert "recovered: 0; still stuck: 0" in said
        assert (await posted(browser, "/quotes/stuck/one", csrf, quote="x")).status_code == 422
        await site.house.drained()
        assert "DONE" == (await site.house.seen(quote))["status"]
        assert (1, 1) == (site.house.calls("anthropic"), site.house.calls("serpapi"))
        await browser.aclose()


async def test_a_quote_that_failed_is_recovered_and_one_that_waits_is_canceled(
    database_url, tmp_path
):
    async with site_of(database_url, tmp_path) as site:
        bad = await site.house.quote(7, Odd.ZERO)
        await site.house.drained()
        waits = await site.house.quote(CAR)
        browser, csrf = await signed_in(site, "operator")
        failed = text_of(await browser.get(f"/quotes/{bad}", headers=PT))
        assert '<p class="failing"><b>no_price</b> nenhum preço aceito: ' in failed
        assert 'class="failed" aria-current="step"' in failed
        told(await posted(browser, f"/quotes/{bad}/recover", csrf))
        told(await posted(browser, f"/quotes/{waits}/cancel", csrf))
        told(await posted(browser, f"/quotes/{waits}/cancel", csrf))  # a second click

        assert "CANCELED" == (await site.house.seen(waits))["status"]
        assert "PROCESSING" == (await site.house.seen(bad))["status"]
        assert (await posted(browser, "/quotes/999/cancel", csrf)).status_code == 404
        await browser.aclose()


async def test_h20_a_viewer_is_refused_everything_that_changes_something(
    database_url, tmp_path
):
    async with site_of(database_url, tmp_path) as site:
        added = await add_lote(site, store.NewQuote("geladeira"))
        browser, csrf = await signed_in(site, "viewer")
        verbs = ("pause", "resume", "cancel", "retry")
        paths = [f"/quotes/lotes/{added.lote}/{verb}" for verb in verbs]
        paths += [f"/quotes/{added.quotes[0]}/{verb}" for verb in ("recover", "cancel")]
        paths += ["/quotes/import", "/quotes/new", "/quotes/stuck/all", "/quotes/stuck/one"]
        for path in paths:
            refused = await posted(browser, path, csrf, text="descricao\nx\n", descricoes="x")
            assert refused.status_code == 403, path
        forged = await signed_in(site, "operator")
        assert (await posted(forged[0], paths[0], "wrong")).status_code == 403
        assert [("waiting",)] == await site.house.rows("SELECT state FROM jobs")
        await forged[0].aclose()
        await browser.aclose()


# — live —


async def test_what_moves_goes_out_as_the_rows_that_moved(database_url, tmp_path):
    assert CONCERN.met(Slice([replace(told_of(job=1), kind=KIND)], [], None))
    assert not CONCERN.met(Slice([replace(told_of(job=1), kind="ads.session")], [], None))
    async with site_of(database_url, tmp_path) as site:
        about = site.house.catalogue.describe
        added = await add_lote(site, store.NewQuote(about(CAR)), store.NewQuote(about(THING)))
        assert added.lote is not None
        screen = LoteScreen(site.site.state.pages, site.view(), added.lote)
        before = await screen.draw()
        page = (await site.operator.get(f"/quotes/lotes/{added.lote}", headers=PT)).text
        assert all(each.html in page for each in before)
        assert [] == [each.id for each in changes(before, await screen.draw())]

        await site.app.cancel((await site.house.seen(added.quotes[0]))["job"], actor=WHO)
        moved = {each.id: each.html for each in changes(before, await screen.draw())}
        assert moved.keys() == {"lote-head", f"quote-{added.quotes[0]}"}
        assert "CANCELED" in moved[f"quote-{added.quotes[0]}"]
        for path in (f"/live/quotes/lotes/{added.lote}", "/live/quotes/lotes", "/live/quotes"):
            once = await site.viewer.get(path, headers={"Retoma-Once": "1"})
            assert once.text.count("<hx-partial") >= 2, path


async def test_quotes_and_lotes_are_read_page_by_page(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        one = store.NewQuote("geladeira")
        for _ in range(LIST):
            await add_lote(site, one)
        last = await add_lote(site, *[one] * (PAGE + 1))
        rows = re.compile(r'<tr id="(?:lote|quote)-(\d+)"')
        wanted = {
            "/quotes/lotes": LIST + 1,
            f"/quotes/lotes/{last.lote}?status=PENDING": PAGE + 1,
            "/quotes?status=PENDING": LIST + PAGE + 1,
        }
        for path, n in wanted.items():
            first = text_of(await site.viewer.get(path, headers=PT))
            [following] = re.findall(r'href="([^"]+)" rel="next"', first)
            second = text_of(await site.viewer.get(following, headers=PT))
            seen = [int(each) for each in (*rows.findall(first), *rows.findall(second))]
            assert seen == sorted(seen, reverse=True)
            assert n == len(set(seen)) == len(seen), path
            assert "Mais novos<" in second


# — pure —


def test_a_quote_taken_over_as_history_shows_what_is_known_of_it():
    assert branch_of("auto", None, "not what we wrote") is None
    assert branch_of("auto", C.FIPE_SEARCH, None) is Branch.VEHICLE
    assert branch_of("product", None, {"tool": "vehicle"}) is Branch.VEHICLE
    stops = trail_of(QuoteStatus.DONE, None, Branch.VEHICLE, began=NOON, ended=NOON, steps=())
    assert {"ahead"} == {each.look for each in stops}
    assert (NOON, NOON) == (stops[0].at, stops[-1].at)


@pytest.mark.parametrize(
    ("status", "look"),
    [
        (QuoteStatus.PROCESSING, "begun"),
        (QuoteStatus.ERROR, "failed"),
        (QuoteStatus.DONE, "saved"),
    ],
)
def test_where_a_quote_stands_is_told_apart_from_what_it_passed(status, look):
    stops = trail_of(
        status,
        C.AI_ANALYSIS_DONE,
        Branch.VEHICLE,
        began=NOON,
        ended=NOON + timedelta(seconds=1),
        steps=(),
    )
    assert ["saved", "saved", look, "ahead", "ahead", "ahead"] == [each.look for each in stops]
    assert [C.AI_ANALYSIS_DONE] == [each.name for each in stops if each.here]


def test_outliers_stand_beside_the_scale_of_the_prices_that_count():
    plot = plot_of(
        Decimal(150),
        [
            ("a", Decimal(100), True),
            ("b", Decimal(200), True),
            ("c", Decimal(9000), False),
            ("d", Decimal(1), False),
        ],
    )
    assert plot is not None
    places = {each.store: each.x for each in plot.dots}
    assert places["d"] < plot.left == places["a"] < plot.chosen
    assert plot.chosen < places["b"] == plot.right < places["c"] < plot.width
    assert (True, True) == (plot.apart_left, plot.apart_right)
    alone = plot_of(Decimal(5), [("a", Decimal(5), True)])
    assert alone is not None
    assert alone.chosen == alone.dots[0].x == alone.width / 2
    assert plot_of(Decimal(5), [("a", Decimal(5), False)]) is None


def test_the_funnel_has_every_checkpoint_in_its_order():
    bars = bars_of({C.FIPE_SEARCH: 5, C.INIT: 20})
    assert [each for each in C if each is not C.COMPLETED] == [each.name for each in bars]
    assert {20: 1000.0, 5: 250.0, 0: 0.0} == {each.n: each.width for each in bars}
    assert {0.0} == {each.width for each in bars_of({})}
