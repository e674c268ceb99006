"""Documents in Mission Control: projects, files that come in, an execution and how it goes on, a document and why."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from typing import Any

import httpx2

from retoma.apps.documents import APP, store
from retoma.apps.documents.model import CODES, KIND, Classified
from retoma.apps.documents.pages.executions import LIST, ROWS, ExecutionScreen
from retoma.apps.documents.pages.presenters import CONCERN, LONGEST, PLOTTED, bars_of, share_of
from retoma.apps.documents.steps import READ
from retoma.apps.documents.store.executions import Ask, NewDocument
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.query.tail import Slice
from retoma.engine.rules.errors import Permanent
from retoma.toolkit.tools import Tools
from retoma.web.pages.live import changes
from tests.apps.documents.aids import RULES, WHO, House, house, keep, paper
from tests.apps.people import EN, PT, Site, pages
from tests.web.aids import client
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import HOSTILE, told_of
from tests.web.test_sign_in import FORM, signed_in

HOME, NEW, PROJECTS = "/classificador/", "/classificador/nova", "/classificador/projeto"
PLACES = (HOME, NEW, PROJECTS, f"{PROJECTS}/novo")
QUIET = 301  # seconds: a little more than five minutes
BAD = "corrupt.pdf"
UNSURE = "duvidoso.pdf"
COPY = "copia.pdf"
STEERS = r'="do-|data-open|id="intake"|id="project"|href="/classificador/nova'
STACK = "Traceback (most recent call last)"


def stories(tools: Tools) -> list[Kind]:
    """Read and classified at once: without a child, without a model."""

    @job(name=KIND, application="documents", codes=CODES)
    async def document(ctx: Context, ask: Ask) -> Classified:
        database = await tools.retoma.database()
        wanted = await database.read(lambda tx: store.documents.wanted_of(tx, ask.document))
        code = wanted.name.partition(".")[0]
        if code in CODES and ctx.generation == 1:
            raise Permanent(CODES[code].meaning, code=code)

        async def read() -> dict[str, str]:
            return {"text": f"lido de {wanted.code} {HOSTILE} " + "x" * 30_000}

        await ctx.step(READ, read)
        unsure = wanted.name == UNSURE
        return Classified(
            wanted.rules.names[unsure], 0.4 if unsure else 0.9, f"porque {HOSTILE}", "m",
            review=unsure, cut=unsure, pages=3,
        )  # fmt: skip

    return [document.kind]  # type: ignore[attr-defined]


TOLD = replace(APP, stories=f"{__name__}:stories", mend=None, schedules=())


@asynccontextmanager
async def site_of(url: str, **settings: Any) -> AsyncIterator[Site[House]]:
    async with house(url, TOLD) as there, pages(there, TOLD, url, **settings) as site:
        yield site


def at(execution: int, document: int | None = None) -> str:
    below = "" if document is None else f"/documento/{document}"
    return f"/classificador/execucao/{execution}{below}"


def some() -> list[NewDocument]:
    """One that is well, one that is not, one that a person should look at, and a copy of the first."""
    hostile = replace(paper("A-1", "bom.pdf"), code=f"A-1 {HOSTILE}")
    return [
        hostile,
        paper("A-2", BAD),
        paper("A-3", UNSURE),
        paper("A-4", COPY, content="A-1"),
    ]


# — what is seen —


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url):
    """With nothing to show it says what to do; then with words that are markup. A viewer has no buttons."""
    async with site_of(database_url, document_folders="/srv") as site:
        seen = {path: await site.seen(path, site.viewer) for path in PLACES}
        assert "Ainda não há execuções. Crie um projeto" in seen[HOME]
        assert "Um operador envia documentos aqui" in seen[NEW]
        assert "Ainda não há projetos" in seen[PROJECTS]
        assert "Ainda não há projeto:" in await site.seen(NEW)
        await _menu_and_doors(site)

        labels = (*RULES.labels[:1], replace(RULES.labels[1], description=HOSTILE))
        rules = replace(RULES, labels=labels, instructions=HOSTILE)
        execution = await site.house.execution(some(), rules, name=f"PGE {HOSTILE}")
        assert "data-folder " in await site.seen(NEW)  # somebody allowed one
        below = [at(execution), f"{PROJECTS}/1"]
        for path in below[:1]:  # while there is something to do
            assert 'form="do-' in await site.seen(path)
        await _looked_at_by_all(site, [*PLACES, *below])
        await site.house.drained()
        ids = [each["id"] for each in await site.house.results(execution)]
        below += [at(execution, each) for each in ids]
        below += [f"{at(execution)}?status=ERRO&rotulo=&revisar=&erro=corrupt"]
        seen = await _looked_at_by_all(site, [*PLACES, *below])
        for path in (HOME, PROJECTS, *below[:3]):
            assert HOSTILE in seen[path], path
        for path in (at(execution), at(execution, ids[1])):  # what failed, by who reads it
            english = (await site.operator.get(path, headers=EN)).text
            assert (True, False) == (
                "the file is broken" in english,
                "o arquivo está corrompido" in english,
            ), path
            assert "o arquivo está corrompido" in seen[path], path


async def _looked_at_by_all(site: Site[House], paths: Sequence[str]) -> dict[str, str]:
    seen = {}
    for who, headers in ((site.admin, PT), (site.operator, EN), (site.viewer, PT)):
        for path in paths:
            answer = await who.get(path, headers=headers)
            assert answer.status_code == 200, (path, answer.text)
            assert "<script>alert" not in answer.text
            assert not re.search(r"\sstyle=|\son\w+=", answer.text), path
            seen[path] = unescape(answer.text)
            steers = re.search(
                r'="do-|data-open|id="intake"|id="project"|href="/classificador/nova',
                answer.text,
            )
            assert steers is None or who is not site.viewer, path
    return seen


async def _menu_and_doors(site: Site[House]) -> None:
    """What is not there is told as a page; nobody looks without a key."""
    for path, word in {"/classificador": "Classificador", PROJECTS: "Projetos"}.items():  # fmt: skip
        drawn = await site.seen(path, site.viewer)
        current = re.findall(r'<a href="([^"]*)" aria-current="page">([^<]*)<', drawn)
        assert current == [(path, word)]
    wrong = {
        at(999): 404,
        at(999, 1): 404,
        "/classificador/documento/999": 404,
        f"{PROJECTS}/999": 404,
        f"{HOME}?cursor=forged": 422,
        f"{HOME}?status=nonsense": 422,
        f"{at(1)}?revisar=nonsense": 422,
        "/classificador/execucao/nonsense": 422,
    }
    for path, status in wrong.items():
        answer = await site.viewer.get(path, headers=PT)
        assert answer.status_code == status, path
        assert "text/html" in answer.headers["content-type"]
    nobody = client(site.site)
    for path in ("/classificador/", "/classificador", PROJECTS, at(1), at(1, 1)):
        assert (await nobody.get(f"/live{path}")).status_code == 401
    await nobody.aclose()


async def test_results_are_filtered_and_the_labels_drawn(database_url):
    async with site_of(database_url) as site:
        execution = await site.house.execution(some())
        waiting = await site.seen(at(execution))
        assert "Nenhum documento tem rótulo ainda" in waiting
        await site.house.drained()
        rows = re.compile(r'<tr id="document-(\d+)"')
        one, bad, unsure, copy = [
            str(each["id"]) for each in await site.house.results(execution)
        ]
        wanted = {
            "": [one, bad, unsure, copy],
            "?status=ERRO": [bad],
            "?rotulo=peti%C3%A7%C3%A3o": [one, copy],
            "?revisar=1": [unsure],
            "?revisar=0&status=CONCLUIDO": [one, copy],
            "?erro=corrupt": [bad],
            "?status=PENDENTE": [],
        }
        for query, ids in wanted.items():
            page = await site.seen(at(execution) + query, site.viewer)
            assert ids == rows.findall(page), query
        assert "Nenhum documento desta execução está assim agora" in page
        found = await site.operator.get(
            f"/classificador/execucoes/{execution}/resultados", params={"revisar": True}
        )
        assert [int(unsure)] == [each["id"] for each in found.json()["items"]]

        page = await site.seen(at(execution), site.viewer)
        assert "A maioria tem petição: 2 de 3" in page
        assert re.search(
            r'petição</a></td><td class="num">2</td><td class="num quiet">67 %', page
        )
        assert page.count("<rect x=") == 2
        assert re.search(
            r'corrupt</code><span class="sub"[^>]*>o arquivo está corrompido', page
        )
        assert '<a href="/classificador/projeto/1">PGE</a>' in page
        for format_ in ("csv", "json"):
            link = f"/classificador/execucoes/{execution}/exportar?format={format_}"
            assert f'href="{link}"' in page
            assert (await site.viewer.get(link)).status_code == 200
        await site.operator.delete("/classificador/projetos/1")
        page = await site.seen(at(execution), site.viewer)
        assert "projeto 1" in page
        assert 'href="/classificador/projeto/1"' not in page


async def test_a_document_shows_its_text_and_why_and_a_stack_is_for_admins(database_url):
    """The label with its description, how sure, what was cut, whose answer it is; C8."""
    async with site_of(database_url) as site:
        execution = await site.house.execution(some())
        one, bad, unsure, copy = [each["id"] for each in await site.house.results(execution)]
        assert "Nada foi lido dele ainda" in await site.seen(at(execution, one))
        await site.house.drained()

        page = await site.seen(at(execution, unsure), site.viewer)
        for word in ("sentença", "uma decisão", "40 %", f"porque {HOSTILE}", "lido de A-3"):
            assert word in page, word
        assert "uma parte: no máximo 24.000 caracteres" in page
        assert "Os primeiros 20.000 de 30." in page
        assert "revisar" in page
        whole = f"/classificador/execucoes/{execution}/documentos/{unsure}/texto"
        assert f'href="{whole}"' in page
        assert len((await site.viewer.get(whole)).text) > 30_000
        page = await site.seen(at(execution, copy), site.viewer)
        assert f"mesmo conteúdo do documento {one}: não foi pago de novo" in page
        led = await site.viewer.get(f"/classificador/documento/{one}", headers=PT)
        assert (303, at(execution, one)) == (led.status_code, led.headers["location"])

        for path in (at(execution), at(execution, bad)):
            assert STACK in await site.seen(path, site.admin), path
            for who in (site.operator, site.viewer):
                page = await site.seen(path, who)
                assert "o arquivo está corrompido" in page
                assert STACK not in page, path


# — what comes in —


async def test_a_project_is_made_changed_and_removed_on_its_page(database_url):
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site, "operator")
        labels = {"rotulo": ["petição", "sentença", ""], "descricao": ["um pedido", "", ""]}
        bad: list[dict[str, Any]] = [
            {"nome": "PGE"},
            {"nome": "", **labels},
            {"nome": "PGE", "rotulo": "a", "confianca_minima": "muita"},
            {"nome": "PGE", "rotulo": "a", "confianca_minima": "2"},
            {"nome": "PGE", "rotulo": "", "descricao": "sem nome"},
            {"nome": "PGE", "rotulo": ["a", "A"]},
        ]
        for form in bad:
            refused = await posted(browser, f"{PROJECTS}/novo", csrf, **form)
            assert refused.status_code == 422, form
        assert [(0,)] == await site.house.rows("SELECT count(*) FROM document_projects")

        made = await posted(
            browser, f"{PROJECTS}/novo", csrf, nome="PGE", confianca_minima="0,7", **labels
        )
        assert (204, PROJECTS) == (made.status_code, made.headers["hx-redirect"])
        told_ = (await site.viewer.get("/classificador/projetos/1")).json()
        assert (["petição", "sentença"], 0.7, "um pedido") == (
            [each["nome"] for each in told_["rotulos"]],
            told_["confianca_minima"],
            told_["rotulos"][0]["descricao"],
        )
        assert "2 rótulos" in await site.seen(PROJECTS)
        shown = await site.seen(f"{PROJECTS}/1")
        assert 'value="petição"' in shown
        await posted(browser, f"{PROJECTS}/1", csrf, nome="PGE 2", rotulo="ofício")
        assert "ofício" in await site.seen(f"{PROJECTS}/1", site.viewer)
        assert "1 rótulo<" in await site.seen(PROJECTS)
        twice = await posted(browser, f"{PROJECTS}/novo", csrf, nome="PGE 2", rotulo="a")
        assert twice.status_code == 409
        assert 204 == (await posted(browser, f"{PROJECTS}/1/remover", csrf)).status_code
        assert 404 == (await site.viewer.get(f"{PROJECTS}/1", headers=PT)).status_code
        await browser.aclose()


async def test_files_come_in_one_by_one_and_begin_together(database_url):
    """By a browser's cookie and its token; a manifest calls all of them, or nothing is begun."""
    async with site_of(database_url) as site:
        await site.house.project()
        shown = await site.seen(f"{NEW}?projeto=1")
        assert '<option value="1" selected>' in shown
        assert "data-folder " not in shown
        browser, csrf = await signed_in(site, "operator")
        headers = {**FORM, "X-CSRF-Token": csrf, "Content-Type": "application/octet-stream"}
        came = []
        for n in range(3):
            sent = await browser.post(
                "/classificador/arquivos",
                params={"nome": f"pasta/{n}.txt"},
                headers=headers,
                content=f"texto {n}".encode(),
            )
            assert sent.status_code == 200, sent.text
            came += sent.json()["documentos"]

        async def begun(headers: dict[str, str], **said: Any) -> httpx2.Response:
            body = {"projeto_id": 1, "documentos": came, **said}
            blank = " " * 100_000  # a large body is read from a file
            sent = f"{json.dumps(body)}{blank}"
            given = {**headers, "content-type": "application/json"}
            return await browser.post(NEW, headers=given, content=sent)

        asked = {**FORM, "X-CSRF-Token": csrf, "Idempotency-Key": "k-1"}
        names = "".join(f"C-{n};pasta/{n}.txt\n" for n in range(3))
        bad: list[tuple[int, dict[str, Any]]] = [
            (404, {"projeto_id": 9}),
            (422, {"documentos": []}),
            (422, {"documentos": [came[0], came[0]]}),
            (422, {"documentos": [{**came[0], "codigo": "a\0"}]}),
            (422, {"documentos": [{**came[0], "sha256": "0" * 64}]}),
            (422, {"manifesto": "codigo,arquivo\nC-1,pasta/1.txt\n"}),
            (422, {"manifesto": f"codigo;arquivo\n{names}C-9;outro.txt\n"}),
            (422, {"manifesto": "nome\n"}),
            (422, {"cor": "azul"}),
        ]
        for status, said in bad:
            refused = await begun({**asked, "Idempotency-Key": "bad"}, **said)
            assert status == refused.status_code, (said, refused.text)
        assert 403 == (await begun({**asked, "X-CSRF-Token": "forged"})).status_code
        assert [(0,)] == await site.house.rows("SELECT count(*) FROM executions")

        how = {"nome": "maio", "manifesto": f"codigo;arquivo\n{names}"}
        made = [await begun(asked, **how) for _ in range(2)]  # a second click
        assert [{"address": at(1)}] * 2 == [each.json() for each in made]
        assert ["C-0", "C-1", "C-2"] == [each["codigo"] for each in await site.house.results(1)]
        shown = await site.seen(at(1))
        assert "<h1>maio</h1>" in shown
        assert "PENDENTE <b>3</b>" in shown
        await browser.aclose()


