"""Reference pages that are written by the code say what the code says."""

import pytest

from tests.house.pages import AGAIN, FOR_STORIES, PAGES, REFERENCE, library, written


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says_of_itself(name):
    page = written(PAGES[name]())

    assert page == (REFERENCE / name).read_text(encoding="utf-8"), f"write it anew: {AGAIN}"


def test_whatever_a_story_may_use_is_there():
    page = written(library())

    [context] = [part for part in page.split("\n## ") if part.startswith("Context\n")]
    assert all(f"{name}(" in context or f"`{name} " in context for name in FOR_STORIES)
