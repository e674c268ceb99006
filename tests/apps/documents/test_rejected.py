"""The service rejects what it is asked, whatever the document: the execution waits for a person, and fails nothing."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from retoma.apps.documents import APP, service, store
from retoma.apps.documents import steps as story
from retoma.apps.documents.clients.openrouter import Answer, Rejected
from retoma.apps.documents.model import CERTAIN, CURES, ProjectRules
from retoma.db import Transaction
from retoma.engine import store as engine
from retoma.engine.ops.alerts import application_chores
from retoma.engine.store import alerts
from retoma.engine.store.alerts import Rule
from retoma.toolkit.readers.reading import Read
from retoma.words import Language, restored, tell
from tests.apps.documents.aids import RULES, WHO, House, house, paper
from tests.apps.people import people
from tests.engine.aids import eventually, running

DOCUMENTS = 108
SLOTS = 8  # how many may ask before the first is rejected
WORDS = "sandbox/away is not a valid model ID"
LABEL = RULES.names[0]


class Model:
    """Rejects what names `bad`, and answers everything else."""

    def __init__(self, bad: str, code: str = "rejected", words: str = WORDS) -> None:
        self.bad, self.code, self.words = bad, code, words
        self.asked: list[str] = []

    def __call__(self, *_: object) -> "Model":
        return self

    async def classify(self, text: str, rules: ProjectRules, *_: object) -> Answer:
        self.asked.append(text)
        if self.bad in (rules.model, text):
            raise Rejected(self.words, code=self.code)
        return Answer(LABEL, 0.9, "", "m", 1, 1, None)


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a document says is its code: without a child."""

    async def said(_: object, __: object, wanted: Any) -> Read:
        return Read(text=wanted.code)

    monkeypatch.setattr(story.Documents, "_read", said)


