"""Who knows one application knows five: each has the same files, and what more it has is called alike."""

import ast

import pytest

from tests.house.files import ROOT

APPS = ROOT / "src" / "retoma" / "apps"
ROOMS = ("ads", "documents", "embeddings", "matches", "quotes")
SAME = {"__init__", "model", "steps", "store", "api", "pages", "sql", "migrations"}

SHARED = ("readers",)  # of files, for documents and embeddings


def names(room: str) -> set[str]:
    """A file may become a folder of the same name."""
    return {
        each.stem
        for each in (APPS / room).iterdir()
        if each.suffix == ".py" or (each / "__init__.py").exists()
    }


@pytest.mark.parametrize("room", ROOMS)
def test_every_application_has_the_same_files(room):
    assert names(room) >= SAME


@pytest.mark.parametrize("room", ROOMS)
def test_the_door_of_an_application_shows_what_it_hands_to_the_house_and_nothing_else(room):
    opening = ast.parse((APPS / room / "__init__.py").read_text())

    assert {ast.Expr, ast.ImportFrom, ast.Assign} == {type(each) for each in opening.body}
    assert "APP = Application(" in ast.unparse(opening)


def test_there_are_no_other_rooms():
    found = {each for each in APPS.iterdir() if (each / "__init__.py").exists()}

    assert {*ROOMS, *SHARED} == {each.name for each in found}
