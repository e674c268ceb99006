"""The reference pages name every code, class, exception and event, and nothing else."""

from retoma.engine.rules import errors
from retoma.engine.rules.errors import ENGINE_CODES, ErrorClass, RetomaError
from retoma.engine.rules.events import LEADS_TO, End, EventType
from tests.house.files import ROOT
from tests.house.tables import rows_of

ERRORS = ROOT / "docs" / "reference" / "errors.md"
EVENTS = ROOT / "docs" / "reference" / "events.md"


def test_every_code_is_on_the_page_as_the_engine_has_it():
    codes = [
        [f"`{code.code}`", code.error_class, code.action, code.meaning]
        for code in ENGINE_CODES.values()
    ]

    assert codes == rows_of(ERRORS, "code")


def test_every_class_of_error_is_on_the_page():
    assert [f"`{each}`" for each in ErrorClass] == [row[0] for row in rows_of(ERRORS, "class")]


def test_every_exception_is_on_the_page():
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, RetomaError) and kind is not RetomaError
    ]

    assert sorted(f"`{name}`" for name in kinds) == sorted(
        row[0] for row in rows_of(ERRORS, "exception")
    )


def test_e11_every_event_is_on_the_page_with_the_state_it_leads_to():
    events = [(f"`{event}`", f"`{to}`" if to else "") for event, to in LEADS_TO.items()]

    assert events == [(row[0], row[1]) for row in rows_of(EVENTS, "event")]
    assert [f"`{event}`" for event in EventType] == [name for name, _ in events]


def test_e9_the_page_names_the_ends_of_a_claim():
    ends = "`, `".join(End)

    assert f"`{ends}`" in EVENTS.read_text(encoding="utf-8")