# — what is done —


async def test_c3_a_stuck_execution_says_so_and_goes_on_by_a_button(database_url, test_clock):
    """C3 C5: the message, the route, both buttons; after the last resume an admin alone goes on."""
    async with site_of(database_url) as site:
        rules = replace(RULES, max_retries_execucao=1)
        execution = await site.house.execution([paper("A-1"), paper("A-2", BAD)], rules)
        page = at(execution)
        fresh = await site.seen(page, site.viewer)
        assert "nenhum executor vivo" in fresh
        assert "data-silence" in fresh
        assert "data-moving" in fresh
        await site.house.left_by_a_dead_runner(execution)
        await site.house.idle_runner()
        test_clock.jump(QUIET)

        stuck = await site.seen(page)
        assert re.search(r'class="state big stalled">TRAVADO<', stuck)
        assert "A execução está travada." in stuck
        assert "Rota afetada: <code>/classificador/</code>." in stuck
        assert re.search(r'class="primary" form="do-retomar">Continuar de onde parou<', stuck)
        assert "data-moving" not in stuck
        main = (
            (await site.seen(page, site.viewer)).partition("<main")[2].partition("</main>")[0]
        )
        assert ["Filtrar"] == re.findall(r"<button[^>]*>([^<]*)", main)
        browser, csrf = await signed_in(site, "operator")
        assert "is resumed where it stopped" in told(
            await posted(browser, f"{page}/retomar", csrf)
        )
        assert "EM_ANDAMENTO" == (await site.house.stand(execution)).status

        await site.house.held_by("dead", execution)
        test_clock.jump(QUIET)
        spent = await site.seen(page)
        assert (
            "Continuar"
            not in spent.partition('id="execution-head"')[2].partition("</section>")[0]
        )
        assert (await posted(browser, f"{page}/retomar", csrf)).status_code == 409
        assert (await posted(browser, f"{page}/forcar", csrf)).status_code == 403
        assert 'form="do-forcar"' in await site.seen(page, site.admin)
        adam, theirs = await signed_in(site, "admin")
        told(await posted(adam, f"{page}/forcar", theirs))
        await site.house.drained()

        done = await site.seen(page)
        assert re.search(r'form="do-reprocessar">Reprocessar apenas erros<', done)
        assert "Cancelar<" not in done
        told(await posted(browser, f"{page}/reprocessar", csrf))
        await site.house.drained()
        assert "CONCLUIDO <b>2</b>" in await site.seen(page)
        assert (await posted(browser, f"{page}/voar", csrf)).status_code == 404
        assert (await posted(browser, f"{at(99)}/retomar", csrf)).status_code == 404
        for each in (browser, adam):
            await each.aclose()


