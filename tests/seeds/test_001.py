"""What the document of the classifier says and no other test shows: its backoff, its numbers, its columns."""

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from retoma.apps.documents import APP
from retoma.apps.documents import steps as story
from retoma.apps.documents.model import MOST_RETRIES, Label, ProjectRules
from retoma.db import seconds_between
from retoma.db.migrations import ENGINE, Room
from retoma.toolkit.readers.reading import Read
from tests.apps.documents.aids import RULES, House, house, paper
from tests.apps.documents.test_model_calls import scripted
from tests.apps.runners import ring
from tests.databases import Rooms
from tests.engine.aids import eventually, running
from tests.seeds.table import read_table

ADDED = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) \w+(?:\(\d+\))?(?: DEFAULT (\d+))?;")


@pytest.fixture
def rooms() -> Rooms:
    return (ENGINE, Room("documents", "retoma.apps.documents.migrations"))


async def test_a_document_waits_five_seconds_then_ten_and_ends_after_two_retries(
    database_url, test_clock, monkeypatch
):
    """§3, with the rules of a project that says nothing: nobody comes earlier, and the third failure is the last."""

    async def read(*_: object) -> Read:
        return Read(text="x")

    monkeypatch.setattr(story.Documents, "_read", read)
    monkeypatch.setattr(story, "Classifier", scripted(lambda _: "bad_answer"))
    async with house(database_url, replace(APP, schedules=()), openrouter_key="k") as there:
        await there.execution([paper("A-1")], RULES)
        waits: list[int] = []
        async with running(there.app, slots=1):
            for n in (1, 2):
                waits.append(await eventually(partial(_waits, there, n)))
                test_clock.jump(waits[-1] + 0.1)
                await (await there.app.database()).write(ring, verb="ring")

            async def over() -> list[Any]:
                return await there.rows("SELECT 1 FROM jobs WHERE state = 'dead'")

            await eventually(over)
        [(status, tries, code)] = await there.rows(
            "SELECT status, tentativas, erro_codigo FROM resultados_classificacao"
        )

    assert [5, 10] == waits
    assert ("ERRO", 3, "bad_answer") == (status, tries, code)


async def _waits(there: House, failures: int) -> int:
    """Seconds from its latest failure until its next attempt, when it has failed so often; else 0."""
    rows = await there.rows(
        "SELECT j.run_at, e.at FROM jobs j JOIN events e ON e.job = j.id AND e.type = 'failed'"
        " WHERE j.state = 'waiting' AND j.failures = :n ORDER BY e.seq DESC LIMIT 1",
        n=failures,
    )
    if not rows:
        return 0
    [(due, failed)] = rows
    return round(seconds_between(failed, due) or 0.0)


def test_the_documents_limits_are_those_of_a_project_that_says_nothing():
    plain = ProjectRules(labels=(Label("petição"),))

    assert (3, 2) == (plain.max_retries_execucao, plain.max_retries_documento)
    assert timedelta(minutes=2) >= timedelta(seconds=story.READING + story.ASKING)
    assert MOST_RETRIES > plain.max_retries_execucao, "a project may say otherwise"


async def test_every_column_that_the_document_adds_is_in_its_table(database_url):
    """Its migration, statement by statement; where it names a default, that is what a new one has."""
    [told] = [each.quote for each in read_table("001").rows if each.first == 135]
    added = [found.groups() for line in told.splitlines() if (found := ADDED.match(line))]
    async with house(database_url) as there:
        await there.execution([paper("A-1")])

        assert 7 == len(added)
        for table, column, default in added:
            [(value,)] = await there.rows(f"SELECT {column} FROM {table}")  # noqa: S608
            assert (None if default is None else int(default)) == value, (table, column)
        await there.drained()
        [(beat, last)] = await there.rows(
            "SELECT ultimo_heartbeat, ultimo_codigo_processado FROM execucoes_classificacao"
        )
        assert beat is not None
        assert "A-1" == last
