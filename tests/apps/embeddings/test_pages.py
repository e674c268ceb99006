"""Embeddings in Mission Control: collections and runners, one collection, what failed, search, texts that come in."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

from retoma.apps.embeddings import APP
from retoma.apps.embeddings.pages.collection import ROWS
from retoma.apps.embeddings.pages.collections import LIST, CollectionsScreen
from retoma.apps.embeddings.providers import NGrams
from retoma.engine.rules.errors import Permanent
from retoma.web.pages.live import changes
from tests.apps.embeddings.aids import COLLECTION, Counting, House, house
from tests.apps.people import EN, PT, Site, pages
from tests.web.aids import client
from tests.web.test_more_pages import posted, told
from tests.web.test_pages import HOSTILE
from tests.web.test_sign_in import FORM, signed_in

HOME, DEAD, SEARCH, NEW = (
    "/embeddings",
    "/embeddings/falhas",
    "/embeddings/busca",
    "/embeddings/nova",
)
ONE = f"{HOME}/colecao/{COLLECTION}"
PLACES = (HOME, DEAD, SEARCH, NEW)
STEERS = r'="do-|id="replay|id="texts"|id="paste"|href="/embeddings/nova'


@asynccontextmanager
async def site_of(url: str, **settings: Any) -> AsyncIterator[Site[House]]:
    ours = Counting(model=NGrams.model, refuses={"veneno": "refused"})
    async with house(url, ours) as there, pages(there, APP, url, **settings) as site:
        yield site


# — what is seen —


async def test_every_page_is_drawn_for_every_role_in_both_languages(database_url):
    """With nothing to show it says what to do; then with words that are markup. A viewer has no buttons."""
    async with site_of(database_url) as site:
        seen = {path: await site.seen(path, site.viewer) for path in PLACES}
        assert (
            "Ainda não há coleções. Envie textos; no terminal: <code>retoma embed" in seen[HOME]
        )
        assert "Nenhum erro na fila." in seen[DEAD]
        assert "Ainda não há coleções." in seen[SEARCH]
        assert "Um operador envia textos aqui" in seen[NEW]
        await _menu_and_doors(site)

        await site.house.add(
            (f"bom {HOSTILE}", f"uma laranja {HOSTILE} doce"), ("mau.txt", "veneno")
        )
        assert "pending" in await site.seen(ONE)
        await _looked_at_by_all(site, [*PLACES, ONE])
        await site.house.drained()
        below = [
            ONE,
            f"{ONE}?prontos=1",
            f"{ONE}?prontos=0&depois=",
            f"{DEAD}?erro=refused",
            f"{SEARCH}?q=laranja+{HOSTILE}&colecao={COLLECTION}&prefixo=&quantos=25",
        ]
        seen = await _looked_at_by_all(site, [*PLACES, *below])
        for path in (ONE, below[1], below[4]):
            assert HOSTILE in seen[path], path
        assert "mau.txt" not in seen[below[1]]
        assert "mau.txt" in seen[below[2]]
        assert "o serviço não aceita este texto" in seen[DEAD]


async def _looked_at_by_all(site: Site[House], paths: Sequence[str]) -> dict[str, str]:
    seen = {}
    for who, headers in ((site.admin, PT), (site.operator, EN), (site.viewer, PT)):
        for path in paths:
            answer = await who.get(path, headers=headers)
            assert answer.status_code == 200, (path, answer.text)
            assert "<script>alert" not in answer.text
            assert not re.search(r"\sstyle=|\son\w+=", answer.text), path
            seen[path] = unescape(answer.text)
            assert not re.search(STEERS, answer.text) or who is not site.viewer, path
    return seen


async def _menu_and_doors(site: Site[House]) -> None:
    """What is not there is told as a page; nobody looks without a key."""
    for path, word in {HOME: "Coleções", SEARCH: "Busca", DEAD: "O que falhou"}.items():
        drawn = await site.seen(path, site.viewer)
        current = re.findall(r'<a href="([^"]*)" aria-current="page">([^<]*)<', drawn)
        assert current == [(path, word)]
    wrong = {
        f"{HOME}/colecao/nada": 404,
        f"{HOME}/colecao/nada?prontos=nonsense": 422,
        f"{DEAD}?antes=nonsense": 422,
        f"{SEARCH}?quantos=1000": 422,
    }
    for path, status in wrong.items():
        answer = await site.viewer.get(path, headers=PT)
        assert answer.status_code == status, path
        assert "text/html" in answer.headers["content-type"]
    nobody = client(site.site)
    for path in (HOME, f"{HOME}/", ONE, DEAD):
        assert (await nobody.get(f"/live{path}")).status_code == 401
    await nobody.aclose()


async def test_collections_show_how_far_they_are_and_what_each_runner_did(database_url):
    async with site_of(database_url) as site:
        await site.house.add(*((f"{n}.txt", f"texto {n}") for n in range(3)), ("m", "veneno"))
        screen = CollectionsScreen(site.site.state.pages, site.view())
        before = await screen.draw()

        await site.house.drained()

        seen = unescape("".join(map(str, changes(before, await screen.draw()))))
        assert "completed <b>3</b>" in seen
        assert "failed <b>1</b>" in seen
        assert "75 %" in seen
        [runner] = re.findall(r'<th scope="row">.*?</tr>', seen, re.DOTALL)
        figures = re.findall(r'<td class="num">([^<]*)</td>', runner)
        assert ["3", "0", "1", "0"] == [figures[1], *figures[3:]]
        summed = dict(re.findall(r"<dt>(\w+)</dt><dd>(\d+)</dd>", seen))
        assert {
            "jobsClaimed": "4",
            "jobsCompleted": "3",
            "jobsFailed": "1",
            "jobsRetried": "0",
            "jobsRecovered": "0",
            "stuckJobCount": "0",
        } == summed


async def test_lists_go_on_page_by_page(database_url):
    async with site_of(database_url) as site:
        for n in range(LIST + 2):
            await site.house.collection(f"c{n:03d}")
        await site.house.add(*((f"{n:03d}.txt", f"texto {n}") for n in range(ROWS + 3)))

        for path, sort in ((HOME, "collection"), (ONE, "document")):
            first = await site.seen(path)
            following = re.search(r'<a class="button" href="([^"]*)" rel="next">', first)
            assert following is not None
            rest = await site.seen(following[1])
            ids = [re.findall(rf'<tr id="{sort}-(\d+)"', each) for each in (first, rest)]
            assert (LIST if sort == "collection" else ROWS) == len(ids[0])
            assert 3 == len(ids[1])
            assert not {*ids[0]} & {*ids[1]}
            assert 'rel="next"' not in rest


# — what is done —


async def test_what_failed_is_replayed_one_by_one_or_all_of_them(database_url):
    async with site_of(database_url) as site:
        await site.house.add(
            ("a.txt", "veneno a"), ("b.txt", "veneno b"), ("c.txt", "veneno c")
        )
        await site.house.drained()
        jobs = [int(each) for each in re.findall(r'id="dead-(\d+)"', await site.seen(DEAD))]
        assert 3 == len(jobs)
        site.house.provider.refuses = {}
        browser, csrf = await signed_in(site)

        one = await posted(browser, f"{DEAD}/{jobs[0]}/repetir", csrf)
        again = await posted(browser, f"{DEAD}/{jobs[0]}/repetir", csrf)
        assert f"job {jobs[0]} is tried again" in told(one)
        assert 409 == again.status_code
        assert 2 == len(re.findall(r'id="dead-(\d+)"', await site.seen(DEAD)))
        every = await posted(browser, f"{DEAD}/repetir", csrf)
        assert "2 documents retried" in told(every)
        await site.house.drained()

        assert "Nenhum erro na fila." in await site.seen(DEAD)
        assert {True} == {each.embedded for each in (await site.house.documents()).values()}
        assert 404 == (await posted(browser, f"{DEAD}/999/repetir", csrf)).status_code
        await browser.aclose()


async def test_parked_documents_are_listed_with_what_failed_and_resumed_one_by_one_or_all(
    database_url,
):
    async with site_of(database_url) as site:
        provider = site.house.provider
        said = "openai: 404 The model 'nada' does not exist"
        provider.fails = [Permanent(said, code="wrong_address") for _ in range(3)]
        provider.most = 1
        for name in ("a.txt", "b.txt", "c.txt"):
            await site.house.add((name, f"uma laranja {name}"))
        await site.house.drained()
        seen = await site.seen(DEAD)
        jobs = [int(each) for each in re.findall(r'id="parked-(\d+)"', seen)]
        assert 3 == len(jobs)
        assert "3 documentos estacionados" in seen
        assert "wrong_address" in seen
        assert "3 documentos · não há tal serviço, ou modelo: openai: 404 The model" in seen
        browser, csrf = await signed_in(site)

        one = await posted(browser, f"{DEAD}/{jobs[0]}/continuar", csrf)
        again = await posted(browser, f"{DEAD}/{jobs[0]}/continuar", csrf)
        assert f"job {jobs[0]} is resumed" in told(one)
        assert 409 == again.status_code
        assert 404 == (await posted(browser, f"{DEAD}/999/continuar", csrf)).status_code
        other = await posted(browser, f"{DEAD}/continuar?erro=outro", csrf)
        assert "0 documents resumed" in told(other)
        every = await posted(browser, f"{DEAD}/continuar", csrf)
        assert "2 documents resumed" in told(every)
        await site.house.drained()

        assert 'id="parked-' not in await site.seen(DEAD)
        assert {True} == {each.embedded for each in (await site.house.documents()).values()}
        done = await posted(browser, f"{DEAD}/{jobs[0]}/repetir", csrf)
        assert (409, True) == (done.status_code, "only a dead job is retried here" in done.text)
        await browser.aclose()


async def test_a_collection_is_embedded_anew_and_deleted(database_url):
    async with site_of(database_url) as site:
        await site.house.add(("a.txt", "uma laranja"), ("b.txt", "uma pera"))
        await site.house.drained()
        browser, csrf = await signed_in(site)

        same = await posted(browser, f"{ONE}/refazer", csrf)
        assert "0 documents are embedded anew" in told(same)
        assert 404 == (await posted(browser, f"{ONE}/nada", csrf)).status_code
        gone = await posted(browser, f"{ONE}/apagar", csrf)

        assert (204, HOME) == (gone.status_code, gone.headers["hx-redirect"])
        assert "Ainda não há coleções" in await site.seen(HOME)
        await browser.aclose()


async def test_nobody_but_an_operator_changes_anything(database_url):
    async with site_of(database_url) as site:
        await site.house.add(("a.txt", "veneno"))
        await site.house.drained()
        browser, csrf = await signed_in(site, "viewer")
        paths = (
            f"{DEAD}/repetir",
            f"{DEAD}/1/repetir",
            f"{DEAD}/continuar",
            f"{ONE}/apagar",
            NEW,
            f"{NEW}/texto",
        )

        for path in paths:
            assert 403 == (await posted(browser, path, csrf)).status_code, path
            assert 403 == (await posted(browser, path, "forged")).status_code, path
        assert "mau" not in await site.seen(HOME)
        await browser.aclose()


# — search —


async def test_what_is_found_is_shown_with_its_words_marked_and_nothing_is_markup(database_url):
    async with site_of(database_url) as site:
        await site.house.add(
            ("frutas/a.txt", f"A <b>laranja</b> é doce {HOSTILE}"),
            ("b.txt", "Um caminhão azul"),
        )
        await site.house.drained()

        answer = await site.viewer.get(
            f"{SEARCH}?q=laranjas+laranja&colecao={COLLECTION}", headers=PT
        )

        assert "&lt;b&gt;<mark>laranja</mark>&lt;/b&gt;" in answer.text
        assert "2 trechos pesquisados." in answer.text
        assert answer.text.index("frutas/a.txt") < answer.text.index("b.txt")
        only = await site.seen(f"{SEARCH}?q=laranja&colecao={COLLECTION}&prefixo=frutas/")
        assert "b.txt" not in only.replace("frutas/a.txt", "")
        none = await site.seen(f"{SEARCH}?q=laranja&colecao={COLLECTION}&metadados=autor%3DAna")
        assert "Nenhum resultado" in none
        said = await site.seen(f"{SEARCH}?q=laranja&colecao={COLLECTION}&metadados=autor")
        assert "metadados são escritos como chave=valor" in said


async def test_a_search_that_cannot_be_says_why(database_url):
    async with site_of(database_url) as site:
        await site.house.collection()

        nothing = await site.seen(f"{SEARCH}?q=laranja&colecao={COLLECTION}")
        assert "Nenhum resultado" in nothing
        unknown = await site.seen(f"{SEARCH}?q=laranja&colecao=nada")
        assert "não existe a coleção 'nada'" in unknown
        too_long = await site.viewer.get(f"{SEARCH}?q={'x' * 10_001}", headers=PT)
        assert 422 == too_long.status_code


# — how texts come in —


def texts(*given: tuple[str, str], **about: Any) -> dict[str, Any]:
    return {
        "colecao": "nova",
        **about,
        "documentos": [{"nome": name, "texto": text} for name, text in given],
    }


async def test_texts_come_in_each_judged_by_itself(database_url):
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site)
        headers = {**FORM, "X-CSRF-Token": csrf, "content-type": "application/json"}
        given = texts(
            ("a", "uma laranja"), ("b", " "), ("c", "nul \0"), ("", "x"), ("d", "pera")
        )

        first = await browser.post(NEW, json=given, headers=headers | PT)
        again = await browser.post(NEW, json=texts(("a", "uma laranja")), headers=headers)
        large = texts(("l", "uma laranja " * 10_000), colecao="larga")
        taken = await browser.post(NEW, json=large, headers=headers)
        await site.house.drained()

        assert 201 == first.status_code, first.text
        assert (201, 1) == (taken.status_code, taken.json()["novos"]), taken.text
        assert (f"{HOME}/colecao/nova", 2) == (first.json()["address"], first.json()["novos"])
        assert ["b", "c", ""] == [each["nome"] for each in first.json()["recusados"]]
        unnamed = first.json()["recusados"][2]
        assert "um documento precisa de um nome de 1 a 500 caracteres" == unnamed["mensagem"]
        assert (0, 1) == (again.json()["novos"], again.json()["ja"])
        assert {"a", "d"} == {*await site.house.documents("nova")}
        await browser.aclose()


async def test_what_makes_no_sense_is_refused_and_nothing_is_changed(database_url):
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site)
        headers = {**FORM, "X-CSRF-Token": csrf, "content-type": "application/json"}
        fruit = ("a", "uma laranja")
        wrong: list[Any] = [
            texts(fruit, colecao="no way"),
            texts(fruit, tamanho=5),
            texts(fruit, tamanho=200, sobreposicao=150),
            texts(fruit, tamanho="x"),
            texts(fruit, other=1),
            texts(),
            [],
        ]
        for told_ in wrong:
            answer = await browser.post(NEW, json=told_, headers=headers)
            assert answer.status_code == 422, answer.text
        broken = await browser.post(NEW, content=b'{"colecao": "\\ud800"', headers=headers)
        large = await browser.post(NEW, json=texts(("a", "x" * (17 << 20))), headers=headers)

        assert (400, 413) == (broken.status_code, large.status_code)
        assert "Ainda não há coleções" in await site.seen(HOME)
        await browser.aclose()


async def test_a_text_is_pasted_into_a_collection_of_that_name(database_url):
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site)
        told_ = {"colecao": "nova", "nome": "nota", "texto": "uma laranja"}

        done = await posted(browser, f"{NEW}/texto", csrf, **told_)
        empty = await posted(browser, f"{NEW}/texto", csrf, **{**told_, "texto": " "})

        assert f"{HOME}/colecao/nova" == done.headers["hx-redirect"]
        assert 422 == empty.status_code
        assert "the text has nothing in it" in empty.text
        await browser.aclose()
