"""Documents over the API: the document's four endpoints, projects, results, and who may do what."""

import asyncio
import io
import zipfile
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from tests.apps.documents.aids import TOLD, House, house, paper
from tests.apps.people import people

PROJECT = {
    "nome": "PGE",
    "rotulos": [{"nome": "petição"}, {"nome": "sentença", "descricao": "x"}],
}
EXECUTIONS = "/classificador/execucoes"
ARRIVED = "/classificador/arquivos"


def asked(there: House, url: str) -> AbstractAsyncContextManager[dict[str, httpx2.AsyncClient]]:
    return people(there.app, TOLD, url)


def said(*names: str) -> list[dict[str, Any]]:
    papers = [paper(f"A-{n}", name) for n, name in enumerate(names)]
    return [
        {
            "codigo": each.code,
            "arquivo": each.name,
            "sha256": each.sha256,
            "tamanho": each.size,
        }
        for each in papers
    ]


async def uploaded(olga: httpx2.AsyncClient, *names: str) -> list[dict[str, Any]]:
    """Each as it came in, under a code of its own."""
    told = []
    for n, name in enumerate(names):
        sent = await olga.post(ARRIVED, params={"nome": name}, content=f"{n} {name}".encode())
        assert 200 == sent.status_code, sent.text
        [document] = sent.json()["documentos"]
        told.append(document | {"codigo": f"A-{n}"})
    return told


async def begun(olga: httpx2.AsyncClient, *names: str, **project: Any) -> int:
    made = await olga.post("/classificador/projetos", json=PROJECT | project)
    assert 201 == made.status_code, made.text
    documents = await uploaded(olga, *names)
    body = {"projeto_id": made.json()["id"], "nome": "maio", "documentos": documents}
    answer = await olga.post(EXECUTIONS, json=body)
    assert 201 == answer.status_code, answer.text
    return int(answer.json()["id"])


async def test_from_a_project_to_its_results(database_url):
    """C6 C8: labels of the closed set; errors with code, attempts and time, the stack for admins."""
    async with house(database_url) as there, asked(there, database_url) as people:
        olga, vera, adam = people["operator"], people["viewer"], people["admin"]
        execution = await begun(olga, "ok.pdf", "corrupt.pdf", "=1+1.pdf")
        await there.drained()
        at = f"{EXECUTIONS}/{execution}"
        status = (await vera.get(f"{at}/status-detalhado")).json()

        assert ("/classificador/", "CONCLUIDO", 3, 100.0) == (
            status["rota_origem"],
            status["status"],
            status["total"],
            status["progresso"],
        )
        assert {"PENDENTE": 0, "PROCESSANDO": 0, "CONCLUIDO": 2, "ERRO": 1, "PULADO": 0} == (
            status["por_status"]
        )
        assert ({"corrupt": 1}, {"petição": 2}) == (status["erros"], status["rotulos"])
        assert (False, True) == (status["pode_retomar"], status["pode_reprocessar"])
        assert f"/api/stream?batch={execution}" == status["eventos"]
        assert status["ultimo_heartbeat"] is not None
        assert status["ultimo_codigo_processado"] in ("A-0", "A-1", "A-2")

        [failed] = (await vera.get(f"{at}/erros")).json()["items"]
        assert ("A-1", "ERRO", "corrupt", 1) == (
            failed["codigo"],
            failed["status"],
            failed["erro_codigo"],
            failed["tentativas"],
        )
        assert failed["ultimo_erro_em"] is not None
        assert failed["erro_mensagem"]
        assert failed["erro_stack"] is None
        [seen] = (await adam.get(f"{at}/erros")).json()["items"]
        assert "Permanent" in seen["erro_stack"]

        done = (await vera.get(f"{at}/resultados?status=CONCLUIDO&limit=1")).json()
        more = await vera.get(f"{at}/resultados?status=CONCLUIDO&limit=1&cursor={done['next']}")
        assert ["A-0", "A-2"] == [done["items"][0]["codigo"], more.json()["items"][0]["codigo"]]
        assert "porque sim" == done["items"][0]["justificativa"]
        lines = (await vera.get(f"{at}/exportar")).text.splitlines()
        assert 4 == len(lines)
        assert lines[3].startswith("A-2,'=1+1.pdf,CONCLUIDO,petição,0.9,")
        sheet = (await vera.get(f"{at}/exportar?format=excel")).content.decode("utf-8-sig")
        assert sheet.splitlines()[3].startswith("A-2;'=1+1.pdf;CONCLUIDO;petição;0,9;")
        told = (await vera.get(f"{at}/exportar?format=json")).json()
        assert ["CONCLUIDO", "ERRO", "CONCLUIDO"] == [each["status"] for each in told]
        [line] = (await vera.get(f"{EXECUTIONS}?status=CONCLUIDO")).json()["items"]
        assert (execution, status["por_status"]) == (line["id"], line["por_status"])
        assert [] == (await vera.get(f"{EXECUTIONS}?status=TRAVADO")).json()["items"]


