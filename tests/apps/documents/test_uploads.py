"""Files over the API: as large as agreed, from whoever may, and nothing where they are refused."""

import io
import zipfile

from retoma.apps.documents.model import MOST_DOCUMENTS
from retoma.apps.documents.sandbox import Papers, zip_of
from retoma.db import adhoc
from tests.apps.documents.aids import TOLD, house
from tests.apps.people import people

EXECUTIONS = "/classificador/execucoes"
ARRIVED = "/classificador/arquivos"
FOLDERS = "/classificador/pastas"


async def kept(app) -> int:
    database = await app.database()
    [(n,)] = await database.read(
        lambda tx: tx.all(adhoc("SELECT count(*) FROM document_contents"))
    )
    return int(n)


def claiming(size: int) -> bytes:
    """An archive whose one file says that it is so large."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", b"x")
        archive.filelist[-1].file_size = size
    return file.getvalue()


async def test_who_claims_too_much_is_refused_before_a_byte_is_read(database_url):
    """Show 4: 10 GB claimed. More than the house takes elsewhere, up to an archive of thousands."""
    async with house(database_url) as there, people(there.app, TOLD, database_url) as those:
        answers = [
            await those["operator"].post(
                path,
                params={"nome": "a.txt"},
                headers={"content-length": claimed, "content-type": "application/json"},
                content=b"{}",
            )
            for path, claimed in [
                (ARRIVED, str(10 << 30)),
                (ARRIVED, str((2 << 30) + 1)),
                (ARRIVED, "1e9"),
                (EXECUTIONS, str(60 << 20)),
                (FOLDERS, str(60 << 20)),
                (f"{EXECUTIONS}/1/pular", str(2 << 20)),
                (ARRIVED, str(60 << 20)),
            ]
        ]

        assert [413] * 6 + [200] == [each.status_code for each in answers]
        assert 1 == await kept(there.app)


async def test_ten_thousand_are_one_execution_and_one_more_is_refused_with_the_reason(
    database_url,
):
    """Each with the longest name it may have, so that nobody's general bound is what counts."""
    async with house(database_url) as there, people(there.app, TOLD, database_url) as those:
        olga = those["operator"]
        project = await there.project()
        [came] = (await olga.post(ARRIVED, params={"nome": "a.txt"}, content=b"x")).json()[
            "documentos"
        ]
        papers = [
            {**came, "codigo": f"{n:05d}", "arquivo": f"{n:05d}{'á' * 250}"}
            for n in range(MOST_DOCUMENTS + 1)
        ]
        asked = {"projeto_id": project, "documentos": papers}
        refused = await olga.post(EXECUTIONS, json=asked)
        papers.pop()
        began = await olga.post(EXECUTIONS, json=asked)
        twice = await olga.post(
            EXECUTIONS,
            content=b'{"projeto_id": 1, "projeto_id": 1}',
            headers={"content-type": "application/json"},
        )

        assert [422, 201, 400] == [each.status_code for each in (refused, began, twice)]
        assert str(MOST_DOCUMENTS) in refused.text
        assert MOST_DOCUMENTS == began.json()["total"]


async def test_what_is_refused_says_why_in_their_language_and_leaves_nothing(database_url):
    """Show 4: a zip bomb, a path out of the archive, a folder outside the roots."""
    papers = [Papers(7).make(n) for n in range(5)]
    bomb = claiming(10 << 30)
    leads_out = zip_of({"../../a.txt": b"x"})
    many = zip_of({each.name: each.content for each in papers})
    async with house(database_url) as there, people(there.app, TOLD, database_url) as those:
        olga, vera = those["operator"], those["viewer"]
        olga.headers["accept-language"] = "pt-BR"
        for content in (bomb, leads_out, b"PK"):
            answer = await olga.post(ARRIVED, params={"nome": "a.zip"}, content=content)
            assert 422 == answer.status_code
            assert "nada foi recebido" in answer.text
        folder = await olga.post(FOLDERS, json={"pasta": "/etc"})
        nobody = await vera.post(ARRIVED, params={"nome": "a.txt"}, content=b"x")
        assert [422, 403] == [folder.status_code, nobody.status_code]
        assert "passwd" not in folder.text
        assert 0 == await kept(there.app)

        answer = await olga.post(ARRIVED, params={"nome": "lote.zip"}, content=many)

        assert [each.name for each in papers] == [
            each["codigo"] for each in answer.json()["documentos"]
        ]
        assert 5 == await kept(there.app)
