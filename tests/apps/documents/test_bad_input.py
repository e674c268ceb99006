"""Show 4: what nobody should hand in, at every door: the API, the page, the command line.

Each is told why in the words of who asked, and nothing is changed by it. What a PDF or a model may do
(rows 23 and 24) is in test_reading, test_openrouter and test_story; what is looked at by a browser (row 22),
in test_browser.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from retoma.apps.documents import APP
from retoma.apps.documents.sandbox import zip_of
from retoma.web import broadcast
from tests.apps.documents.aids import House, house, paper
from tests.apps.documents.test_intake import claims, named, packed, swollen
from tests.apps.documents.test_pages import NEW, PROJECTS, site_of
from tests.apps.documents.test_stream import ADMIN
from tests.apps.people import people
from tests.cli.conftest import Said, verb
from tests.web.aids import served
from tests.web.sse import Ear
from tests.web.test_pages import HTML
from tests.web.test_sign_in import FORM, signed_in

__all__ = ["verb"]  # the command line's own fixture, for this module too

ARRIVED, FOLDERS = "/classificador/arquivos", "/classificador/pastas"
EXECUTIONS, API_PROJECTS = "/classificador/execucoes", "/classificador/projetos"
PT = {"Accept-Language": "pt-BR"}
TABLES = (
    *("document_projects", "executions", "documents", "document_contents", "document_pieces"),
    *("jobs", "batches", "events"),
)
GB = 1 << 30


@cache
def harmful() -> Mapping[str, bytes]:
    return {
        "a bomb that says so": packed(claims(10 * GB)),
        "a bomb": packed(swollen),
        "a way up": packed(named("a.txt", "../../a.txt")),
        "a way from the root": packed(named("/etc/cron.d/x")),
        "no archive": b"PK\3\4",
    }


async def counted(rows: Callable[[str], Any]) -> Sequence[int]:
    return [(await rows(f"SELECT count(*) FROM {each}"))[0][0] for each in TABLES]  # noqa: S608


class Unchanged:
    """`async with`: nothing is another one at its end."""

    def __init__(self, there: House) -> None:
        self._rows = there.rows

    async def __aenter__(self) -> None:
        self._before = await counted(self._rows)

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            assert self._before == await counted(self._rows)


async def test_an_archive_that_means_harm_is_refused_with_the_reason(database_url):
    """A zip bomb, a path out of the zip: by a key, in a form, and by a browser's cookie."""
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site, "operator")
        cookie = {**FORM, **PT, "X-CSRF-Token": csrf, "Content-Type": "application/zip"}
        async with Unchanged(site.house):
            for why, content in harmful().items():
                one: dict[str, Any] = {"params": {"nome": "a.zip"}, "content": content}
                answers = [
                    await site.operator.post(ARRIVED, headers=PT, **one),
                    await site.operator.post(
                        ARRIVED, headers=PT, files={"a": ("a.zip", content)}
                    ),
                    await browser.post(ARRIVED, headers=cookie, **one),
                ]
                assert [422] * 3 == [each.status_code for each in answers], why
                told = {each.json()["detail"] for each in answers}
                assert 1 == len(told)
                assert "nada foi recebido" in told.pop()
        await browser.aclose()


async def test_ten_gigabytes_are_refused_before_they_come(database_url):
    async with site_of(database_url) as site:
        browser, csrf = await signed_in(site, "operator")
        claimed = {"Content-Length": str(10 * GB), "Content-Type": "application/pdf", **PT}
        async with Unchanged(site.house):
            for who, more in ((site.operator, {}), (browser, {**FORM, "X-CSRF-Token": csrf})):
                answer = await who.post(
                    ARRIVED, params={"nome": "a.pdf"}, headers={**claimed, **more}, content=b"x"
                )
                assert 413 == answer.status_code, answer.text
        await browser.aclose()


async def test_a_folder_outside_the_roots_is_not_there_whatever_way_is_named(
    database_url, tmp_path
):
    root, beside = tmp_path / "entrada", tmp_path / "entrada-2"
    for each in (root / "maio", beside):
        each.mkdir(parents=True)
        (each / "a.txt").write_text("texto")
    (root / "atalho").symlink_to(beside)
    (root / "maio" / "fora.txt").symlink_to(beside / "a.txt")
    ways = [
        *("/etc", "/", "entrada", "", "/nowhere", f"{root}/../entrada-2", str(beside)),
        *(f"{root}/atalho", f"{root}/maio/a.txt", f"{root}/\0", "/" + "a" * 999),
    ]
    async with site_of(database_url, document_folders=str(root)) as site:
        async with Unchanged(site.house):
            for way in ways:
                body = {"pasta": way}
                answer = await site.operator.post(FOLDERS, headers=PT, json=body)
                assert 422 == answer.status_code, (way, answer.text)
                assert "passwd" not in answer.text
        taken = (
            await site.operator.post(FOLDERS, headers=PT, json={"pasta": f"{root}/maio"})
        ).json()

        assert ["a.txt"] == [each["arquivo"] for each in taken["documentos"]]
        assert [("fora.txt", "link", "um atalho que leva para fora da pasta")] == [
            tuple(each.values()) for each in taken["recusados"]
        ]


