"""`retoma documents …`: files become an execution, how it stands is told, what failed is tried again."""

import asyncio
import csv
import io
import re
from functools import partial
from pathlib import Path

from retoma.apps.documents.sandbox import zip_of
from tests.apps import verbs
from tests.apps.documents.aids import house
from tests.apps.verbs import chosen, verb

__all__ = ["chosen", "verb"]  # fixtures, for this module too

typed, said = partial(verbs.typed, "documents"), partial(verbs.said, "documents")
QUIET = 301  # seconds: a little more than five minutes


def files(folder: Path) -> tuple[str, ...]:
    """A folder, an archive and a file, seven documents in all, and one that is left out."""
    (folder / "pasta" / "sub").mkdir(parents=True)
    for name in ("um.pdf", "corrupt.pdf", "sub/tres.txt", "sub/=1+1.txt"):
        (folder / "pasta" / name).write_text(f"conteúdo de {name}")
    archive = zip_of({"quatro.pdf": b"4", "cinco.html": b"5", "dentro.zip": b"PK"})
    (folder / "mais.ZIP").write_bytes(archive)
    (folder / "seis.docx").write_bytes(b"6")
    return str(folder / "pasta"), str(folder / "mais.ZIP"), str(folder / "seis.docx")


async def test_files_are_handed_in_watched_asked_about_and_tried_again(
    sqlite_url, tmp_path, verb
):
    async with house(sqlite_url) as there:
        paths = files(tmp_path)
        labels = ("--label", "petição: abre um processo", "--label", "sentença")
        retries = ("--document-retries", "1", "--execution-retries", "5")
        made = await said(verb, "project", "PGE", *labels, *retries)
        [project] = await said(verb, "projects")
        assert (made["id"], ["petição", "sentença"]) == (project["id"], project["rotulos"])
        watching = asyncio.create_task(
            typed(verb, "classify", *paths, "--project", "PGE", "--wait")
        )
        while not watching.done():
            await there.drained()
            await asyncio.sleep(0.01)
        watched = await watching
        assert (1, True) == (watched.code, "1 jobs are dead" in watched.err)
        assert "execution 1: 7 documents" in watched.out
        assert "left out: dentro.zip (nested)" in watched.out

        told = await said(verb, "status", "1")
        assert ("CONCLUIDO", 6, 1, {"petição": 6}) == (
            *(told["status"], told["por_status"]["CONCLUIDO"], told["por_status"]["ERRO"]),
            told["rotulos"],
        )
        assert [1] == [each["id"] for each in await said(verb, "status")]
        assert 5 == told["max_retries"]
        assert "CONCLUIDO" in (await typed(verb, "status", "1")).out
        [failed] = await said(verb, "errors", "1")
        assert ("corrupt.pdf", "corrupt", 1) == (
            *(failed["codigo"], failed["erro_codigo"], failed["tentativas"]),
        )
        table = await typed(verb, "results", "1", "--csv")
        rows = {row["codigo"]: row for row in csv.DictReader(io.StringIO(table.out))}
        assert (7, "petição") == (len(rows), rows["seis.docx"]["rotulo"])
        assert {"sub/=1+1.txt", "quatro.pdf"} <= rows.keys()
        assert "the file is broken" in (await typed(verb, "errors", "1")).out
        unchanged = await typed(verb, "resume", "1")
        assert (0, True) == (unchanged.code, "nothing was to be changed" in unchanged.out)

        again = await said(verb, "reprocess", "1")
        assert (True, 2, 1) == (again["alterada"], again["geracao"], again["reprocessados"])
        await there.drained()
        assert [] == await said(verb, "errors", "1")
        assert "no document has failed" in (await typed(verb, "errors", "1")).out


async def test_a_manifest_gives_codes_and_what_makes_no_sense_is_refused(
    sqlite_url, tmp_path, verb
):
    async with house(sqlite_url) as there:
        await there.project("PGE")
        one = tmp_path / "um.pdf"
        one.write_bytes(b"1")
        good, bad = tmp_path / "codigos.csv", tmp_path / "bad.csv"
        good.write_text("codigo,arquivo\nPROC-1,um.pdf\n")
        bad.write_text("codigo,arquivo\nPROC-1,dois.pdf\n")
        how = (str(one), "--project", "PGE")
        refused = {
            "não existe|there is no project": (str(one), "--project", "outro"),
            "no such file": (str(tmp_path / "none.pdf"), "--project", "PGE"),
            "did not come": (*how, "--manifest", str(bad)),
        }
        for why, words in refused.items():
            done = await typed(verb, "classify", *words)
            assert 0 != done.code
            assert any(each in done.err for each in why.split("|")), done.err
        assert [] == await said(verb, "status")
        begun = await said(verb, "classify", *how, "--manifest", str(good), "--name", "maio")
        assert {"execucao": 1, "documentos": 1, "deixados": []} == begun
        [result] = await said(verb, "results", "1")
        assert ("PROC-1", "PENDENTE") == (result["codigo"], result["status"])
        for word in ("status", "errors", "results", "resume", "cancel"):
            assert 1 == (await typed(verb, word, "9")).code
        shown = (await typed(verb, "status", "1")).out
        assert re.search(r"criado_em +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown), shown
        canceled = [await said(verb, "cancel", "1") for _ in range(2)]
        assert [("CONCLUIDO", True), ("CONCLUIDO", False)] == [
            (each["status"], each["alterada"]) for each in canceled
        ]
        assert "PULADO" in (await typed(verb, "results", "1")).out


async def test_what_is_stuck_goes_on(database_url, test_clock, tmp_path, verb):
    async with house(database_url) as there:
        await there.project("PGE")
        one = tmp_path / "um.pdf"
        one.write_bytes(b"1")
        await said(verb, "classify", str(one), "--project", "PGE")
        await there.left_by_a_dead_runner(1)
        test_clock.jump(QUIET)
        assert "TRAVADO" == (await said(verb, "status", "1"))["status"]
        assert "TRAVADO" in (await typed(verb, "status")).out

        alone = await typed(verb, "resume", "1")
        assert (True, True) == (alone.code != 0, "no runner" in alone.err), alone
        await there.idle_runner()
        resumed = await said(verb, "resume", "1")
        assert ("EM_ANDAMENTO", True) == (resumed["status"], resumed["alterada"])
        await there.drained()
        assert "CONCLUIDO" == (await said(verb, "status", "1"))["status"]
