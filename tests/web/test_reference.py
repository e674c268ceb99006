"""The page of the REST API is what the API says of itself.

Also a program: `python -m tests.web.test_reference` writes the page anew.
"""

from pathlib import Path

from retoma.web import reference
from retoma.web.problems import CODES, TITLES
from tests.house.files import ROOT
from tests.house.tables import rows_of
from tests.web.test_sign_in import site_with

PAGE = ROOT / "docs" / "reference" / "rest.md"
BEGINS = "\n## Jobs\n"  # what stands before it is written by hand


def generated(page: Path) -> str:
    head = page.read_text(encoding="utf-8").partition(BEGINS)[0]
    return reference.markdown(site_with().openapi(), head)


def test_every_request_is_on_the_page():
    assert generated(PAGE) == PAGE.read_text(encoding="utf-8")


def test_every_code_is_on_the_page_with_its_status():
    codes = [[f"`{code}`", str(int(status))] for code, status in CODES.items()]

    assert codes == [row[:2] for row in rows_of(PAGE, "code")]
    assert set(CODES.values()) == set(TITLES)


def test_the_page_for_browsers_needs_nobody_else():
    page = reference.page(site_with().openapi())

    assert "POST /api/jobs/{job}/cancel" in page
    assert "<script" not in page
    assert "style=" not in page
    assert "//" not in page.replace("http://www.w3.org", "")


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE), encoding="utf-8")
