"""docs/states.md draws what the code does."""

from retoma.engine.rules.states import OWNERS, State, drawing
from tests.house.files import ROOT
from tests.house.tables import rows_of

PAGE = ROOT / "docs" / "states.md"


def test_e1_the_drawing_on_the_page_is_the_one_made_from_the_moves():
    page = PAGE.read_text(encoding="utf-8")

    assert [drawing()] == [part.split("```")[0] for part in page.split("```mermaid\n")[1:]]


def test_the_page_names_every_state_and_its_owner():
    rows = rows_of(PAGE, "state")

    assert [(f"`{state}`", OWNERS[state]) for state in State] == [
        (row[0], row[2]) for row in rows
    ]
