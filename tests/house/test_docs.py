"""Links inside the docs lead somewhere, and every decision is in the list."""

import re
from pathlib import Path

from tests.house.files import ROOT, kept_files

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
DECISIONS = ROOT / "docs" / "decisions"


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
