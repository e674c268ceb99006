"""Verbs are made from service functions: what they take, how they explain themselves, what they need."""

import json
import subprocess
import sys

import pytest

from retoma.cli import build
from retoma.cli.noun import Noun, Rows
from tests.cli.conftest import with_app


@pytest.mark.parametrize(
    "words", [("--help",), ("jobs", "--help"), ("budgets", "set", "--help")]
)
def test_no_help_imports_a_service_nor_the_engine(words):
    code = (
        "import sys; from retoma.cli import program\n"
        f"try: program({words!r})({words!r}, prog_name='retoma')\n"
        "except SystemExit: print([name for name in sys.modules if name.startswith("
        "('retoma.services.', 'retoma.library', 'retoma.db', 'retoma.engine.store'))])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.splitlines()[-1]


def test_a_verb_takes_what_its_function_takes_and_no_actor():
    [verb] = [build().commands["limits"].commands[name] for name in ("set",)]

    assert ["key", "cap", "database", "json"] == [each.name for each in verb.params]
    assert "Let so many run at once, over what the code says." == verb.help


def test_what_no_function_takes_is_a_mistake_of_the_declaration():
    with pytest.raises(ValueError, match="set_limit takes no most"):
        Noun("gates").verb(
            "set_limit", "set", shows=Rows((), tuple), takes={"most": "How many."}
        )


def test_a_list_says_that_it_is_empty_and_how_the_next_page_is_asked_for(url, verb):
    async def limited(app):
        for key in ("a", "b", "c"):
            await app.limits.set(key, 2)

    with_app(url, lambda app: app.database())
    empty = verb("limits", "list")
    with_app(url, limited)
    first = verb("limits", "list", "--limit", "2")
    rest = json.loads(verb("limits", "list", "--after", "b", "--json").out)

    assert "no limits\n" == empty.out
    assert first.out.endswith("more: --after b\n")
    assert ["c"] == [each["key"] for each in rest]