async def test_many_reprocess_and_one_generation_comes_of_it(database_url):
    async with house(database_url) as there, asked(there, database_url) as people:
        olga = people["operator"]
        execution = await begun(olga, "ok.pdf", "corrupt.pdf", "empty.pdf")
        at = f"{EXECUTIONS}/{execution}/reprocessar-erros"
        assert 409 == (await olga.post(at)).status_code
        await there.drained()
        answers = await asyncio.gather(*(olga.post(at) for _ in range(8)))

        assert {200} == {each.status_code for each in answers}
        assert 1 == sum(each.json()["alterada"] for each in answers)
        assert {(2, 2)} == {
            (each.json()["geracao"], each.json()["reprocessados"]) for each in answers
        }
        await there.drained()
        status = (await olga.get(f"{EXECUTIONS}/{execution}/status-detalhado")).json()
        assert ("CONCLUIDO", 3) == (status["status"], status["por_status"]["CONCLUIDO"])


async def test_many_resume_a_fourth_is_refused_and_an_admin_may(database_url, test_clock):
    """C5: one epoch of many calls; the fourth says why it is refused; viewers change nothing."""
    async with house(database_url) as there, asked(there, database_url) as people:
        olga, vera, adam = people["operator"], people["viewer"], people["admin"]
        execution = await begun(olga, "ok.pdf", "other.pdf")
        at = f"{EXECUTIONS}/{execution}/retomar"
        await there.left_by_a_dead_runner(execution)
        await there.idle_runner()
        for n in range(3):
            test_clock.jump(301)
            status = (await vera.get(f"{EXECUTIONS}/{execution}/status-detalhado")).json()
            assert ("TRAVADO", True) == (status["status"], status["pode_retomar"])
            answers = await asyncio.gather(*(olga.post(at) for _ in range(8 if n == 0 else 1)))
            assert {200} == {each.status_code for each in answers}
            assert 1 == sum(each.json()["alterada"] for each in answers)
            assert {n + 1} == {each.json()["tentativas_retry"] for each in answers}
        test_clock.jump(301)
        fourth = await olga.post(at)
        assert (409, True) == (fourth.status_code, "3" in fourth.json()["detail"])
        assert 403 == (await vera.post(at)).status_code
        assert 403 == (await olga.post(f"{at}?forcar=true")).status_code

        forced = (await adam.post(f"{at}?forcar=true")).json()
        assert (True, "EM_ANDAMENTO", 4) == (
            forced["alterada"],
            forced["status"],
            forced["tentativas_retry"],
        )
        await there.drained()
        over = await olga.post(at)
        assert (200, False, "CONCLUIDO") == (
            over.status_code,
            over.json()["alterada"],
            over.json()["status"],
        )


