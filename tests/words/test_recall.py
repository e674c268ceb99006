"""A message that is stored in one language is told in the other, by its text alone."""

import ast
import re
import string
from typing import Any

import pytest

from retoma.apps.ads.model import ERRORS
from retoma.apps.ads.pages.words import MEANINGS
from retoma.apps.documents.model import CODES
from retoma.words import Language, say, tell
from retoma.words.catalogue import catalogue
from retoma.words.recall import LETTERS, tell_stored
from tests.house.files import SOURCE

EN, PT = Language.EN, Language.PT_BR
# What is raised, parked or told of remote work stands in the timeline of a job, for a person to read.
STORED = frozenset(
    ("Absent", "PageRefused", "Park", "Permanent", "Skip", "Throttled", "Transient", "Unsure")
)
WORD = re.compile(r"[^\W\d_]{2}")
PLACE = re.compile(
    r"^[\w.]*(: )?(\d+ )?$"
)  # `fipe: `: where it happened, a name in any language


def filled(template: str) -> dict[str, Any]:
    """Values for a template, each unlike the others."""
    found = [part for part in string.Formatter().parse(template) if part[1]]
    return {
        str(name): 7 + n if spec and spec[-1] in "dfgox," else f"v{n}x"
        for n, (_, name, spec, _) in enumerate(found)
    }


def sentences() -> list[tuple[str, str]]:
    """Every text of the catalogue that says enough to be known again, in English and in Portuguese."""
    told = []
    for template in catalogue(PT):
        words = re.sub(r"\{[^}]*\}", "", template)
        if " " in template and sum(map(str.isalpha, words)) >= LETTERS:
            values = filled(template)
            said = say(template, **values)
            told.append((tell(said, EN), tell(said, PT)))
    return told


def test_every_sentence_that_is_stored_in_english_is_told_in_portuguese():
    wrong = [en for en, pt in sentences() if pt != tell_stored(en, PT)]

    # It is told by "there is no scrape {id!r}", which quotes nothing in this text.
    assert ["there is no scrape v0x"] == wrong
    assert "não há scrape v0x" == tell_stored("there is no scrape v0x", PT)


def test_every_sentence_that_is_stored_in_portuguese_is_told_in_english():
    """Two English sentences may be one in Portuguese: then either is told."""
    meant: dict[str, set[str]] = {}
    for en, pt in sentences():
        meant.setdefault(pt, set()).add(en)

    told = {pt: tell_stored(pt, EN) for pt in meant}

    assert {} == {
        pt: en
        for pt, en in told.items()
        if en not in meant[pt] and tell_stored(en, PT) != pt  # a shorter text of the same words
    }


@pytest.mark.parametrize(
    ("stored", "english", "portuguese"),
    [
        (
            "ERROR103: the session of the worker w1 broke off (disconnected)",
            "ERROR103: the session of the worker w1 broke off (disconnected)",
            "ERROR103: a sessão do worker w1 caiu (disconnected)",
        ),
        (
            "ERROR103: a sessão do worker w1 caiu (disconnected)",
            "ERROR103: the session of the worker w1 broke off (disconnected)",
            "ERROR103: a sessão do worker w1 caiu (disconnected)",
        ),
        (
            "alerts: POST https://shop.example: cannot connect; it may have happened",
            "alerts: POST https://shop.example: cannot connect; it may have happened",
            "alerts: POST https://shop.example: não foi possível conectar; pode ter acontecido",
        ),
        (
            "serpapi: GET https://serpapi.com: answered 503",
            "serpapi: GET https://serpapi.com: answered 503",
            "serpapi: GET https://serpapi.com: respondeu 503",
        ),
        (
            "fipe: nothing is called like 'Gol 1.0'",
            "fipe: nothing is called like 'Gol 1.0'",
            "fipe: nada tem um nome como 'Gol 1.0'",
        ),
        (
            "o serviço rejeitou o pedido: The model does not exist",
            "the service rejected the request: The model does not exist",
            "o serviço rejeitou o pedido: The model does not exist",
        ),
        (
            "3 of 9 chunks were refused: the text is longer than the provider takes",
            "3 of 9 chunks were refused: the text is longer than the provider takes",
            "3 de 9 trechos foram recusados: o texto é mais longo do que o provedor aceita",
        ),
    ],
)
def test_parts_values_and_sentences_in_sentences_are_told_too(stored, english, portuguese):
    assert english == tell_stored(stored, EN)
    assert portuguese == tell_stored(stored, PT)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "ERROR103",
        "anthropic: 400 max_tokens: must be at least 1",
        "worker: Der Proxy antwortet nicht",
        "answered the phone",
        "no",
        "x" * 5_000,
        "{braces} and all: {0}",
    ],
)
def test_the_words_of_others_and_codes_stay_as_they_are(words):
    assert words == tell_stored(words, EN) == tell_stored(words, PT)


def test_the_meanings_of_the_documents_codes_are_told_in_english():
    """What the documents write is Portuguese; a page in English has the same in English."""
    assert ERRORS.keys() == MEANINGS.keys()
    assert {code: error.means for code, error in ERRORS.items()} == {
        code: tell(said, PT) for code, said in MEANINGS.items()
    }
    assert [] == [
        each.code for each in CODES.values() if each.meaning == tell_stored(each.meaning, EN)
    ]


# --- what is raised can be told in another language


def bare_messages(source: str) -> list[int]:
    """Lines that store words of ours which stand in no catalogue."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in STORED
        and node.args
        and any(_says_something(each) for each in _texts(node.args[0]))
    ]


def _texts(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.JoinedStr(values=parts):
            return [text for part in parts for text in _texts(part)]
        case ast.BoolOp(values=parts):
            return [text for part in parts for text in _texts(part)]
        case ast.IfExp(body=first, orelse=second):
            return [*_texts(first), *_texts(second)]
        case _:
            return []


def _says_something(text: str) -> bool:
    return WORD.search(text) is not None and PLACE.match(text) is None


def test_whatever_is_stored_of_a_failure_can_be_told_in_another_language():
    found = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := bare_messages(path.read_text(encoding="utf-8")))
    }

    assert {} == found, 'write say("… {name}", name=name)'


@pytest.mark.parametrize(
    "planted",
    [
        'Permanent("its address is none of the site\'s", code="OFF_SITE")',
        'Transient(f"{n} shops did not answer")',
        'Transient(why or f"a sessão de {worker} terminou")',
        'Park("no way" if x else y, kind)',
    ],
)
def test_a_bare_message_is_seen(planted):
    assert [1] == bare_messages(planted)
    assert [] == bare_messages('Permanent(say("its address is none of the site\'s"))')
    assert [] == bare_messages('Transient(f"fipe: {error}")')
