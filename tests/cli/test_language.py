"""The command line speaks the language of whoever types; documents and the library do not."""

import json

import pytest

from retoma import settings
from retoma.engine.rules.errors import BadInput, IllegalMove
from tests.cli.conftest import with_app


@pytest.fixture
def in_portuguese(monkeypatch):
    monkeypatch.setenv("RETOMA_LANGUAGE", "pt_BR")


@pytest.mark.usefixtures("in_portuguese")
def test_the_command_line_speaks_portuguese_and_its_documents_do_not(worked, verb):
    explained = verb("jobs", "explain", "3").out
    refused = verb("jobs", "show", "99")
    listed = verb("batches", "show", "1").out
    counted = json.loads(verb("batches", "show", "1", "--json").out)

    assert explained.startswith("job 3: morto (permanent, código no_three): three cannot be")
    assert (1, "retoma: não existe o job 99\n") == (refused.code, refused.err)
    assert "5 de 5 encerrados: 4 done · 1 dead" in listed
    assert {"done": 4, "dead": 1} == counted["counts"]


@pytest.mark.usefixtures("in_portuguese")
def test_every_verb_explains_itself_in_portuguese(verb):
    said = verb("jobs", "--help").out

    assert "Por que não está rodando, em uma frase" in said
    assert "Olhar jobs e conduzi-los." in said


@pytest.mark.usefixtures("in_portuguese")
def test_a_contradiction_is_told_in_portuguese(verb, url, monkeypatch):
    monkeypatch.setenv("RETOMA_TICK", "90")

    said = verb("jobs", "list")

    assert 2 == said.code
    assert "RETOMA_TICK (90 s) e RETOMA_LEASE (60 s) se contradizem" in said.err
    with pytest.raises(BadInput, match="contradict each other"):
        settings.read()  # where it is raised it is English


def test_the_library_raises_in_english_whatever_the_locale(url, monkeypatch):
    monkeypatch.setenv("RETOMA_LANGUAGE", "pt_BR")

    async def refused(app):
        job = await app.submit("note", "x")
        with pytest.raises(IllegalMove, match="only a job that has ended can be tried again"):
            await app.retry(job.id)

    with_app(url, refused)
