"""Links inside the docs lead somewhere, every page is on the map, and what is claimed has its test."""

import ast
import re
from pathlib import Path

import pytest

from retoma.cli import build
from tests.house.files import ROOT, kept_files
from tests.house.pages import verbs_of

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
SHOWN_BY = re.compile(r"\]\((tests/[^)]*)\)")  # a test that shows what is claimed
DECISIONS = ROOT / "docs" / "decisions"
MAP = ROOT / "docs" / "README.md"
TYPED = re.compile(r"(?:^|[`$(/&] ?)retoma((?: [a-z][a-z-]*)+)", re.MULTILINE)
VERBS = {verb for verb, _ in verbs_of(build(), "retoma")}
OF_READERS = {"interviews"}  # an application that a how-to writes
READMES = ("README.md", "README.pt-BR.md")


def broken_links(page: Path) -> list[str]:
    targets = LINK.findall(page.read_text())
    return [target for target in targets if not (page.parent / target).exists()]


def test_every_link_inside_the_docs_leads_somewhere():
    pages = [path for path in kept_files() if path.suffix == ".md"]

    assert pages
    assert {page.name: broken_links(page) for page in pages if broken_links(page)} == {}


def test_every_decision_is_in_the_list():
    listed = (DECISIONS / "README.md").read_text()

    for page in DECISIONS.glob("[0-9]*.md"):
        assert f"({page.name})" in listed


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[here](page.md), [there](gone.md), [away](https://example.org/x)")

    assert ["gone.md"] == broken_links(page)


def test_every_page_is_on_the_map():
    pages = (ROOT / "docs").rglob("*.md")
    apart = {MAP, *DECISIONS.glob("*.md")}  # decisions have a list of their own
    mapped = {(MAP.parent / target).resolve() for target in LINK.findall(MAP.read_text())}

    assert set() == {page for page in pages if page not in apart} - mapped


@pytest.mark.parametrize("name", READMES)
def test_every_claim_links_to_a_test_that_is_there_and_could_fail(name):
    links = SHOWN_BY.findall((ROOT / name).read_text())

    assert links
    assert [] == [link for link in links if not demands(link, ROOT)]


def test_both_readmes_claim_the_same():
    english, portuguese = (SHOWN_BY.findall((ROOT / name).read_text()) for name in READMES)

    assert english == portuguese


def test_a_claim_without_a_test_is_seen(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        "def test_good(): assert 1\ndef test_empty(): pass\ndef helper(): assert 1\n"
    )

    assert demands("tests/test_it.py#test_good", tmp_path)
    gone = ("tests/test_gone.py#test_good", "tests/test_it.py", "tests/test_it.py#test_gone")
    for link in (*gone, "tests/test_it.py#test_empty", "tests/test_it.py#helper"):
        assert not demands(link, tmp_path), link


def test_every_verb_that_a_page_types_is_there():
    pages = [path for path in kept_files() if path.suffix == ".md"]

    found = {page.name: unknown_verbs(page.read_text()) for page in pages}
    assert {} == {name: verbs for name, verbs in found.items() if verbs}


def test_a_verb_that_is_not_there_is_seen():
    text = "`retoma dead list`, `retoma runners`, `retoma dead bury 7`\n$ retoma walk\n"

    assert ["dead bury", "walk"] == unknown_verbs(text)


def unknown_verbs(text: str) -> list[str]:
    """What follows `retoma` begins with a verb; what follows that verb is its own business."""
    told = [said for said in TYPED.findall(text) if said.split()[0] not in OF_READERS]
    return [said.strip() for said in told if not known(f"retoma{said}")]


def known(typed: str) -> bool:
    """A verb with or without more behind it, or a group of verbs that is spoken of as a whole."""
    return any(
        f"{typed} ".startswith(f"{verb} ") or verb.startswith(f"{typed} ") for verb in VERBS
    )


def demands(link: str, root: Path) -> bool:
    """Whether `tests/file.py#test_name` is a test that asserts something, or expects an error."""
    path, _, name = link.partition("#")
    if not (name.startswith("test_") and (root / path).is_file()):
        return False
    return any(
        isinstance(each, ast.Assert)
        or (isinstance(each, ast.Attribute) and each.attr == "raises")
        for test in ast.walk(ast.parse((root / path).read_text()))
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name == name
        for each in ast.walk(test)
    )
