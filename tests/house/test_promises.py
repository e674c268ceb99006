"""Every bad input that concerns the API or the ads (PROMISES §6) has a test that carries its number."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tests.house.files import ROOT

# The others concern applications, and come with them.
OF_ADS = {17, 18}
OF_THE_API = {1, 2, *range(4, 15), *range(25, 29), 30, *range(34, 38), 40}
OF_ADS = {19, 31, 32, 33}  # what remote services may say
NAMED = re.compile(r"rows?_((?:\d+)(?:_and_\d+)*)")


def rows_of(texts: Iterable[str]) -> set[int]:
    """Numbers in the names of tests that could fail: those that assert or expect an error."""
    return {
        int(number)
        for text in texts
        for test in ast.walk(ast.parse(text))
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
        and test.name.startswith("test_")
        and _demands(test)
        for said in NAMED.findall(test.name)
        for number in said.split("_and_")
    }


def _demands(test: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Assert)
        or (isinstance(each, ast.Attribute) and each.attr == "raises")
        for each in ast.walk(test)
    )


def test_every_row_that_concerns_the_api_or_ads_has_a_test():
    found = rows_of(path.read_text() for path in Path(ROOT / "tests").rglob("test_*.py"))

    assert set() == (OF_THE_API | OF_ADS) - found


def test_a_row_that_is_only_talked_of_is_not_taken_for_tested():
    talked_of = "# row_1\ndef helper_row_2(): assert 1\ndef test_row_3(): pass\n"
    tested = "async def test_e8_rows_4_and_5_are_one():\n    assert 1\n"

    assert {4, 5} == rows_of([talked_of, tested])
