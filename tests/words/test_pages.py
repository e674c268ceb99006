"""No page says anything that the catalogue does not have: neither its text nor what is read aloud of it."""

import re

import pytest

from tests.house.files import SOURCE
from tests.words.marked import drawn

TEMPLATES = sorted(SOURCE.rglob("templates/*.html"))
SCRIPTS = sorted((SOURCE / "web" / "pages" / "static").glob("*.js"))
CODE = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
SPOKEN = re.compile(r'\b(?:title|alt|aria-label|placeholder|data-ask)="([^"]*)"')
TYPED = re.compile(r"<(code|pre)\b[^>]*>.*?</\1>", re.DOTALL)  # commands, and what others said
TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
LETTERS = re.compile(r"[^\W\d_]{2}")
# The same in every language.
NAMES = (
    "retoma",
    "retoma people invite",
    "--role operator",
    "PT",
    "EN",
    "Português",
    "English",
)


def bare(template: str) -> list[str]:
    """What it says by itself."""
    text = TYPED.sub("\n", CODE.sub("\n", template))
    said = [*SPOKEN.findall(text), *TAG.sub("\n", text).splitlines()]
    stripped = (each.strip(" ·:—…/+%#") for each in said)
    return [each for each in stripped if LETTERS.search(each) and each not in NAMES]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_page_says_only_what_is_in_the_catalogue(path):
    template = path.read_text(encoding="utf-8")

    assert [] == bare(template)
    assert [] == [line for line, text in drawn(template) if text is None]


@pytest.mark.parametrize(
    "planted",
    [
        "<p>Nothing here</p>",
        '<a title="Go there">{{ n }}</a>',
        "{{ n }} jobs",
        "<b>\n Oi, Ana\n</b>",
    ],
)
def test_a_bare_text_is_seen(planted):
    assert [] != bare(planted)


def test_programs_say_nothing_by_themselves():
    """What they show stands in the page, where it was told in a language."""
    for path in SCRIPTS:
        assert not re.search(r'textContent = ["`]', path.read_text(encoding="utf-8")), path.name
