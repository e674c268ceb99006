"""What people read is in the catalogue, says the same there, and is told in their language."""

import ast
import os
import pickle
import re
import string
import subprocess
import sys

import pytest

from retoma import words
from retoma.engine.rules.errors import BadInput
from retoma.words import Language, say, tell
from retoma.words.catalogue import catalogue, entries
from tests.house.files import SOURCE
from tests.words.marked import calls, marked

KNOWN = catalogue(Language.PT_BR)
# Raised for people to read, and to change nothing.
REFUSALS = ("BadInput", "NotFound", "IllegalMove", "IdempotencyMismatch", "UnknownKind", "Stop")


# --- the catalogue and the code


def says_something(text: str) -> bool:
    """More than what stands in it and how it is typed."""
    return re.search(r"[^\W\d_]{2}", re.sub(r"\{[^}]*\}|`[^`]*`", "", text)) is not None


def fields(text: str) -> list[tuple[str, str, str]]:
    parsed = string.Formatter().parse(text)
    return sorted((name, form or "", how or "") for _, name, form, how in parsed if name)


def test_portuguese_has_every_text_that_people_read():
    lacking = {
        text: where
        for text, where in marked().items()
        if says_something(text) and not KNOWN.get(text)
    }

    assert {} == lacking, "`python -m tests.words.marked` prints what the catalogue lacks"


def test_nothing_is_translated_that_nobody_says():
    said = marked()

    assert [] == [text for text in KNOWN if text not in said]


def test_a_translation_has_the_values_of_its_original():
    assert [] == [text for text, told in KNOWN.items() if fields(text) != fields(told)]


def test_no_text_is_in_the_catalogue_twice():
    file = (SOURCE / "words" / "pt_BR.po").read_text(encoding="utf-8")
    texts = [text for text, _ in entries(file)]

    assert len(texts) == len(set(texts))


def test_what_is_marked_is_plain_text():
    """Else nobody could find it."""
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "words":
            strange = [line for line, text in calls(path.read_text()) if text is None]
            assert [] == strange, path


def bare_refusals(source: str) -> list[int]:
    """Lines where somebody is refused in words that can only be told in English."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in REFUSALS
        and any(isinstance(arg, ast.JoinedStr) or plain(arg) for arg in node.args)
    ]


def plain(arg: ast.expr) -> bool:
    return isinstance(arg, ast.Constant) and isinstance(arg.value, str)


def test_every_refusal_can_be_told_in_another_language():
    found = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := bare_refusals(path.read_text(encoding="utf-8")))
    }

    assert {} == found, 'write say("… {name}", name=name)'


@pytest.mark.parametrize("planted", ['BadInput("no")', 'NotFound(f"no {x}")', 'Stop(1, "no")'])
def test_a_bare_refusal_is_seen(planted):
    assert [1] == bare_refusals(f"raise {planted}")
    assert [] == bare_refusals('raise BadInput(say("no {x}", x=x))')


# --- telling


def test_a_sentence_is_english_where_it_is_made_and_told_where_it_is_read():
    said = say("there is no job {job}", job=7)

    assert "there is no job 7" == said == str(BadInput(said))
    assert "there is no job 7" == tell(said, Language.EN)
    assert "não existe o job 7" == tell(said, Language.PT_BR)


def test_a_sentence_in_a_sentence_an_error_in_one_and_a_noun_are_told_too():
    inner = say("there is no job {job}", job=7)

    assert "job 7: não existe o job 7" == tell(
        say("job {job}: {why}", job=7, why=inner), Language.PT_BR
    )
    assert "agendamento x: não existe o job 7" == tell(
        say("schedule {name}: {error}", name="x", error=BadInput(inner)), Language.PT_BR
    )
    assert "não existe lote 9" == tell(
        say("there is no {what} {id!r}", what="batch", id=9), Language.PT_BR
    )


def test_what_no_catalogue_knows_stays_as_it_is():
    assert "{braces} and all" == tell("{braces} and all", Language.PT_BR)
    assert "a{b}" == tell(say("a{b}"), Language.PT_BR)


def test_a_sentence_travels_between_processes_whatever_stood_in_it():
    said = say("{fn!r} is async: it runs on the loop, not in a thread", fn=lambda: None)

    assert str(said) == pickle.loads(pickle.dumps(said))  # noqa: S301 — our own


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "pt_BR.UTF-8"}, "pt_BR"),
        ({"LANG": "pt_BR.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "C", "LC_MESSAGES": "pt_PT"}, "pt_BR"),
        ({"LANG": "pt_BR.UTF-8", "RETOMA_LANGUAGE": "en"}, "en"),
        ({"LANG": "de_DE", "RETOMA_LANGUAGE": "pt-BR"}, "pt_BR"),
        ({"LANG": "de_DE"}, "en"),
    ],
)
def test_the_language_is_chosen_as_every_program_does(monkeypatch, environment, expected):
    for name in ("RETOMA_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert expected == words.chosen()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('msgid "a"\nmsgstr "b"\n', [("a", "b")]),
        ('# why\n#: x.py:1\nmsgid ""\n"a "\n"b"\nmsgstr "c\\"d\\n"\n', [("a b", 'c"d\n')]),
        ('msgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr "c"', [("a", ""), ("b", "c")]),
        ("", []),
    ],
)
def test_a_catalogue_is_read_as_gettext_writes_it(text, expected):
    assert expected == list(entries(text))


def test_english_reads_no_catalogue():
    code = "import sys, retoma.cli; retoma.cli.program(); print('retoma.words.catalogue' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RETOMA_LANGUAGE": "en"},
    )

    assert "False" == done.stdout.strip()
