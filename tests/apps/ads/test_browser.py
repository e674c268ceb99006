"""The document's Mission Control in a real Chromium: missions selected, started, watched, canceled."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from retoma.access import Access, Role
from retoma.apps.ads import APP
from retoma.cli.serve import prepare
from tests.apps.ads.aids import world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.outbound.fakes import Asked
from tests.web.aids import PATIENT, set_up
from tests.web.chromium import PHONE, axe_source, browser, context
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
HALFWAY = {"status": "running", "progress_pct": 40}
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


@contextmanager
def house(url: str, folder: Path, worker: FakeWorker) -> Iterator[str]:
    """A server, an orchestrator beside it, and their world; a link that signs an admin in."""
    ready = threading.Event()
    known: dict[str, Any] = {}

    async def live() -> None:
        around: dict[str, Any] = {"workers": [worker], "writers": [FakeWriter()], "proxies": 2}
        async with world(url, folder, real_time=True, **around) as made:
            app = made.app
            server = await prepare(app, set_up(url, serve_port=0), [APP], bound=PATIENT)
            for name, seconds in POLLING.items():
                await app.knobs.set(name, seconds, actor="test")
            await made.add(3)
            access = Access(await app.database(), app.clock, app.ids)
            token = await access.invite("Ana", Role.ADMIN, "cli")
            runner = asyncio.create_task(app.run(name="one", slots=8, tick=0.1))
            known.update(link=f"{server.origin}/enter/{token}", stop=server.stop)
            known["loop"] = asyncio.get_running_loop()
            await server.run(ready.set)
            app.stop()
            await runner

    def run() -> None:
        try:
            asyncio.run(live())
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(120)
        assert known, "the house did not come up"
        yield known["link"]
    finally:
        if known:
            known["loop"].call_soon_threadsafe(known["stop"])
        thread.join(60)


def agree(page: Page) -> None:
    page.locator("#confirm button[value=yes]").click()


def violations(page: Page) -> list[Any]:
    page.evaluate(axe_source())
    found = page.evaluate("() => axe.run(document)")["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def test_missions_are_selected_started_watched_and_one_is_canceled(
    database_url, tmp_path, chromium
):
    """Show 6: nothing is loaded again after a click; the stream draws what follows."""
    worker = Patient()
    with (
        house(database_url, tmp_path, worker) as link,
        context(chromium, language="pt_BR") as theirs,
    ):
        page = theirs.new_page()
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        enter(page, link)
        origin = link.rpartition("/enter/")[0]

        page.goto(f"{origin}/ads")
        page.get_by_role("link", name="Selecionar Missões").click()
        expect(page.locator("#signal")).to_have_attribute("data-is", "on", timeout=PATIENCE)
        page.locator("[data-tick-all]").check()
        page.get_by_role("button", name="Adicionar à fila").click()
        expect(page.locator("#rows tr")).to_have_count(
            0, timeout=PATIENCE
        )  # none of them is new any more

        page.goto(f"{origin}/ads")
        head, underway = page.locator("#control-head"), page.locator("#underway")
        expect(head).to_contain_text("o orquestrador está parado: 3", timeout=PATIENCE)
        page.evaluate("window.same = true")
        page.get_by_role("button", name="Iniciar").click()
        expect(head.get_by_role("button", name="Parar")).to_be_visible(timeout=PATIENCE)
        first = underway.locator("tbody tr")
        expect(first.locator("[aria-current=step]")).to_have_text("extracao", timeout=PATIENCE)
        expect(first).to_contain_text("40 %", timeout=PATIENCE)
        expect(page.locator("#workers tbody tr")).to_contain_text("scraping", timeout=PATIENCE)
        expect(page.locator("#proxies-in-use tbody tr")).to_contain_text(
            "proxy-br-", timeout=PATIENCE
        )
        _looks_right(page, origin, thorough=database_url.startswith("sqlite"))

        page.goto(f"{origin}/ads")
        page.evaluate("window.same = true")
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

        page.goto(f"{origin}/ads/missions/{mission}")
        expect(page.locator("#mission-head .state")).to_have_text("canceled", timeout=PATIENCE)
        expect(page.locator("#mission-timeline")).to_contain_text(
            "canceled_by: Ana", timeout=PATIENCE
        )
        page.goto(f"{origin}/ads/missions?status=completed")
        expect(page.locator("#rows tr")).to_have_count(2, timeout=PATIENCE)
        assert [] == said
    assert ("cancel", next(iter(worker.jobs.values()))) in worker.log


def _looks_right(page: Page, origin: str, *, thorough: bool) -> None:
    """For whoever cannot see it, and on a phone."""
    rooms = ("", "/missions", "/missions/MIS-000001", "/proxies")
    wide = page.viewport_size
    found, broad = {}, []
    for room in rooms if thorough else ():
        page.goto(f"{origin}/ads{room}")
        found[room] = violations(page)
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            broad.append(room)
        page.set_viewport_size(wide)  # type: ignore[arg-type]
    assert ({}, []) == ({room: each for room, each in found.items() if each}, broad)