async def test_a_project_without_labels_and_an_execution_without_a_project_are_none(
    database_url,
):
    """An empty set of labels, an unknown project: by the API and on the pages."""
    async with site_of(database_url) as site:
        [kept] = (
            await site.operator.post(ARRIVED, params={"nome": "a.txt"}, content=b"x")
        ).json()["documentos"]
        browser, csrf = await signed_in(site, "operator")
        cookie = {**FORM, **PT, "X-CSRF-Token": csrf}
        none: list[dict[str, Any]] = [{}, {"rotulos": []}, {"rotulos": [{"nome": " "}]}]
        wanted = {"projeto_id": 99, "documentos": [kept]}
        async with Unchanged(site.house):
            answers = [
                await site.operator.post(API_PROJECTS, headers=PT, json={"nome": "x", **each})
                for each in none
            ]
            answers += [
                await browser.post(f"{PROJECTS}/novo", headers={**cookie, **HTML}, data=said)
                for said in ({"nome": "x"}, {"nome": "x", "rotulo": " ", "descricao": ""})
            ]
            assert [422] * 5 == [each.status_code for each in answers]
            assert "tem menos de 1" in answers[1].text
            for page in answers[3:]:
                assert "um projeto precisa de pelo menos um rótulo" in page.text
            unknown = [
                await site.operator.post(EXECUTIONS, headers=PT, json=wanted),
                await browser.post(NEW, headers=cookie, json=wanted),
                await browser.get(f"{PROJECTS}/99", headers=PT),
            ]
            assert [404] * 3 == [each.status_code for each in unknown]
            assert {True} == {"projeto 99" in each.text for each in unknown}
        await browser.aclose()


async def test_the_command_line_refuses_the_same_and_says_why(
    sqlite_url, tmp_path, verb, monkeypatch
):
    """What the verbs ask is held against both databases elsewhere; what they say, against the quicker."""
    monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
    good, large = _written(tmp_path / "a.txt", b"x"), tmp_path / "enorme.pdf"
    with large.open("wb") as file:
        file.truncate(10 * GB)  # that are nowhere
    async with house(sqlite_url) as there:
        await there.project("PGE")

        async def refused(*words: str) -> str:
            said: Said = await asyncio.to_thread(verb, "documents", *words)
            assert 0 != said.code, said.out
            return said.err

        async with Unchanged(there):
            for why, content in harmful().items():
                archive = _written(tmp_path / "a.zip", content)
                told = await refused("classify", archive, "--project", "PGE")
                assert "nothing was taken" in told, why
            assert "there is no project" in await refused("classify", good, "--project", "x")
            assert "no such file" in await refused("classify", "/nowhere", "--project", "PGE")
            assert "too_large" in await refused("classify", str(large), "--project", "PGE")
            assert "label" in await refused("project", "x")
            assert "label" in await refused("project", "x", "--label", " : quando")


def _written(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return str(file)


async def test_a_file_that_is_none_of_ours_comes_in_and_is_explained(database_url):
    """Nothing in it, another thing than its name says, a picture: ERRO with its code, and no
    model is asked."""
    files = {
        "vazio.pdf": (b"", "empty"),
        "pagina.pdf": (b"<html><body>Entre com sua senha", "wrong_extension"),
        "foto.png": (b"\x89PNG\r\n\x1a\n" + bytes(99), "unsupported"),
        "dentro.docx": (zip_of({"xl/workbook.xml": b"<x/>"}), "unsupported"),
    }
    async with (
        house(database_url, replace(APP, schedules=())) as there,
        people(there.app, APP, database_url) as those,
    ):
        olga: httpx2.AsyncClient = those["operator"]
        await there.project()
        came = await olga.post(
            ARRIVED, files={name: (name, content) for name, (content, _) in files.items()}
        )
        body = {"projeto_id": 1, "documentos": came.json()["documentos"]}
        await olga.post(EXECUTIONS, json=body)
        await there.drained()

        failed = (await olga.get(f"{EXECUTIONS}/1/erros")).json()["items"]
        assert {name: code for name, (_, code) in files.items()} == {
            each["codigo"]: each["erro_codigo"] for each in failed
        }
        assert "o arquivo não tem texto" in [each["erro_mensagem"] for each in failed]
        assert (
            "CONCLUIDO" == (await olga.get(f"{EXECUTIONS}/1/status-detalhado")).json()["status"]
        )


async def test_row_25_a_cursor_that_is_none_of_ours_tells_of_no_other_execution(
    database_url, monkeypatch
):
    monkeypatch.setattr(broadcast, "LOOK", 0.02)
    wild = ("-1", "1" + "0" * 20, "abc", "another/7.1.1:0", "0/1:1:")
    with served(database_url) as server:
        async with house(database_url) as there:
            mine = await there.execution([paper("A-1")])
            other = await there.execution([paper("B-1")], name="outro")
            [job] = [each["job"] for each in await there.results(mine)]
            stream = f"{server.origin}/api/stream?batch="
            elsewhere = await Ear.open(f"{stream}{other}", ADMIN)
            hello = await elsewhere.next()
            assert hello is not None
            elsewhere.close()
            ears = [
                await Ear.open(f"{stream}{mine}", ADMIN | {"last-event-id": each})
                for each in (*wild, hello.id or "")
            ]
            await there.drained()

            for each in ears:
                heard = [await each.next()]
                while heard[-1] is not None and heard[-1].name != "job":
                    heard.append(await each.next())
                each.close()
                assert heard[-1] is not None
                assert job == heard[-1].data["job"]