async def test_why_an_execution_waits_is_told_and_it_can_be_let_go_or_canceled(database_url):
    """EM_ANDAMENTO that waits is not TRAVADO: the page says for what."""
    async with site_of(database_url) as site:
        execution = await site.house.execution([paper("A-1"), paper("A-2")])
        await site.house.held_by_nobody(execution)
        await (await site.house.app.batches.get(execution)).pause()
        waits = await site.seen(at(execution))
        assert "Há documentos esperando:" in waits
        assert "pausad" in waits
        assert re.search(r'form="do-retomar">Continuar de onde parou<', waits)
        browser, csrf = await signed_in(site, "operator")
        told(await posted(browser, f"{at(execution)}/retomar", csrf))
        assert "pausad" not in await site.seen(at(execution))
        told(await posted(browser, f"{at(execution)}/cancelar", csrf))
        told(await posted(browser, f"{at(execution)}/cancelar", csrf))  # a second click
        over = await site.seen(at(execution))
        assert "PULADO <b>2</b>" in over
        assert "cancelada por Bia" in over
        await browser.aclose()


async def test_h20_a_document_is_skipped_by_a_person_with_a_reason_and_a_viewer_does_nothing(
    database_url,
):
    async with site_of(database_url) as site:
        execution = await site.house.execution(some()[:2])
        one, bad = [each["id"] for each in await site.house.results(execution)]
        browser, csrf = await signed_in(site, "operator")
        where = f"{at(execution, one)}/pular"
        assert (await posted(browser, where, csrf)).status_code == 422
        told(await posted(browser, where, csrf, motivo=f"não é nosso {HOSTILE}"))
        assert (await posted(browser, f"{at(execution, 99)}/pular", csrf, motivo="x")).status_code == 404  # fmt: skip
        page = await site.seen(at(execution, one))
        assert f"Pulado: não é nosso {HOSTILE} (Bia)" in page
        assert 'data-open="ask-skip"' not in page
        assert 'data-open="ask-skip"' in await site.seen(at(execution, bad))
        await browser.aclose()

        viewer, theirs = await signed_in(site, "viewer")
        paths = [f"{at(execution)}/{verb}" for verb in ("retomar", "forcar", "reprocessar", "cancelar")]  # fmt: skip
        paths += [f"{at(execution, bad)}/pular", NEW, f"{PROJECTS}/novo", f"{PROJECTS}/1"]
        for path in (*paths, f"{PROJECTS}/1/remover"):
            refused = await posted(viewer, path, theirs, motivo="x", nome="x", rotulo="x")
            assert refused.status_code == 403, path
        statuses = [each["status"] for each in await site.house.results(execution)]
        assert ["PULADO", "PENDENTE"] == statuses
        await viewer.aclose()


