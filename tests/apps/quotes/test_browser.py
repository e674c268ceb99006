"""Quotes in a real Chromium: a lote imported, watched, paused and resumed; a stuck quote recovered."""

import asyncio
import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from retoma import Retoma
from retoma.apps.quotes import APP
from retoma.apps.tools import Tools
from retoma.cli.serve import Server
from retoma.db import adhoc
from retoma.outbound import Outbound
from retoma.sandbox.quotes import (
    ANTHROPIC_KEY,
    SERPAPI_KEY,
    Catalogue,
    Odd,
    Services,
    build_services,
    paid_twice,
)
from tests import nursery
from tests.apps.quotes.aids import serving, settings_for
from tests.apps.quotes.test_api import SPOILED
from tests.clock import TestClock
from tests.databases import LATER_ON_POSTGRES
from tests.web.aids import beside, link_into, server_alone
from tests.web.chromium import browser, context, looks_right, stays, violations
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
LEASE = 61.0  # seconds: a lease and a little
SLOTS = 8
CARS, THING, NONE_SUCH = (0, 1, 3), 2, 7  # of the catalogue
GOOD = "geladeira;product;A-1"
ROOMS = (
    "/quotes/lotes",
    "/quotes/lotes/1",
    "/quotes/4",
    "/quotes/stats?lote=1",
    "/quotes/import",
)


