"""Embeddings in a real Chromium: a folder is embedded and watched, searched, and what failed is replayed."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from retoma import Retoma
from retoma.apps.embeddings import APP
from retoma.apps.embeddings.sandbox import DIMS, KEY, MODEL, build_service
from retoma.cli.serve import Server
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.apps.quotes.aids import serving
from tests.databases import LATER_ON_POSTGRES
from tests.web.aids import beside, link_into, server_alone
from tests.web.chromium import browser, context, looks_right, stays
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
HARM = "<script>window.hurt = 1</script><img src=x onerror=hurt=1>"
ROTTEN = "laranja podre"
ROOMS = (
    "/embeddings",
    "/embeddings/colecao/frutas",
    "/embeddings/falhas",
    "/embeddings/nova?colecao=frutas",
    "/embeddings/busca?q=laranja&colecao=frutas",
)


@dataclass(frozen=True, slots=True)
class House:
    """A server, a runner and the provider, in a thread."""

    link: str
    port: int  # of the provider

    @property
    def origin(self) -> str:
        return self.link.rpartition("/enter/")[0]

    def trouble(self, trouble: str, **how: Any) -> None:
        self._ask("POST", json={"trouble": trouble, **how})

    def peace(self) -> None:
        self._ask("DELETE")

    def _ask(self, method: str, **how: Any) -> None:
        there = f"http://127.0.0.1:{self.port}/_sandbox/faults"
        httpx2.request(method, there, trust_env=False, **how).raise_for_status()


@asynccontextmanager
async def house(url: str) -> AsyncIterator[tuple[House, Server]]:
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with serving(build_service()) as port, Retoma(url) as app, out:
        settings = Settings(
            database_url=url,
            embeddings_provider="openai",
            embeddings_url=f"http://127.0.0.1:{port}/v1",
            embeddings_key=KEY,
            embeddings_model=MODEL,
            embeddings_dims=DIMS,
        )
        app.install(APP, Tools(app, out, settings=settings))
        server = server_alone(app, APP, url)
        link = await link_into(app, server.origin)
        running = asyncio.create_task(app.run(slots=4))
        yield House(link, port), server
        app.stop()
        await running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def folder_of(where: Path) -> Path:
    """Some texts, one that would harm who looks at it, one of nothing, a picture."""
    below = where / "pomar" / "doces"
    below.mkdir(parents=True)
    for n in range(6):
        (below / f"{n}.txt").write_text(f"A laranja número {n} é doce e amarela.")
    (where / "pomar" / "mau.txt").write_text(f"O caminhão azul {HARM} buzina.")
    (where / "pomar" / "vazio.txt").write_text("")
    (where / "pomar" / "foto.jpg").write_bytes(b"\xff\xd8\xff\xe0 foto")
    return where / "pomar"


@LATER_ON_POSTGRES
def test_a_folder_is_embedded_and_watched_searched_and_what_failed_is_replayed(
    database_url, tmp_path, chromium
):
    """Show 5 of the embeddings: nothing is loaded again after a click; the stream draws what follows."""
    with beside(house(database_url)) as there, context(chromium, language="pt_BR") as theirs:
        page = theirs.new_page()
        page.set_default_timeout(PATIENCE)
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "console", lambda each: said.append(each.text) if each.type == "error" else None
        )
        enter(page, there.link)
        there.trouble("hold", times=None)
        _hands_a_folder_in(page, there, folder_of(tmp_path))
        _is_watched(page, there)
        _searches(page)
        _pastes_what_is_refused(page, there)
        looks_right(page, there.origin, ROOMS)
        _replays(page, there)
        assert [] == said
        assert page.evaluate("window.hurt ?? null") is None


def _hands_a_folder_in(page: Page, there: House, folder: Path) -> None:
    late: list[Route] = []
    page.route("**/static/texts.js*", lambda route: late.append(route))  # noqa: PLW0108 — it wants a function
    page.goto(f"{there.origin}/embeddings")
    with page.expect_request("**/static/texts.js*"):
        page.locator("a.primary", has_text="Enviar textos").click()
    page.locator("#texts [name=colecao]").fill("frutas")
    embed = page.get_by_role("button", name="Fazer vetores", exact=True)
    expect(embed).to_be_disabled()
    page.get_by_label("Uma pasta inteira").set_input_files(folder)
    for each in late:  # whoever is faster than the page has chosen as well
        each.continue_()
    page.unroute("**/static/texts.js*")
    expect(page.locator("#texts-told")).to_contain_text("9 arquivos")
    embed.click()
    expect(page.locator("#texts-refused")).to_contain_text(
        "pomar/vazio.txt: o texto não tem nada"
    )
    expect(page.locator("#texts-refused")).to_contain_text("pomar/foto.jpg: não é um texto")
    expect(page.locator("#texts-told")).to_contain_text("7 documentos novos")
    page.get_by_role("link", name="Ver a coleção").click()
    expect(page).to_have_url(f"{there.origin}/embeddings/colecao/frutas")


def _is_watched(page: Page, there: House) -> None:
    stays(page)
    head = page.locator("#collection-head")
    expect(head).to_contain_text(re.compile(r"processing [1-9]"))
    there.peace()
    expect(head).to_contain_text("completed 7")
    expect(head).to_contain_text("100 %")
    assert page.evaluate("window.same") is True


def _searches(page: Page) -> None:
    page.get_by_label("Buscar nesta coleção").fill("caminhão azul")
    page.get_by_role("button", name="Buscar", exact=True).click()
    first = page.locator(".hit").first
    expect(first).to_contain_text("pomar/mau.txt")
    expect(first.locator("mark")).to_have_text(["caminhão", "azul"])
    expect(first).to_contain_text(HARM)


def _pastes_what_is_refused(page: Page, there: House) -> None:
    there.trouble("status", status=400, about=ROTTEN, times=None)
    page.goto(f"{there.origin}/embeddings/nova?colecao=frutas")
    page.get_by_label("Nome do documento").fill("podre.txt")
    page.locator("#paste textarea").fill(f"Uma {ROTTEN} caiu do pé.")
    page.get_by_role("button", name="Fazer vetores deste texto").click()
    head = page.locator("#collection-head")
    expect(head).to_contain_text("failed 1")
    expect(head).to_contain_text("87 %")


def _replays(page: Page, there: House) -> None:
    page.goto(f"{there.origin}/embeddings/falhas")
    stays(page)
    row = page.locator("[id^=dead-]", has_text="podre.txt")
    expect(row).to_contain_text("refused")
    there.peace()
    row.get_by_role("button", name="Tentar de novo o job").click()
    expect(page.locator("#pager")).to_contain_text("Nenhum erro na fila.")
    assert page.evaluate("window.same") is True
    page.goto(f"{there.origin}/embeddings")
    expect(page.locator("#rows")).to_contain_text("completed 8")
    expect(page.locator("#embedding-runners")).to_contain_text("vivo")