async def test_resume_lets_go_what_waits_for_a_person(database_url):
    """H-28: it is counted as no resume. While no runner lives nobody can tell when it will have ended."""
    async with house(database_url) as there, asked(there, database_url) as people:
        olga = people["operator"]
        execution = await begun(olga, "key.pdf", "ok.pdf")
        await there.drained()
        status = (await olga.get(f"{EXECUTIONS}/{execution}/status-detalhado")).json()
        assert [("parked:no_key", 1)] == [
            (each["motivo"], each["documentos"]) for each in status["motivos"]
        ]
        resumed = (await olga.post(f"{EXECUTIONS}/{execution}/retomar")).json()

        assert (True, 0) == (resumed["alterada"], resumed["tentativas_retry"])
        status = (await olga.get(f"{EXECUTIONS}/{execution}/status-detalhado")).json()
        assert ["no_runner"] == [each["motivo"] for each in status["motivos"]]
        assert status["eta_segundos"] is None


async def test_skipped_by_a_person_with_a_reason_and_canceled(database_url):
    async with house(database_url) as there, asked(there, database_url) as people:
        olga, vera = people["operator"], people["viewer"]
        execution = await begun(olga, "corrupt.pdf", "ok.pdf")
        [first, _] = await there.results(execution)
        at = f"{EXECUTIONS}/{execution}/documentos/{first['id']}"
        assert 404 == (await vera.get(f"{at}/texto")).status_code
        assert 422 == (await olga.post(f"{at}/pular", json={"motivo": ""})).status_code
        assert 403 == (await vera.post(f"{at}/pular", json={"motivo": "x"})).status_code
        skipped = (await olga.post(f"{at}/pular", json={"motivo": "ilegível"})).json()
        assert ("PULADO", "ilegível (Olga)") == (skipped["status"], skipped["pulado_motivo"])

        canceled = (await olga.post(f"{EXECUTIONS}/{execution}/cancelar")).json()
        assert ("CONCLUIDO", 2) == (canceled["status"], canceled["por_status"]["PULADO"])
        assert canceled == (await olga.post(f"{EXECUTIONS}/{execution}/cancelar")).json()
        status = (await vera.get(f"{EXECUTIONS}/{execution}/status-detalhado")).json()
        assert "Olga" == status["cancelada_por"]
        assert "cancelado (Olga)" == (await there.results(execution))[1]["pulado_motivo"]


async def test_duplicates_name_the_first_as_their_origin(database_url):
    async with house(database_url) as there:
        papers = [paper("A-1", content="x"), paper("A-2"), paper("A-3", content="x")]
        execution = await there.execution(papers)
        told = await there.results(execution)

        assert [None, None, told[0]["id"]] == [each["origem"] for each in told]