def asking(url: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(story, "Classifier", model)
    return house(url, replace(APP, schedules=()), openrouter_key="k")


async def blocked(there: House) -> list[Any]:
    return await there.rows("SELECT blocked_code, blocked_words FROM executions")


async def parked(there: House, n: int) -> bool:
    return [(n,)] == await there.rows("SELECT count(*) FROM jobs WHERE state = 'parked'")


def codes(results: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {(each["status"], each["erro_codigo"], each["tentativas"]) for each in results}


async def test_a_model_that_is_rejected_fails_no_document_and_is_asked_by_few(
    database_url, monkeypatch
):
    """108 documents wait with the words of the service; after the cure they all go on by the model that the
    project names then, and nothing was spent."""
    model = Model("wrong/model")
    rules = replace(RULES, model="wrong/model")
    async with asking(database_url, model, monkeypatch) as there:
        papers = [paper(f"A-{n}") for n in range(DOCUMENTS)]
        execution = await there.execution(papers, rules)
        async with running(there.app, slots=SLOTS):
            await eventually(partial(parked, there, DOCUMENTS))

        assert [("rejected", WORDS)] == await blocked(there)
        assert "EM_ANDAMENTO" == (await there.stand(execution)).status
        results = await there.results(execution)
        assert {("PENDENTE", "rejected", 0)} == codes(results)
        assert any(WORDS in each["erro_mensagem"] for each in results)
        assert len(model.asked) <= SLOTS

        await there.app.write(
            lambda tx: store.projects.change_project(tx, 1, "PGE", RULES, actor=WHO)
        )
        made = [
            await service.executions.resume_execution(there.app, execution, actor=WHO)
            for _ in range(2)
        ]
        assert [True, False] == [changed for _, changed in made]
        assert (0, 2) == (made[0][0].resumes, made[0][0].epoch)
        assert [(None, None)] == await blocked(there)
        await there.drained()
        done = await there.results(execution)
        assert {("CONCLUIDO", LABEL)} == {(each["status"], each["rotulo"]) for each in done}
        assert "CONCLUIDO" == (await there.stand(execution)).status


@pytest.mark.parametrize("code", sorted(CERTAIN))
async def test_what_holds_for_every_document_stops_all_even_after_some_were_answered(
    database_url, monkeypatch, code
):
    model = Model("none", code, "")
    async with asking(database_url, model, monkeypatch) as there:
        execution = await there.execution([paper("A-0")])
        await there.drained()
        assert [LABEL] == [each["rotulo"] for each in await there.results(execution)]
        epoch = (await there.stand(execution)).epoch
        made = [
            await there.app.write(
                lambda tx, at=at: store.executions.block(tx, execution, at, code, "x")
            )
            for at in (epoch - 1, epoch, epoch)
        ]

        assert [False, True, False] == made


async def test_one_document_that_is_rejected_among_others_waits_alone(
    database_url, monkeypatch
):
    """Its neighbours were answered: nothing is the matter with the model. Once it is skipped, all has ended."""
    model = Model("A-3")
    async with asking(database_url, model, monkeypatch) as there:
        execution = await there.execution([paper(f"A-{n}") for n in range(3)])
        await there.drained()
        more = await there.execution([paper(f"A-{n}") for n in range(3, 5)], name="outro")
        # The other one is answered first.
        await there.change(
            "UPDATE jobs SET run_at = clock_in(1), turn = NULL WHERE state = 'waiting'"
            " AND id = (SELECT min(id) FROM jobs WHERE state = 'waiting')"
        )
        await there.drained()

        assert [(None, None)] * 2 == await blocked(there)
        assert {"CONCLUIDO"} == {each["status"] for each in await there.results(execution)}
        told = {each["codigo"]: each for each in await there.results(more)}
        assert ("PENDENTE", "rejected") == (told["A-3"]["status"], told["A-3"]["erro_codigo"])
        assert "CONCLUIDO" == told["A-4"]["status"]


async def test_it_is_told_by_the_api_and_raises_an_alert_until_it_goes_on(
    database_url, monkeypatch
):
    model = Model("A-0", "unauthorized", "User not found.")
    async with asking(database_url, model, monkeypatch) as there:
        execution = await there.execution([paper("A-0"), paper("A-1")])
        await there.drained()
        async with people(there.app, APP, database_url) as who:
            at = f"/classificador/execucoes/{execution}"
            told = (await who["viewer"].get(f"{at}/status-detalhado")).json()
            assert ("unauthorized", "User not found.") == (
                told["bloqueio"]["codigo"],
                told["bloqueio"]["palavras"],
            )
            assert "RETOMA_OPENROUTER_KEY" in told["bloqueio"]["cura"]
            assert ["parked:unauthorized"] == [each["motivo"] for each in told["motivos"]]
            await looked(there)
            [alert] = await there.app.alerts.list()
            assert "User not found." in str(alert.details["text"])
            text = restored(alert.details)
            assert " waits for configuration: " in text
            assert " espera por configuração: " in tell(text, Language.PT_BR)
            assert "service" not in tell(text, Language.PT_BR)

            model.bad = "none"
            went = (await who["operator"].post(f"{at}/retomar")).json()
            assert (True, 0) == (went["alterada"], went["tentativas_retry"])
            await there.drained()
            told = (await who["viewer"].get(f"{at}/status-detalhado")).json()
            assert ("CONCLUIDO", None) == (told["status"], told["bloqueio"])
        await looked(there)
        assert [Rule.BATCH] == [each.rule for each in await there.app.alerts.list()]


async def looked(there: House) -> None:
    """As whoever holds the leader task of the application looks, every 30 seconds."""
    database = await there.app.database()
    await application_chores(there.app.kinds)["application.documents"](database)  # type: ignore[arg-type]


async def test_a_look_is_due_where_all_that_is_left_is_parked(database_url, monkeypatch):
    """Else nobody would be told of an execution whose last documents were parked."""
    async with asking(database_url, Model("A-0"), monkeypatch) as there:
        await there.execution([paper("A-0")])
        await there.drained()
        database = await there.app.database()
        await database.write(engine.fold_tallies, verb="fold")
        assert [] == await there.rows("SELECT 1 FROM tallies")

        def may(tx: Transaction) -> bool:
            return alerts.may_alert(tx, 0.0)

        assert await database.read(may)


def test_every_code_that_stops_an_execution_has_a_cure():
    assert {*CERTAIN, "rejected"} == set(CURES)
