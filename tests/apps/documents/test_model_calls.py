"""Whose fault it is when the model does not answer well: the document's, or the service's."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from retoma.apps.documents import APP
from retoma.apps.documents import steps as story
from retoma.apps.documents.clients.openrouter import Answer
from retoma.apps.documents.model import ProjectRules
from retoma.apps.readers.reading import Read
from retoma.engine.errors import Transient
from tests.apps.documents.aids import RULES, house, paper

# What a call does: the label it answers, the code it fails with, or nothing for ever.
Script = Callable[[int], str]


def scripted(script: Script) -> type:
    """A model that does at its nth call, from 1, what the script says."""

    class Model:
        def __init__(self, *_: object) -> None:
            self.calls = 0

        async def classify(self, _: str, rules: ProjectRules, *__: object) -> Answer:
            self.calls += 1
            told = script(self.calls)
            if told == "late":
                await asyncio.Event().wait()
            if told in rules.names or told == "nonsense":
                return Answer(told, 1.0, "", "m", 1, 1, None)
            raise Transient("the words of somebody else", code=told)

    return Model


async def test_whose_fault_it_is(database_url, monkeypatch):
    """A bad answer and a late one are the document's and spend its tries; an outage spends none; a label
    of the model's own making is never kept (C6)."""

    async def read(*_: object) -> Read:
        return Read(text="x")

    monkeypatch.setattr(story.Documents, "_read", read)
    monkeypatch.setattr(story, "ASKING", 0.05)  # only for a model that never answers
    label, rules = RULES.names[0], replace(RULES, max_retries_documento=1)

    async def told(script: Script, papers: int = 1) -> Sequence[tuple[Any, ...]]:
        monkeypatch.setattr(story, "Classifier", scripted(script))
        async with house(database_url, replace(APP, schedules=()), openrouter_key="k") as there:
            name = str(await there.rows("SELECT count(*) FROM document_projects"))
            wanted = [paper(f"A-{n}", content=f"{name} {n}") for n in range(papers)]
            execution = await there.execution(wanted, rules, name=name)
            await there.drained()
            [(state, failures)] = await there.rows(
                "SELECT state, failures FROM breakers WHERE name = 'documents.openrouter'"
            )
            return [
                (each["rotulo"], each["erro_codigo"], each["tentativas"], state, failures)
                for each in await there.results(execution)
            ]

    def after(n: int, code: str) -> Script:
        return lambda call: code if call <= n else label

    assert [(None, "bad_answer", 2, "closed", 0)] * 6 == await told(after(99, "bad_answer"), 6)
    assert [(None, "unknown_label", 2, "closed", 0)] == await told(lambda _: "nonsense")
    assert [(label, None, 1, "closed", 0)] == await told(after(3, "server_error"))
    assert [(label, "timeout", 2, "closed", 0)] == await told(after(1, "late"))
    assert [(None, "timeout", 2, "closed", 2)] == await told(after(99, "late"))


async def test_without_a_key_it_waits_for_a_person(database_url, monkeypatch):
    async def read(*_: object) -> Read:
        return Read(text="x")

    monkeypatch.setattr(story.Documents, "_read", read)
    async with house(database_url, replace(APP, schedules=())) as there:
        execution = await there.execution([paper("A-1")])
        await there.drained()

        assert "EM_ANDAMENTO" == (await there.stand(execution)).status
        [(reason, code)] = await there.rows("SELECT reason, code FROM jobs")
        assert ("config", "no_key") == (reason, code)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever whoever runs the tests has."""
    for name in ("RETOMA_OPENROUTER_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