@dataclass(frozen=True, slots=True)
class House:
    """A server and the four services in a thread; runners are started when a test wants them."""

    url: str
    link: str
    app: Retoma
    services: Services
    catalogue: Catalogue
    port: int  # of the services
    loop: asyncio.AbstractEventLoop

    @property
    def origin(self) -> str:
        return self.link.rpartition("/enter/")[0]

    def table(self) -> str:
        """Three that are done, one that is slow, and one of which there is none."""
        about = self.catalogue.describe
        told = [about(n) for n in (*CARS, THING)] + [about(NONE_SUCH, Odd.UNKNOWN_CAR)]
        return "\n".join(
            ["descricao;codigo", *(f"{each};A-{n}" for n, each in enumerate(told))]
        )

    def trouble(self, service: str, trouble: str, **how: Any) -> None:
        self._ask("POST", service, json={"trouble": trouble, **how})

    def peace(self, service: str) -> None:
        self._ask("DELETE", service)

    def _ask(self, method: str, service: str, **how: Any) -> None:
        there = f"http://127.0.0.1:{self.port}/{service}/_sandbox/faults"
        httpx2.request(method, there, trust_env=False, **how).raise_for_status()

    async def lotes(self) -> int:
        database = await self.app.database()
        [[n]] = await database.read(lambda tx: tx.all(adhoc("SELECT count(*) FROM batches")))
        return int(n)

    def do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """There, where the house lives."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(60)

    @contextmanager
    def runner(self) -> Iterator[None]:
        """Within the house."""

        async def begin() -> "asyncio.Task[None]":
            return asyncio.create_task(self.app.run(name="two", slots=SLOTS, tick=0.1))

        running = self.do(begin)

        async def end() -> None:
            self.app.stop()
            await running

        try:
            yield
        finally:
            self.do(end)

    @contextmanager
    def process(self, clock: TestClock) -> Iterator["subprocess.Popen[bytes]"]:
        """A runner that can be killed."""
        there = f"http://127.0.0.1:{self.port}"
        child = nursery.Born(
            [sys.executable, "-m", "retoma", "runner", "--slots", str(SLOTS), "--name", "one"],
            env={
                **os.environ,
                **clock.environment,
                "RETOMA_DATABASE_URL": self.url,
                "RETOMA_APPLICATIONS": "quotes",
                "RETOMA_ANTHROPIC_URL": f"{there}/anthropic",
                "RETOMA_ANTHROPIC_KEY": ANTHROPIC_KEY,
                "RETOMA_SERPAPI_URL": f"{there}/serpapi",
                "RETOMA_SERPAPI_KEY": SERPAPI_KEY,
                "RETOMA_FIPE_URL": there,
                "RETOMA_SHOP_HOSTS": f"127.0.0.1:{self.port}",
                "RETOMA_PRIVATE_HOSTS": "127.0.0.1",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield child
        finally:
            child.kill()
            child.wait()


@asynccontextmanager
async def house(url: str, folder: Path) -> AsyncIterator[tuple[House, Server]]:
    catalogue = Catalogue()
    services = build_services(catalogue, late=0.2)
    async with (
        serving(services) as port,
        Retoma(url) as app,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        settings = settings_for(port, url)
        app.install(APP, Tools(app, out, settings=settings, key_file=folder / "key"))
        server = server_alone(app, APP, url)
        link, loop = await link_into(app, server.origin), asyncio.get_running_loop()
        yield House(url, link, app, services, catalogue, port, loop), server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def choose(page: Page, table: str, encoding: str = "cp1252") -> None:
    """A file as a spreadsheet writes it, and as the page reads it."""
    file: Any = {"name": "maio.csv", "mimeType": "text/csv", "buffer": table.encode(encoding)}
    page.locator("#import input[type=file]").set_input_files(file)
    last = table.strip().rpartition("\n")[2]
    expect(page.locator("#import textarea")).to_have_value(re.compile(re.escape(last)))


@LATER_ON_POSTGRES
def test_a_lote_is_imported_and_watched_a_stuck_quote_recovered_a_paused_lote_resumed(
    database_url, tmp_path, test_clock, chromium
):
    """Show 5 of the quotes: nothing is loaded again after a click; the stream draws what follows."""
    with (
        beside(house(database_url, tmp_path)) as there,
        context(chromium, language="pt_BR") as theirs,
    ):
        page = theirs.new_page()
        page.set_default_timeout(PATIENCE)
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        enter(page, there.link)
        _imports(page, there)
        _is_watched_until_its_runner_dies(page, there, test_clock)
        thorough = database_url.startswith("sqlite")
        _recovers(page, there, thorough=thorough)
        _pauses_another(page, there)
        with there.runner():
            _opens_the_quote(page, there)
            _resumes(page, there)
        if thorough:
            looks_right(page, there.origin, ROOMS)
        assert [] == said


def bad_table() -> str:
    """Of every kind of bad row one, and a good one."""
    text = io.StringIO()
    rows = [row for row, _, _ in SPOILED]
    csv.writer(text, delimiter=";").writerows(
        [("descricao", "tipo", "codigo"), GOOD.split(";"), *rows]
    )
    return text.getvalue()


def _imports(page: Page, there: House) -> None:
    """A table with mistakes of every kind says each with its line; nothing of it is taken."""
    page.goto(f"{there.origin}/quotes/import")
    expect(page.locator("#checks p")).to_have_count(0)  # the keys and the model are good
    choose(page, bad_table(), "utf-8")
    page.get_by_role("button", name="Importar", exact=True).click()
    said = page.locator("#import-result")
    expect(said).to_contain_text(f"{len(SPOILED)} linhas de {len(SPOILED) + 1} não podem")
    expect(said.locator("tbody tr")).to_have_count(len(SPOILED))
    expect(said.locator("tbody tr").nth(3)).to_have_text(re.compile("6.*descricao.*#REF!"))
    expect(said.locator("tbody tr").nth(8)).to_have_text(re.compile("11.*tipo"))
    choose(page, there.table())
    page.locator("#import input[name=nome]").fill("maio")
    page.get_by_role("button", name="Importar", exact=True).dblclick()  # one lote all the same
    expect(page).to_have_url(f"{there.origin}/quotes/lotes/1")
    expect(page.locator("#lote-head")).to_contain_text("PENDING 5")


def _is_watched_until_its_runner_dies(page: Page, there: House, clock: TestClock) -> None:
    stays(page)
    there.trouble("shops", "hang", times=None)
    with there.process(clock) as runner:
        head = page.locator("#lote-head")
        expect(page.locator("#quote-4")).to_contain_text("PRICE_EXTRACTION_START")
        expect(head).to_contain_text("DONE 3")
        expect(head).to_contain_text("ERROR 1")
        expect(page.locator("#lote-errors")).to_contain_text("no_vehicle")
        expect(head).to_contain_text("US$")
        runner.kill()
        runner.wait()
    assert page.evaluate("window.same") is True
    clock.jump(LEASE)


def _recovers(page: Page, there: House, *, thorough: bool) -> None:
    """What was paid stays paid: only pages are asked for again."""
    page.goto(f"{there.origin}/quotes/stuck")
    stays(page)
    row = page.locator("#stuck-4")
    expect(row).to_contain_text("PRICE_EXTRACTION_START")
    expect(row).to_contain_text("vencida")
    assert not (thorough and violations(page))
    row.get_by_role("button", name="Recuperar").click()
    expect(page.locator("#stuck_list")).to_contain_text("Nenhuma cotação está travada")
    assert page.evaluate("window.same") is True
    there.peace("shops")


def _pauses_another(page: Page, there: House) -> None:
    page.goto(f"{there.origin}/quotes/import")
    about = [there.catalogue.describe(n) for n in range(10, 13)]
    page.locator("#paste textarea").fill("\n".join(about))
    page.get_by_role("button", name="Cotar").dblclick()
    expect(page).to_have_url(f"{there.origin}/quotes/lotes/2")
    assert 2 == there.do(there.lotes)
    stays(page)
    page.get_by_role("button", name="Pausar").click()
    expect(page.locator("#lote-head .state.big")).to_have_text("Pausado")
    assert page.evaluate("window.same") is True


def _opens_the_quote(page: Page, there: House) -> None:
    page.goto(f"{there.origin}/quotes/lotes/1")
    page.locator("#quote-4 a").click()
    expect(page.locator("#quote-trail li").last).to_have_class("saved")
    expect(page.locator("#quote-prices svg.prices circle").first).to_be_visible()
    expect(page.locator("#quote-prices .sum")).to_contain_text("R$")
    expect(page.locator("#quote-head .state")).to_have_text("DONE")
    for service in ("anthropic", "serpapi"):
        assert not paid_twice(there.services.log(service))
    page.locator("#quote-prices tbody a", has_text="página").first.click()
    expect(page.locator("iframe.frame, img.shot")).to_be_visible()


def _resumes(page: Page, there: House) -> None:
    """What is paused has not moved while another was finished."""
    page.goto(f"{there.origin}/quotes/lotes/2")
    head = page.locator("#lote-head")
    expect(head).to_contain_text("PENDING 3")
    stays(page)
    page.get_by_role("button", name="Retomar lote").click()
    expect(head).to_contain_text("DONE 3")
    expect(head.locator(".state.big")).to_have_text("Concluído")
    assert page.evaluate("window.same") is True
