"""The document's Mission Control in a real Chromium: missions selected, started, watched, canceled."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from retoma.apps.ads import APP
from retoma.cli.serve import Server, prepare
from tests.apps.ads.aids import world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.databases import LATER_ON_POSTGRES
from tests.outbound.fakes import Asked
from tests.web.aids import PATIENT, beside, link_into, set_up
from tests.web.chromium import browser, context, looks_right, violations
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
HALFWAY = {"status": "running", "progress_pct": 40}
SICK = "UPDATE ads_workers SET status = 'error'"
ROOMS = ("", "/missions", "/missions/MIS-000001", "/proxies", "/import", "/reports")
POLLING = {"ads.polling_session": 0.2, "ads.polling_job": 0.3}


@dataclass
class Patient(FakeWorker):
    """Is at each mission until it is told to be done; canceled, it is ready for the next."""

    scrape: list[Any] = field(default_factory=lambda: [HALFWAY])

    def __call__(self, asked: Asked) -> bytes:
        canceled = [f"/scrape/{job}" for what, job in self.log if what == "cancel"]
        if asked.target in canceled:
            return told(200, {"status": "cancelled"})
        answer = super().__call__(asked)
        if asked.target.endswith("/cancel"):
            self.scrape = [HALFWAY]
        return answer


@asynccontextmanager
async def house(
    url: str, folder: Path, worker: FakeWorker, *, before: str | None = None
) -> AsyncIterator[tuple[str, Server]]:
    """A server, an orchestrator beside it, and their world; a link that signs an admin in."""
    around: dict[str, Any] = {"workers": [worker], "writers": [FakeWriter()], "proxies": 2}
    async with world(url, folder, real_time=True, **around) as made:
        app = made.app
        server = await prepare(app, set_up(url, serve_port=0), [APP], bound=PATIENT)
        for name, seconds in POLLING.items():
            await app.knobs.set(name, seconds, actor="test")
        await made.add(3)
        if before is not None:
            await made.change(before)
        link = await link_into(app, server.origin)
        runner = asyncio.create_task(app.run(name="one", slots=8, tick=0.1))
        yield link, server
        app.stop()
        await runner


def agree(page: Page) -> None:
    page.locator("#confirm button[value=yes]").click()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@LATER_ON_POSTGRES
def test_missions_are_selected_started_watched_and_one_is_canceled(
    database_url, tmp_path, chromium
):
    """Show 6: nothing is loaded again after a click; the stream draws what follows."""
    worker = Patient()
    with (
        beside(house(database_url, tmp_path, worker)) as link,
        context(chromium, language="pt_BR") as theirs,
    ):
        page = theirs.new_page()
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        enter(page, link)
        origin = link.rpartition("/enter/")[0]

        _selects_them_all(page, origin)
        _starts_and_watches(page, origin)
        if database_url.startswith("sqlite"):
            looks_right(page, f"{origin}/ads", ROOMS)
        mission = _cancels_the_first(page, origin, worker)
        _finds_what_became_of_them(page, origin, mission)
        _changes_a_setting_and_pastes_proxies(page, origin)
        assert [] == said
    assert ("cancel", next(iter(worker.jobs.values()))) in worker.log


def _selects_them_all(page: Page, origin: str) -> None:
    page.goto(f"{origin}/ads")
    page.get_by_role("link", name="Selecionar Missões").click()
    expect(page.locator("#signal")).to_have_attribute("data-is", "on", timeout=PATIENCE)
    page.locator("[data-tick-all]").check()
    page.get_by_role("button", name="Adicionar à fila").click()
    # None of them is new any more.
    expect(page.locator("#rows tr")).to_have_count(0, timeout=PATIENCE)


def _starts_and_watches(page: Page, origin: str) -> None:
    page.goto(f"{origin}/ads")
    head = page.locator("#control-head")
    expect(head).to_contain_text("o orquestrador está parado: 3", timeout=PATIENCE)
    page.evaluate("window.same = true")
    page.get_by_role("button", name="Iniciar").click()
    stop = head.get_by_role("button", name="Parar", exact=True)
    expect(stop).to_be_visible(timeout=PATIENCE)
    first = page.locator("#underway tbody tr")
    expect(first.locator("[aria-current=step]")).to_have_text("extracao", timeout=PATIENCE)
    expect(first).to_contain_text("40 %", timeout=PATIENCE)
    expect(page.locator("#workers tbody tr")).to_contain_text("scraping", timeout=PATIENCE)
    expect(page.locator("#proxies-in-use tbody tr")).to_contain_text(
        "proxy-br-", timeout=PATIENCE
    )
    assert page.evaluate("window.same") is True


def _cancels_the_first(page: Page, origin: str, worker: Patient) -> str:
    """The others go on and are done, and the page is never loaded again; which it was."""
    page.goto(f"{origin}/ads")
    page.evaluate("window.same = true")
    head, underway = page.locator("#control-head"), page.locator("#underway")
    first = underway.locator("tbody tr")
    mission = (first.get_attribute("id") or "").removeprefix("underway-")
    first.get_by_role("button", name="Cancelar").click()
    agree(page)
    second = underway.locator(f"tbody tr:not(#underway-{mission})")
    expect(second.locator("[aria-current=step]")).to_have_text("extracao", timeout=PATIENCE)
    expect(underway.locator(f"#underway-{mission}")).to_have_count(0, timeout=PATIENCE)
    worker.scrape = ["completed"]
    expect(underway).to_contain_text("Nenhuma missão em execução", timeout=PATIENCE)
    expect(head.locator(".tile").first).to_contain_text("0", timeout=PATIENCE)
    assert page.evaluate("window.same") is True
    return mission


def _finds_what_became_of_them(page: Page, origin: str, mission: str) -> None:
    page.goto(f"{origin}/ads/missions/{mission}")
    expect(page.locator("#mission-head .state")).to_have_text("canceled", timeout=PATIENCE)
    expect(page.locator("#mission-timeline")).to_contain_text(
        "Cancelada por Ana", timeout=PATIENCE
    )
    page.goto(f"{origin}/ads/missions?status=completed")
    expect(page.locator("#rows tr")).to_have_count(2, timeout=PATIENCE)


def _changes_a_setting_and_pastes_proxies(page: Page, origin: str) -> None:
    """Both by the labels of their pages; what is pasted stays in the browser."""
    page.goto(f"{origin}/ads")
    knob = page.locator("#knob-ads-session_limit")
    knob.get_by_role("button", name="Mudar").click()
    page.locator("#ask-knob input[name=value]").fill("7")
    page.locator("#ask-knob button.primary").click()
    expect(knob.locator("b")).to_have_text("7", timeout=PATIENCE)

    page.goto(f"{origin}/ads/import")
    page.locator("#import textarea").fill("new.example.org:8080:u:CANARY\nnonsense:port")
    page.get_by_role("button", name="Conferir").click()
    result = page.locator("#import-result")
    expect(result).to_contain_text("novas: 1, duplicadas: 0, erradas: 1", timeout=PATIENCE)
    expect(result).not_to_contain_text("CANARY")
    page.locator("#import textarea").fill("new.example.org:8080:u:CANARY")
    page.get_by_role("button", name="Importar agora").click()
    expect(result).to_contain_text("Importado.", timeout=PATIENCE)
    page.goto(f"{origin}/ads/proxies")
    expect(page.locator("#proxies")).to_contain_text("new.example.org:8080", timeout=PATIENCE)


@LATER_ON_POSTGRES
def test_a_proxy_is_deactivated_a_worker_tested_and_reset(database_url, tmp_path, chromium):
    """Show 6: each result arrives on the page that is there, by the stream."""
    worker = Patient(refuse=lambda _: told(500, {}))
    with (
        beside(house(database_url, tmp_path, worker, before=SICK)) as link,
        context(chromium, language="pt_BR") as theirs,
    ):
        page = theirs.new_page()
        enter(page, link)
        origin = link.rpartition("/enter/")[0]

        page.goto(f"{origin}/ads/proxies")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on", timeout=PATIENCE)
        page.evaluate("window.same = true")
        proxy = page.locator("#proxy-PRX-000001")
        proxy.get_by_role("button", name="Desativar").click()
        agree(page)
        expect(proxy).to_contain_text("inativo", timeout=PATIENCE)
        expect(proxy.get_by_role("button", name="Ativar")).to_be_visible(timeout=PATIENCE)
        assert page.evaluate("window.same") is True

        page.goto(f"{origin}/ads/workers")
        expect(page.locator("#signal")).to_have_attribute("data-is", "on", timeout=PATIENCE)
        page.evaluate("window.same = true")
        row = page.locator("#worker-WRK-000001")
        expect(row).to_contain_text("nunca", timeout=PATIENCE)
        row.get_by_role("button", name="Testar").click()
        expect(row).to_contain_text("falhou", timeout=PATIENCE)
        worker.refuse = lambda _: None
        row.get_by_role("button", name="Testar").click()
        expect(row).to_contain_text("passou", timeout=PATIENCE)
        expect(row).to_contain_text("error")
        row.get_by_role("button", name="Resetar").click(timeout=PATIENCE)
        expect(row).to_contain_text("idle", timeout=PATIENCE)
        assert page.evaluate("window.same") is True
        if database_url.startswith("sqlite"):
            assert violations(page) == []
