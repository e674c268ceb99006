"""Documents in a real Chromium: files dropped in, watched, a runner killed, gone on with, errors tried again."""

import base64
import csv
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from retoma import Retoma
from retoma.apps.documents import APP
from retoma.apps.documents.sandbox import KEY, LABELS, MODEL, Odd, Paper, Papers, build_service
from retoma.cli.serve import Server
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests import nursery
from tests.apps.documents.odd_pdfs import odd_pdfs
from tests.apps.quotes.aids import serving
from tests.clock import TestClock
from tests.databases import LATER_ON_POSTGRES
from tests.web.aids import beside, link_into, server_alone
from tests.web.chromium import browser, context, looks_right, stays, violations
from tests.web.screens import enter

pytestmark = pytest.mark.timeout(300)  # on a fresh machine the first one fetches the browser

PATIENCE = 60_000  # milliseconds, for a machine that is busy
QUIET = 301.0  # seconds: a little more than five minutes
SLOTS = 4
WELL = 4  # answers before the model is silent
CORRUPT, HOSTILE = 2, 3  # which of them
HARM = "</pre><script>window.hurt = 1</script><svg onload=hurt=1><meta http-equiv=refresh>"
NAMES = list(LABELS)[:4]
SEEN = "/classificador/execucao/1"  # looked at while it is stuck
ROOMS = (
    *("/classificador/", "/classificador/projeto/1", "/classificador/nova"),
    *(SEEN, f"{SEEN}/documento/1"),
)
# A file that is dropped by somebody: a browser makes one only of what a page gives it.
DROPPED = """(files) => {
  const data = new DataTransfer();
  for (const [name, content] of files) {
    const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
    data.items.add(new File([bytes], name));
  }
  return data;
}"""


