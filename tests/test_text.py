"""Text is normalized in linear time, and as Unicode says wherever a language is written."""

import ast
import unicodedata

import pytest

from retoma.text import MOST_MARKS, normalize
from tests.house.files import SOURCE

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
ACUTE, DOT_RIGHT = "\u0301", "\u0358"


@pytest.mark.parametrize("form", FORMS)
def test_text_is_normalized_as_unicode_says(form):
    for text in (
        "",
        "Descrição nº 1 ½ ﬁm",
        f"a{ACUTE}{DOT_RIGHT}" * 500,
        "ação" * 500,
        "한국어" * 300,
        "Việt" * 100 + "é" * 200,
        "e" + ACUTE * MOST_MARKS,
    ):
        assert unicodedata.normalize(form, text) == normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "marks",
    ["\u0315\u0300", "\u0f73\u0f73", "\uff9e\u0315", "\u0344\u0315", "\u1dce\u0334"],
)
def test_marks_beyond_the_thirtieth_in_a_row_are_dropped(form, marks):
    """The second of each pair sorts before the first: all of them would move past all others."""
    first, second = marks
    text = "a" + first * 40_000 + second * 40_000

    assert len(normalize(form, text)) <= 1 + 2 * MOST_MARKS


def test_only_one_module_normalizes():
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in ("normalize", "is_normalized")
        and isinstance(node.value, ast.Name)
        and node.value.id == "unicodedata"
    ]
    assert {"text.py"} == set(found)