async def test_files_come_in_a_form_or_an_archive_and_never_from_elsewhere(database_url):
    """A path in an archive, a folder outside the roots, a form that breaks off: refused or left out."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/um.txt", "um")
        archive.writestr("manifesto.csv", "codigo,arquivo\nP-1,a/um.txt\nP-2,dois.txt\n")
    async with house(database_url) as there, asked(there, database_url) as people:
        olga, vera = people["operator"], people["viewer"]
        files = {"a": ("tudo.zip", packed.getvalue()), "b": ("dois.txt", b"dois")}
        came = await olga.post(ARRIVED, files=files)
        assert 200 == came.status_code, came.text
        assert [("P-1", "a/um.txt", 2), ("P-2", "dois.txt", 4)] == [
            (each["codigo"], each["arquivo"], each["tamanho"])
            for each in came.json()["documentos"]
        ]
        assert [] == came.json()["recusados"]

        broken = await olga.post(
            ARRIVED, content=b"--x", headers={"content-type": "multipart/form-data; boundary=x"}
        )
        assert 422 == broken.status_code
        assert 403 == (await vera.post(ARRIVED, files=files)).status_code
        for folder in ("/etc", "../..", "/nowhere"):
            refused = await olga.post("/classificador/pastas", json={"pasta": folder})
            assert 422 == refused.status_code, refused.text


BAD: list[tuple[str, Any, int]] = [
    ("/classificador/projetos", {"nome": "x", "rotulos": []}, 422),
    ("/classificador/projetos", {"nome": "x"}, 422),
    ("/classificador/projetos", {"nome": "x", "rotulos": [{"nome": " "}]}, 422),
    ("/classificador/projetos", {"nome": "x", "rotulos": [{"nome": "a"}, {"nome": "A"}]}, 422),
    (
        "/classificador/projetos",
        {"nome": "x", "rotulos": [{"nome": "a"}], "max_retries_documento": 99},
        422,
    ),
    (EXECUTIONS, {"projeto_id": 77, "documentos": said("a.pdf")}, 404),
    (EXECUTIONS, {"projeto_id": 1, "documentos": said("never-uploaded.pdf")}, 422),
    (EXECUTIONS, {"projeto_id": 1, "documentos": []}, 422),
    (EXECUTIONS, {"projeto_id": 1, "documentos": [*said("a.pdf"), *said("b.pdf")]}, 422),
    (
        EXECUTIONS,
        {"projeto_id": 1, "documentos": [said("a.pdf")[0] | {"sha256": "../../etc"}]},
        422,
    ),
    (f"{EXECUTIONS}/99/retomar", None, 404),
    (f"{EXECUTIONS}/99/reprocessar-erros", None, 404),
    (f"{EXECUTIONS}/99/cancelar", None, 404),
    (f"{EXECUTIONS}/0/retomar", None, 422),
]


async def test_what_makes_no_sense_is_refused_and_changes_nothing(database_url):
    """Bad input: an empty set of labels, an unknown project, a path for a hash, ids of nothing."""
    async with house(database_url) as there, asked(there, database_url) as people:
        olga = people["operator"]
        made = await olga.post("/classificador/projetos", json=PROJECT)
        assert 1 == made.json()["id"]
        for path, body, status in BAD:
            refused = await olga.post(path, json=body)
            assert (path, status) == (path, refused.status_code), refused.text
        for path in ("status-detalhado", "erros", "resultados", "exportar", "rotulos"):
            assert 404 == (await olga.get(f"{EXECUTIONS}/99/{path}")).status_code

        tables = ("executions", "documents", "jobs")
        counts = [await there.rows(f"SELECT count(*) FROM {each}") for each in tables]  # noqa: S608
        assert [[(0,)]] * 3 == counts
        assert 1 == len((await olga.get("/classificador/projetos")).json()["items"])


async def test_a_project_is_changed_for_executions_to_come(database_url):
    async with house(database_url) as there, asked(there, database_url) as people:
        olga, vera = people["operator"], people["viewer"]
        execution = await begun(olga, "ok.pdf")
        other = PROJECT | {"rotulos": [{"nome": "ofício"}]}
        changed = await olga.put("/classificador/projetos/1", json=other)
        assert ["ofício"] == [each["nome"] for each in changed.json()["rotulos"]]
        assert 409 == (await olga.post("/classificador/projetos", json=PROJECT)).status_code
        assert 403 == (await vera.delete("/classificador/projetos/1")).status_code
        assert 204 == (await olga.delete("/classificador/projetos/1")).status_code
        assert 404 == (await olga.get("/classificador/projetos/1")).status_code
        await there.drained()

        [done] = await there.results(execution)
        assert "petição" == done["rotulo"]


@pytest.mark.parametrize("key", [None, "k-1"])
async def test_an_execution_asked_for_twice_with_a_key_is_one(database_url, key):
    async with house(database_url) as there, asked(there, database_url) as people:
        olga = people["operator"]
        await olga.post("/classificador/projetos", json=PROJECT)
        body = {"projeto_id": 1, "documentos": await uploaded(olga, "a.pdf")}
        headers = {} if key is None else {"Idempotency-Key": key}
        made = [await olga.post(EXECUTIONS, json=body, headers=headers) for _ in range(2)]

        assert (2 if key is None else 1) == len({each.json()["id"] for each in made})
