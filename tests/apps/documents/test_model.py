"""What a project may say, and what makes an answer the same answer."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from retoma.apps import documents
from retoma.apps.documents.model import (
    CODES,
    MEANINGS,
    MOVES,
    STATUS,
    TERMINAL,
    DocumentStatus,
    ExecutionStatus,
    Label,
    ProjectRules,
    checked_rules,
    meaning_of,
)
from retoma.apps.documents.store.rows import rules_from, rules_text
from retoma.engine.rules.errors import ENGINE_CODES, Action, BadInput, ErrorClass
from retoma.engine.rules.states import State
from retoma.words import Language, tell
from retoma.words.recall import tell_stored

RULES = ProjectRules(labels=(Label("petição", "um pedido"), Label("sentença")))


def test_c3_what_is_stuck_never_ends_without_going_on():
    """H-22: every status has its moves; none leads from TRAVADO to CONCLUIDO."""
    assert set(ExecutionStatus) == set(MOVES)
    assert ExecutionStatus.CONCLUIDO not in MOVES[ExecutionStatus.TRAVADO]
    assert {ExecutionStatus.EM_ANDAMENTO, ExecutionStatus.ERRO} == MOVES[
        ExecutionStatus.TRAVADO
    ]


def test_every_state_has_its_status():
    assert set(State) == set(STATUS)
    assert set(DocumentStatus) == set(STATUS.values())


def test_c1_only_what_has_ended_counts_as_ended():
    """What waits, for its turn or for a person, and what runs is open: no execution is over with it."""
    open_ = {State.WAITING, State.PARKED, State.RUNNING}
    assert open_ == {state for state in State if STATUS[state] not in TERMINAL}


def test_no_code_of_a_document_is_lost_on_a_bad_answer():
    """H-30: what the model says wrongly is tried again, what a file is not."""
    ours = {code: each for code, each in CODES.items() if each.error_class is ErrorClass.DATA}
    again = {code for code, each in ours.items() if each.action is Action.RETRY}
    assert {"unknown_label", "truncated", "bad_answer"} == again


def test_what_was_written_down_is_read_in_both_languages():
    died = f"{meaning_of('child_died')} (SIGSEGV)"

    assert "the file brought its reader down (SIGSEGV)" == tell_stored(died, Language.EN)
    assert died == tell_stored(died, Language.PT_BR)
    assert "of old" == tell_stored("of old", Language.EN)


def test_every_code_a_document_can_end_with_has_a_meaning_in_both_languages():
    """C8: our own, those of the service, and whatever the engine may end a job with."""
    assert [] == sorted({*named_in_the_code(), *ENGINE_CODES} - set(CODES))
    assert set(CODES) == set(MEANINGS)
    assert {code: each.meaning for code, each in CODES.items()} == {
        code: tell(said, Language.PT_BR) for code, said in MEANINGS.items()
    }
    assert [] == [c for c in CODES if meaning_of(c) == meaning_of(c, Language.EN)]


def test_the_engines_codes_keep_what_follows_from_them():
    own = {"bad_answer", "too_large"}  # of the model and of the file, here
    assert [] == [
        code
        for code, each in ENGINE_CODES.items()
        if code not in own and replace(CODES[code], meaning=each.meaning) != each
    ]


def named_in_the_code() -> set[str]:
    """By whatever of the application ends a document, or leaves a file out."""
    folder = Path(documents.__file__).parent
    told = "".join(each.read_text() for each in folder.rglob("*.py"))
    found = re.findall(
        r"""(?:code ?= ?|FailureType\(\w+, |LeftOut\([^()]*, )["']([a-z_]+)["']""", told
    )
    assert {"corrupt", "server_error", "too_large", "nested"} <= set(found)
    return set(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"labels": ()}, "one label"),
        ({"labels": (Label("a"), Label("A"))}, "twice"),
        ({"labels": (Label(" "),)}, "printable"),
        ({"labels": (Label("a\n"),)}, "printable"),
        ({"labels": (Label("a" * 101),)}, "printable"),
        ({"labels": (Label("a", "x" * 2_001),)}, "description"),
        ({"labels": tuple(Label(str(n)) for n in range(201))}, "at most"),
        ({"most_chars": 10}, "characters"),
        ({"least_confidence": 1.5}, "confidence"),
        ({"max_retries_documento": -1}, "retries"),
        ({"max_retries_execucao": 99}, "retries"),
    ],
)
def test_rules_that_make_no_sense_are_refused(change, why):
    with pytest.raises(BadInput, match=why):
        checked_rules(replace(RULES, **change))


def test_rules_come_back_as_they_were_kept():
    assert RULES == rules_from(rules_text(checked_rules(RULES)))


def test_what_an_answer_depends_on_is_in_its_recipe():
    """The threshold and the retries are not: they change no answer."""
    same = RULES.recipe("1", ["m"])

    assert same == replace(RULES, least_confidence=0.9, max_retries_documento=0).recipe(
        "1", ["m"]
    )
    others = {
        RULES.recipe("2", ["m"]),
        RULES.recipe("1", ["n"]),
        replace(RULES, model="n").recipe("1", ["m"]),
        replace(RULES, labels=RULES.labels[:1]).recipe("1", ["m"]),
        replace(RULES, labels=(Label("petição", "x"), RULES.labels[1])).recipe("1", ["m"]),
        replace(RULES, instructions="x").recipe("1", ["m"]),
        replace(RULES, most_chars=1_000).recipe("1", ["m"]),
    }
    assert same not in others
    assert replace(RULES, model="n").recipe("1", ["m"]) == RULES.recipe("1", ["n"])
    assert 6 == len(others)