@dataclass(frozen=True, slots=True)
class House:
    """A server and the model in a thread; runners are started when a test wants them."""

    url: str
    link: str
    port: int  # of the model

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

    @contextmanager
    def runner(self, clock: TestClock) -> Iterator["subprocess.Popen[bytes]"]:
        """One that can be killed."""
        child = nursery.Born(
            [sys.executable, "-m", "retoma", "runner", "--slots", str(SLOTS)],
            env={
                **os.environ,
                **clock.environment,
                "RETOMA_DATABASE_URL": self.url,
                "RETOMA_APPLICATIONS": "documents",
                "RETOMA_OPENROUTER_URL": f"http://127.0.0.1:{self.port}/api/v1",
                "RETOMA_OPENROUTER_KEY": KEY,
                "RETOMA_OPENROUTER_MODEL": MODEL,
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
async def house(url: str) -> AsyncIterator[tuple[House, Server]]:
    async with serving(build_service()) as port, Retoma(url) as app, Outbound() as out:
        app.install(APP, Tools(app, out, settings=Settings(database_url=url)))
        server = server_alone(app, APP, url)
        yield House(url, await link_into(app, server.origin), port), server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def papers(n: int) -> list[Paper]:
    """One that cannot be read, and one that would harm whoever looks at it (row 22)."""
    made = [Papers().make(each, Odd.CORRUPT if each == CORRUPT else None) for each in range(n)]
    words = "\n".join([*Papers().text(HOSTILE), HARM])
    made[HOSTILE] = replace(
        made[HOSTILE], name="<img src=x onerror=hurt=1>.txt", content=words.encode()
    )
    return made


@LATER_ON_POSTGRES
@pytest.mark.parametrize("n", [12, pytest.param(50, marks=pytest.mark.soak)])
def test_files_are_dropped_in_and_watched_a_runner_dies_errors_are_tried_again(
    database_url, tmp_path, test_clock, chromium, n
):
    """Show 5 of the documents: nothing is loaded again after a click; the stream draws what follows."""
    with beside(house(database_url)) as there, context(chromium, language="pt_BR") as theirs:
        page = theirs.new_page()
        page.set_default_timeout(PATIENCE)
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "console", lambda each: said.append(each.text) if each.type == "error" else None
        )
        enter(page, there.link)
        _makes_a_project(page, there)
        _drops_files(page, there, papers(n))
        _is_watched_until_its_runner_dies(page, there, test_clock)
        thorough = database_url.startswith("sqlite")
        if thorough:
            _is_silent(theirs.new_page(), page.url)
        test_clock.jump(QUIET)
        _is_stuck_and_goes_on(page, there, n, thorough=thorough)
        with there.runner(test_clock):
            _recovers_and_tries_errors_again(page, n)
        _exports(page, tmp_path, n)
        _opens_a_document(page)
        if thorough:
            looks_right(page, there.origin, ROOMS, seen={SEEN})
        [refused] = said  # without a runner nothing is resumed
        assert "409 (Conflict)" in refused


@LATER_ON_POSTGRES
@pytest.mark.parametrize("n", [12, pytest.param(200, marks=pytest.mark.soak)])
def test_a_rejected_model_is_told_with_its_cure_and_odd_files_end_each_as_it_must(
    database_url, test_clock, chromium, n
):
    """Show 2: a wrong model parks the execution in the service's own words; nobody asks on. With another
    model in the project it goes on, and every odd file ends with a label or a code."""
    files = odd_pdfs(n)
    with beside(house(database_url)) as there, context(chromium, language="pt_BR") as theirs:
        page = theirs.new_page()
        page.set_default_timeout(PATIENCE)
        enter(page, there.link)
        _makes_a_project(page, there, "sandbox/nobody")
        given = [[each.name, base64.b64encode(each.content).decode()] for each in files]
        page.dispatch_event(
            "[data-drop]",
            "drop",
            {"dataTransfer": page.evaluate_handle(DROPPED, [*given, ["fora.txt", ""]])},
        )
        page.locator("[data-files-shown] summary").click()
        page.get_by_role("button", name="Remover: fora.txt").click()
        page.get_by_role("button", name="Classificar").click()
        expect(page.locator("#execution-head")).to_contain_text(f"PENDENTE {n}")
        with there.runner(test_clock):
            head = page.locator("#execution-head")
            expect(head).to_contain_text("O serviço rejeita os pedidos desta execução")
            expect(head).to_contain_text("that is not a valid model ID")
            expect(head).to_contain_text("Mude aquilo de que o serviço reclama")
            expect(head).to_contain_text("CONCLUIDO 0")
            assert not violations(page)

            place = page.url
            page.goto(f"{there.origin}/classificador/projeto/1")
            page.locator("[name=modelo]").fill("")
            page.get_by_role("button", name="Salvar").click()
            expect(page).to_have_url(f"{there.origin}/classificador/projeto")
            page.goto(place)
            head.get_by_role("button", name="Continuar de onde parou").click()
            expect(head.locator(".state.big")).to_have_text(
                "CONCLUIDO", timeout=PATIENCE + n * 5_000
            )
        expect(head).not_to_contain_text("O serviço rejeita")
        expect(head).to_contain_text("PENDENTE 0")
        shown = page.locator("#execution-errors")
        for code in sorted({each.code for each in files if each.code}):
            expect(shown).to_contain_text(code)
        good = next(each for each in files if not each.damaged and each.code is None)
        page.goto(f"{place}?status=CONCLUIDO")
        expect(page.get_by_role("link", name=good.name, exact=True)).to_be_visible()
        _reviews(page, good.name)


def _reviews(page: Page, name: str) -> None:
    """The original is saved, and the label corrected."""
    page.get_by_role("link", name=name, exact=True).click()
    with page.expect_download() as coming:
        page.get_by_role("link", name="Arquivo original").click()
    assert name == coming.value.suggested_filename
    page.get_by_role("button", name="Confirmar ou corrigir o rótulo").click()
    page.locator("#ask-review select").select_option(index=len(NAMES) - 1)
    page.get_by_role("button", name="Salvar rótulo").click()
    expect(page.locator("#document-why .sum")).to_have_text(NAMES[-1])


def _makes_a_project(page: Page, there: House, model: str = "") -> None:
    page.goto(f"{there.origin}/classificador/projeto/novo")
    page.locator("[name=nome]").fill("PGE")
    page.get_by_role("button", name="Adicionar rótulo").click()
    for at, name in enumerate(NAMES):
        page.locator("[name=rotulo]").nth(at).fill(name)
        page.locator("[name=descricao]").nth(at).fill(LABELS[name])
    page.locator("[name=modelo]").fill(model)
    page.get_by_role("button", name="Criar projeto").click()
    expect(page.locator("#project-1")).to_contain_text("4 rótulos")
    page.locator("#project-1").get_by_role("link", name="Nova execução").click()


def _drops_files(page: Page, there: House, those: Sequence[Paper]) -> None:
    """Sent one by one; what they are called is in the manifest among them."""
    manifest = "codigo;arquivo\n" + "".join(f"P-{each.n:03};{each.name}\n" for each in those)
    files = [(each.name, each.content) for each in those]
    files.append(("manifesto.csv", manifest.encode("cp1252")))
    given = [[name, base64.b64encode(content).decode()] for name, content in files]
    data = page.evaluate_handle(DROPPED, given)
    classify = page.get_by_role("button", name="Classificar")
    expect(classify).to_be_disabled()
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": data})
    told = page.locator("#intake-told")
    expect(told).to_contain_text(f"{len(those)} de {len(those)} arquivos")
    expect(told).to_contain_text("Os códigos estão em manifesto.csv.")
    bar = page.locator("#intake progress")
    assert bar.evaluate("(each) => each.value === each.max")
    page.locator("[name=nome]").fill("maio")
    classify.click()
    expect(page).to_have_url(f"{there.origin}/classificador/execucao/1")
    expect(page.locator("#execution-head")).to_contain_text(f"PENDENTE {len(those)}")


def _is_watched_until_its_runner_dies(page: Page, there: House, clock: TestClock) -> None:
    stays(page)
    there.trouble("hold", after=WELL, times=None)
    with there.runner(clock) as runner:
        head = page.locator("#execution-head")
        expect(head).to_contain_text(f"CONCLUIDO {WELL}")
        expect(head).to_contain_text("ERRO 1")
        expect(head).to_contain_text(f"PROCESSANDO {SLOTS}")
        expect(head).to_contain_text(re.compile(r"Em classificação agora\s*P-\d+"))
        expect(page.locator("#execution-labels svg.labels rect").first).to_be_visible()
        expect(page.locator("#execution-errors")).to_contain_text("corrupt")
        runner.kill()
        runner.wait()
    assert page.evaluate("window.same") is True


def _is_silent(page: Page, address: str) -> None:
    """A minute without an event: the warning of the document."""
    page.clock.install()
    page.goto(address)
    page.clock.fast_forward(61_000)
    warning = page.locator("[data-silence]")
    expect(warning).to_be_visible()
    expect(warning).to_contain_text("Nenhum evento há 60 segundos")
    page.close()


def _is_stuck_and_goes_on(page: Page, there: House, n: int, *, thorough: bool) -> None:
    page.reload()
    stays(page)
    head = page.locator("#execution-head")
    expect(head.locator(".state.big")).to_have_text("TRAVADO")
    expect(head).to_contain_text("Rota afetada: /classificador/")
    assert not (thorough and violations(page))
    there.peace()
    there.trouble("status", status=413, about=f"DOC-{n - 1:05d}", times=1)
    head.get_by_role("button", name="Continuar de onde parou").click()
    expect(page.locator("#notices")).to_contain_text("nenhum executor")
    expect(head.locator(".state.big")).to_have_text("TRAVADO")
    assert page.evaluate("window.same") is True


def _recovers_and_tries_errors_again(page: Page, n: int) -> None:
    head = page.locator("#execution-head")
    expect(head.locator(".state.big")).to_have_text("CONCLUIDO")
    expect(head).to_contain_text(f"CONCLUIDO {n - 2}")
    expect(page.locator("#execution-errors")).to_contain_text("permanent")
    head.get_by_role("button", name="Reprocessar apenas erros").click()
    expect(head).to_contain_text("geração 2")
    expect(head).to_contain_text(f"CONCLUIDO {n - 1}")
    expect(head).to_contain_text("ERRO 1")
    expect(head.locator(".state.big")).to_have_text("CONCLUIDO")
    assert page.evaluate("window.same") is True


def _exports(page: Page, folder: Path, n: int) -> None:
    with page.expect_download() as coming:
        page.locator("#execution-head").get_by_role("link", name="em CSV").click()
    coming.value.save_as(folder / "maio.csv")
    with (folder / "maio.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [f"P-{each:03}" for each in range(n)] == [each["codigo"] for each in rows]
    assert {f"P-{CORRUPT:03}"} == {each["codigo"] for each in rows if each["status"] == "ERRO"}
    assert {*NAMES, ""} >= {each["rotulo"] for each in rows}


def _opens_a_document(page: Page) -> None:
    """Row 22: whatever it says is shown as text, and nothing of it is done."""
    page.get_by_role("link", name=f"P-{HOSTILE:03}", exact=True).click()
    expect(page.locator("#document-why .sum")).to_have_text(re.compile("|".join(NAMES)))
    expect(page.locator("#document-why")).to_contain_text("Termos de")
    expect(page.locator("#document-text pre")).to_contain_text(f"DOC-{HOSTILE:05}")
    expect(page.locator("#document-text pre")).to_contain_text(HARM)
    expect(page.locator("#document-head")).to_contain_text("<img src=x onerror=hurt=1>.txt")
    assert page.evaluate("window.hurt ?? null") is None
