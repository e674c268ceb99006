"""What people do with one document: its file, its label, another try, out of the way; and what comes of labels."""

import csv
import io
import json
from functools import partial
from typing import Any

import httpx2
import pytest

from retoma.apps.documents import service, store
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from tests.apps import verbs
from tests.apps.documents.aids import TOLD, WHO, House, house, paper
from tests.apps.documents.test_pages import at, site_of
from tests.apps.people import EN, people
from tests.apps.verbs import chosen, verb
from tests.web.test_more_pages import posted
from tests.web.test_more_pages import told as told_of
from tests.web.test_sign_in import signed_in

__all__ = ["chosen", "verb"]  # fixtures, for this module too

typed, said = partial(verbs.typed, "documents"), partial(verbs.said, "documents")
HARM = b"<html><script>alert(document.cookie)</script>"
NAME = '../=cmd|"x".html'
RIGHT, OTHER = "petição", "sentença"


async def done(there: House, *names: str) -> tuple[int, list[dict[str, Any]]]:
    execution = await there.execution([paper(f"A-{n}", name) for n, name in enumerate(names)])
    await there.drained()
    return execution, await there.results(execution)


async def test_the_original_is_saved_and_never_shown(database_url):
    """Whatever it holds and is called: no page of ours, no script, no path; for whoever may read texts."""
    async with house(database_url) as there, people(there.app, TOLD, database_url) as who:
        olga, vera = who["operator"], who["viewer"]
        sent = await olga.post("/classificador/arquivos", params={"nome": NAME}, content=HARM)
        [came] = sent.json()["documentos"]
        project = await there.project()
        made = await olga.post(
            "/classificador/execucoes", json={"projeto_id": project, "documentos": [came]}
        )
        [told] = await there.results(made.json()["id"])
        place = f"/classificador/execucoes/{made.json()['id']}/documentos"
        answer = await vera.get(f"{place}/{told['id']}/original")

        assert (200, HARM) == (answer.status_code, answer.content)
        head = answer.headers
        assert "application/octet-stream" == head["content-type"]
        assert head["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert not {'"', "/", "<"} & set(head["content-disposition"].removeprefix("attachment"))
        assert "sandbox" in head["content-security-policy"]
        assert "nosniff" == head["x-content-type-options"]
        assert str(len(HARM)) == head["content-length"]
        assert 404 == (await vera.get(f"{place}/99/original")).status_code
        nobody = httpx2.AsyncClient(transport=vera._transport, base_url=vera.base_url)
        assert 401 == (await nobody.get(f"{place}/{told['id']}/original")).status_code
        await there.change("DELETE FROM document_pieces")
        await there.change("DELETE FROM document_contents")
        assert 404 == (await vera.get(f"{place}/{told['id']}/original")).status_code


async def test_a_label_is_confirmed_or_corrected_and_the_last_word_counts(database_url):
    """Only by a label of the set, only where there is one; every word is in the audit log."""
    async with house(database_url) as there, people(there.app, TOLD, database_url) as who:
        execution, results = await done(there, "a.pdf", "b.pdf", "corrupt.pdf")
        first, second, failed = (each["id"] for each in results)
        review = partial(service.documents.review_document, there.app, execution, actor=WHO)
        assert [True, False, True] == [
            await review(first, RIGHT),
            await review(second, OTHER),
            await review(second, RIGHT),
        ]
        assert not await review(second, OTHER)
        with pytest.raises(BadInput, match="petição, sentença"):
            await review(first, "receita de bolo")
        with pytest.raises(IllegalMove, match="no label yet"):
            await review(failed, RIGHT)
        with pytest.raises(NotFound):
            await review(99, RIGHT)

        told = {each["id"]: each for each in await there.results(execution)}
        assert [(RIGHT, RIGHT, WHO), (RIGHT, OTHER, WHO), (None, None, None)] == [
            tuple(told[each][name] for name in ("rotulo", "rotulo_revisado", "revisado_por"))
            for each in (first, second, failed)
        ]
        here = f"/classificador/execucoes/{execution}"
        viewer = who["viewer"]
        labels = (await viewer.get(f"{here}/rotulos")).json()
        assert {RIGHT: 1, OTHER: 1} == labels
        chosen = (await viewer.get(f"{here}/resultados", params={"rotulo": OTHER})).json()
        assert [second] == [each["id"] for each in chosen["items"]]
        audit = await there.rows(
            "SELECT count(*) FROM audit WHERE verb = 'documents.label_reviewed'"
        )
        assert [(4,)] == [tuple(row) for row in audit]
        refused = await viewer.post(
            f"{here}/documentos/{first}/revisar", json={"rotulo": OTHER}
        )
        assert 403 == refused.status_code


async def test_reviews_are_a_labelled_set_and_say_how_often_the_model_was_right(
    database_url, verb
):
    async with house(database_url) as there, people(there.app, TOLD, database_url) as who:
        execution, results = await done(there, "a.pdf", "=b.pdf", "c.pdf", "d.pdf")
        assert "nobody has reviewed" in (await typed(verb, "accuracy", "PGE")).out
        for each, label in zip(results, (RIGHT, OTHER, RIGHT), strict=False):
            code = each["codigo"]
            told = await said(verb, "review", str(execution), code, label)
            assert (code, label) == (told["codigo"], told["rotulo_revisado"])
        shares = await said(verb, "accuracy", "PGE")
        printed = (await typed(verb, "reviews", "PGE")).out
        viewer, project = who["viewer"], "/classificador/projetos/1"
        [share] = (await viewer.get(f"{project}/acerto")).json()
        assert (RIGHT, 3, 2, 0.6667, {OTHER: 1}) == tuple(share.values())
        assert [share] == shares

        lines = (await viewer.get(f"{project}/revisoes")).text
        assert lines == printed
        rows = [json.loads(line) for line in lines.splitlines()]
        assert [(RIGHT, RIGHT), (RIGHT, OTHER), (RIGHT, RIGHT)] == [
            (each["rotulo_modelo"], each["rotulo"]) for each in rows
        ]
        assert {"sha256", "texto", "revisado_por", "revisado_em"} <= rows[0].keys()
        table = (await viewer.get(f"{project}/revisoes?format=csv")).text
        read = list(csv.DictReader(io.StringIO(table)))
        assert ["a.pdf", "'=b.pdf", "c.pdf"] == [each["arquivo"] for each in read]
        assert 404 == (await viewer.get("/classificador/projetos/9/revisoes")).status_code


async def test_one_is_tried_again_and_errors_are_reprocessed_or_skipped_by_code(
    database_url, verb
):
    async with house(database_url) as there:
        names = ("corrupt.pdf", "corrupt.pdf", "empty.pdf", "needs_ocr.pdf", "key.pdf", "a.pdf")
        execution, _ = await done(there, *names)
        number = str(execution)
        alone = await said(verb, "retry", number, "A-0")
        assert ("PENDENTE", None) == (alone["status"], alone["rotulo"])
        await there.drained()
        assert ["CONCLUIDO", "ERRO", "ERRO", "ERRO", "PENDENTE", "CONCLUIDO"] == await statuses(
            there, execution
        )
        assert "only one that failed" in (await typed(verb, "retry", number, "A-5")).err
        assert "say what to skip" in (await typed(verb, "skip", number, "--why", "x")).err

        skipped = await said(verb, "skip", number, "--error", "empty", "--why", "em branco")
        assert 1 == skipped["pulados"]
        one = await said(verb, "skip", number, "--document", "A-4", "--why", "sem chave")
        assert 1 == one["pulados"]
        again = await said(verb, "reprocess", number, "--error", "corrupt")
        assert (True, 1) == (again["alterada"], again["reprocessados"])
        await there.drained()
        assert [
            *("CONCLUIDO", "CONCLUIDO", "PULADO", "ERRO", "PULADO", "CONCLUIDO")
        ] == await statuses(there, execution)
        assert not (await said(verb, "reprocess", number, "--error", "corrupt"))["alterada"]


async def statuses(there: House, execution: int) -> list[str]:
    return [each["status"] for each in await there.results(execution)]


async def test_one_that_came_in_is_left_out_before_anything_is_begun(
    database_url, tmp_path, verb
):
    """By API and command line; a code that nobody sent is refused, and nothing is begun."""
    async with house(database_url) as there, people(there.app, TOLD, database_url) as who:
        await there.project()
        folder = tmp_path / "pasta"
        folder.mkdir()
        for name in ("a.txt", "b.txt"):
            (folder / name).write_text(name)
        left = await said(
            verb, "classify", str(folder), "--project", "PGE", "--except", "b.txt"
        )
        assert 1 == left["documentos"]
        assert ["a.txt"] == [e["codigo"] for e in await there.results(left["execucao"])]
        one = tmp_path / "fora.txt"
        wrote = await typed(verb, "original", str(left["execucao"]), "a.txt", "--to", str(one))
        assert (0, "a.txt") == (wrote.code, one.read_text())
        again = await typed(verb, "original", str(left["execucao"]), "a.txt", "--to", str(one))
        assert (True, "a.txt") == (again.code != 0, one.read_text())

        olga, project = who["operator"], 1
        came = []
        for name in ("a.txt", "b.txt"):
            sent = await olga.post(
                "/classificador/arquivos?nome=" + name, content=name.encode()
            )
            came += sent.json()["documentos"]
        body = {"projeto_id": project, "documentos": came}
        bad = await olga.post("/classificador/execucoes", json={**body, "sem": ["c.txt"]})
        assert (422, True) == (bad.status_code, "c.txt" in bad.text), bad.text
        assert [(1,)] == await there.rows("SELECT count(*) FROM executions")
        made = await olga.post("/classificador/execucoes", json={**body, "sem": ["a.txt"]})
        assert ["b.txt"] == [e["codigo"] for e in await there.results(made.json()["id"])]


async def test_the_pages_do_the_same(database_url):
    """The buttons stand where something can be done; what is posted is done once and said."""
    async with site_of(database_url) as site:
        there = site.house
        names = ("bom.pdf", "corrupt.pdf", "empty.pdf")
        execution = await there.execution(
            [paper(f"A-{n}", name) for n, name in enumerate(names)]
        )
        await there.drained()
        good, bad, empty = (each["id"] for each in await there.results(execution))
        seen = await site.seen(at(execution, good))
        assert 'data-open="ask-review"' in seen
        assert f"/documentos/{good}/original" in seen
        assert 'form="do-repetir"' in await site.seen(at(execution, bad))
        assert 'name="erro" value="corrupt"' in await site.seen(at(execution))
        assert 'data-open="ask-review"' not in await site.seen(at(execution, good), site.viewer)

        browser, csrf = await signed_in(site, "operator")
        for path, form in (
            (f"{at(execution, good)}/revisar", {"rotulo": OTHER}),
            (f"{at(execution, bad)}/repetir", {}),
            (f"{at(execution)}/pular-erros", {"erro": "empty", "motivo": "em branco"}),
        ):
            told_of(await posted(browser, path, csrf, **form))
        await there.drained()
        told = {each["id"]: each for each in await there.results(execution)}
        assert (OTHER, "CONCLUIDO", "PULADO") == (
            told[good]["rotulo_revisado"],
            told[bad]["status"],
            told[empty]["status"],
        )
        seen = await site.seen(at(execution, good))
        assert f"o modelo disse {RIGHT}" in seen
        page = await site.operator.get("/classificador/projeto/1", headers=EN)
        assert "Accuracy by label" in page.text
        assert "/revisoes?format=jsonl" in page.text


async def test_what_a_person_labelled_is_not_to_be_looked_at_any_more(database_url):
    async with site_of(database_url) as site:
        there = site.house
        execution = await there.execution([paper("A-1", "duvidoso.pdf")])
        await there.drained()
        [before] = await there.results(execution)
        await there.app.write(
            lambda tx: store.documents.review(tx, execution, before["id"], RIGHT, actor=WHO)
        )
        [after] = await there.results(execution)

        assert (True, False) == (bool(before["revisar"]), bool(after["revisar"]))
