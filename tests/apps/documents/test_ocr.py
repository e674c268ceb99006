"""Pages that are pictures: read in the confined child where a project wants it, within bounds, and never otherwise."""

import ctypes
import io
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from retoma.apps.documents import service, store
from retoma.apps.documents import steps as story
from retoma.apps.documents.model import ProjectRules
from retoma.apps.documents.store.rows import rules_from, rules_text
from retoma.apps.readers import ocr, pdf
from retoma.apps.readers.ocr import Picture, Recognize
from retoma.apps.readers.reading import read_document, read_file
from retoma.apps.readers.rules import Ocr
from retoma.engine.errors import Permanent
from retoma.sandbox.documents import Odd, Papers, pdf_of
from tests.apps.documents.readers import read_by_fake_ocr
from tests.apps.documents.test_story import RULES, World, world

WORDS = "o que a imagem diz"
SCANNED = Papers().make(1, Odd.SCANNED)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Picture]:
    """The pictures that were recognized, by something that says always the same."""
    pictures: list[Picture] = []

    @contextmanager
    def fake() -> Iterator[Recognize]:
        def recognize(picture: Picture) -> str:
            pictures.append(picture)
            return WORDS

        yield recognize

    monkeypatch.setattr(pdf, "recognizer", fake)
    return pictures


@pytest.mark.parametrize(
    ("rule", "content", "text", "recognized"),
    [
        pytest.param(Ocr.WITHOUT_TEXT, SCANNED.content, WORDS, True, id="a picture"),
        pytest.param(Ocr.WITHOUT_TEXT, pdf_of([["Um texto."]]), "Um texto.", False, id="text"),
        pytest.param(Ocr.ALWAYS, pdf_of([["Um."]]), WORDS, True, id="always, and it says more"),
        pytest.param(Ocr.ALWAYS, pdf_of([["Um texto mais longo que a imagem."]]),
                     "Um texto mais longo que a imagem.", True, id="always, and it says less"),
    ],
)  # fmt: skip
def test_a_page_is_read_from_its_picture_where_the_rule_says_so(
    seen, rule, content, text, recognized
):
    read = read_document(content, "a.pdf", rule)

    assert ({text}, False) == ({*read.text.split("\n\n")}, read.needs_ocr)
    assert recognized == bool(seen)
    for picture in seen:
        assert ocr.SIDE == max(picture.width, picture.height)
        assert len(picture.pixels) >= picture.height * picture.stride


def test_without_a_rule_no_picture_is_read_and_nothing_is_loaded(seen):
    with pytest.raises(Permanent) as met:
        read_document(SCANNED.content, "a.pdf")

    assert ("needs_ocr", []) == (met.value.code, seen)


def test_only_some_pages_of_a_file_are_recognized(seen):
    pages = [["."]] * (2 * ocr.MOST_PAGES)
    read = read_document(pdf_of(pages), "a.pdf", Ocr.ALWAYS)

    assert (ocr.MOST_PAGES, 2 * ocr.MOST_PAGES) == (len(seen), read.pages)


def test_rules_of_older_executions_have_no_ocr_and_cost_nothing_anew():
    """What an older release reads has nothing in it that it does not know; answers stay answered."""
    older = rules_text(RULES)
    newer = replace(RULES, ocr=Ocr.ALWAYS)

    assert "ocr" not in older
    assert (RULES, newer) == (rules_from(older), rules_from(rules_text(newer)))
    assert RULES.recipe("1", ["m"]) != newer.recipe("1", ["m"])


async def ended(there: World, rules: ProjectRules) -> tuple[int, dict[str, Any]]:
    project = await there.project(rules=rules)
    execution = await there.handed_in(project, [SCANNED])
    await there.drained()
    [told] = await there.results(execution)
    return execution, told


async def test_a_scanned_document_is_classified_by_what_its_picture_says(
    database_url, tmp_path, monkeypatch
):
    """In the confined child; once the project wants it, what failed before is read by reprocessing."""
    monkeypatch.setattr(story, "read_file", read_by_fake_ocr)
    async with world(database_url, tmp_path) as there:
        execution, told = await ended(there, RULES)
        assert ("ERRO", "needs_ocr") == (told["status"], told["erro_codigo"])

        wanted = replace(RULES, ocr=Ocr.WITHOUT_TEXT)
        await there.app.write(
            lambda tx: store.projects.change_project(tx, 1, "PGE", wanted, actor="ana")
        )
        await service.reprocess(there.app, execution, actor="ana")
        await there.drained()
        [told] = await there.results(execution)
        assert ("CONCLUIDO", "petição inicial") == (told["status"], told["rotulo"])
        text = await there.text(execution, int(told["id"]))
        assert f"x{ocr.SIDE} True True" in text


async def test_where_ocr_is_wanted_and_missing_the_document_waits_for_a_person(
    database_url, tmp_path, monkeypatch
):
    monkeypatch.setattr(story, "read_file", _without_library)
    async with world(database_url, tmp_path) as there:
        execution, told = await ended(there, replace(RULES, ocr=Ocr.WITHOUT_TEXT))
        assert ("PENDENTE", "no_ocr", 0) == tuple(
            told[name] for name in ("status", "erro_codigo", "tentativas")
        )

        monkeypatch.setattr(story, "read_file", read_by_fake_ocr)
        await service.resume(there.app, execution, actor="ana")
        await there.drained()
        [told] = await there.results(execution)
        assert "CONCLUIDO" == told["status"]


def _without_library(path: str, name: str, rule: str) -> object:
    ocr.LIBRARIES = ("libtesseract.so.none",)  # type: ignore[misc, assignment]
    return read_file(path, name, rule)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_tesseract_itself_reads_a_picture_in_the_confined_child(tmp_path, sqlite_url):
    """As Debian packages it: installed where it is not there; Portuguese with its accents."""
    _install()
    lines = ["Excelentíssimo senhor juiz", "a petição inicial do requerente", "pede citação"]
    picture = _drawn(lines)
    async with world(sqlite_url, tmp_path) as there:
        rules = replace(RULES, ocr=Ocr.ALWAYS)
        project = await there.project(rules=rules)
        paper = replace(SCANNED, content=picture, name="digitalizado.pdf")
        execution = await there.handed_in(project, [paper])
        await there.drained()
        [told] = await there.results(execution)
        assert "CONCLUIDO" == told["status"], told
        text = await there.text(execution, int(told["id"]))
        for word in ("Excelentíssimo", "petição", "citação"):
            assert word in text, text


def _install() -> None:
    try:
        ctypes.CDLL(ocr.LIBRARIES[0])
    except OSError:
        apt = shutil.which("apt-get")
        assert apt is not None, "the soak runs where Debian's packages are"
        for words in (["update"], ["install", "-y", "tesseract-ocr", "tesseract-ocr-por"]):
            subprocess.run([apt, "-q", *words], check=True, stdout=subprocess.DEVNULL)


def _drawn(lines: list[str]) -> bytes:
    """A PDF of one picture: words drawn by PDFium, and nothing left of them as text."""
    import pypdfium2

    document = pypdfium2.PdfDocument(pdf_of([lines]))
    image = document[0].render(scale=3)
    made = pypdfium2.PdfDocument.new()
    page = made.new_page(*document[0].get_size())
    held = pypdfium2.PdfImage.new(made)
    held.set_bitmap(image)
    held.set_matrix(pypdfium2.PdfMatrix().scale(*document[0].get_size()))
    page.insert_obj(held)
    page.gen_content()
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()