# — live —


async def test_what_moves_goes_out_as_the_rows_that_moved(database_url):
    assert CONCERN.met(Slice([replace(told_of(job=1), kind=KIND)], [], None))
    assert not CONCERN.met(Slice([replace(told_of(job=1), kind="ads.session")], [], None))
    async with site_of(database_url) as site:
        execution = await site.house.execution([paper("A-1"), paper("A-2")])
        one, two = await site.house.results(execution)
        screen = ExecutionScreen(site.site.state.pages, site.view(), execution)
        before = await screen.draw()
        page = (await site.operator.get(at(execution), headers=PT)).text
        assert all(each.html in page for each in before)
        assert [] == [each.id for each in changes(before, await screen.draw())]

        await site.house.app.skip(one["job"], "porque sim", actor=WHO)
        moved = {each.id: each.html for each in changes(before, await screen.draw())}
        assert moved.keys() == {"execution-head", f"document-{one['id']}"}
        assert "PULADO" in moved[f"document-{one['id']}"]
        lives = ("/classificador/", PROJECTS, at(execution), at(execution, two["id"]))
        for path in lives:
            once = await site.viewer.get(f"/live{path}", headers={"Retoma-Once": "1"})
            assert once.text.count("<hx-partial") >= 2, path


async def test_executions_and_documents_are_read_page_by_page(database_url):
    async with site_of(database_url) as site:
        papers = [paper(f"A-{n:03}") for n in range(ROWS + 1)]
        last = await site.house.execution(papers)

        def one(tx: Any) -> None:
            keep(tx, papers[:1])
            for _ in range(LIST):
                store.executions.add_execution(tx, 1, papers[:1], actor=WHO)

        await site.house.app.write(one)
        rows = re.compile(r'<tr id="(?:execution|document)-(\d+)"')
        for path, n in {HOME: LIST + 1, f"{at(last)}?status=PENDENTE": ROWS + 1}.items():
            first = await site.seen(path, site.viewer)
            [following] = re.findall(r'href="([^"]+)" rel="next"', first)
            second = await site.seen(following, site.viewer)
            seen = [int(each) for each in (*rows.findall(first), *rows.findall(second))]
            assert seen == sorted(seen, reverse=path == HOME)
            assert n == len(set(seen)) == len(seen), path


def test_bars_are_as_long_as_they_are_many():
    bars = bars_of({"a": 10, "b" * 100: 5} | {f"c{n}": 1 for n in range(PLOTTED)})
    assert PLOTTED == len(bars)
    assert [LONGEST, LONGEST / 2] == [each.width for each in bars[:2]]
    assert "…" == bars[1].written[-1]
    assert [] == list(bars_of({}))


def test_shares_are_near_and_neither_nothing_nor_all_before_they_are():
    shares = {(2, 3): 0.67, (1, 6): 0.17, (1, 1_000): 0.001, (999, 1_000): 0.999, (3, 3): 1.0}
    assert shares == {each: share_of(*each) for each in shares}
