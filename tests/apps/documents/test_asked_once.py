"""The same content in two executions at the same moment is paid for once, whoever dies meanwhile (C6)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retoma import Retoma
from retoma.apps.documents import APP, store
from retoma.apps.documents.sandbox import KEY, MODEL, Papers, build_service
from retoma.apps.documents.steps import CLASSIFY
from retoma.apps.documents.store.documents import TakenUp, Turn
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.apps.documents.aids import RULES as SHORT
from tests.apps.documents.aids import House, house, paper
from tests.apps.documents.test_story import RULES, World
from tests.apps.quotes.aids import serving
from tests.apps.runners import ring
from tests.engine.aids import eventually, running

TWICE = (paper("um", content="igual"),)


@dataclass(frozen=True, slots=True)
class Two:
    """Two runners beside each other, and the model that both ask."""

    here: World
    there: Retoma
    door: httpx2.AsyncClient
    clock: Any

    async def at_the_model(self) -> bool:
        return bool((await self.door.get("/_sandbox/open")).json())

    async def snoozed(self) -> bool:
        return bool(await self.here.rows("SELECT 1 FROM events WHERE type = 'snoozed'"))

    async def ended(self, execution: int) -> list[dict[str, Any]]:
        """Its document, when it has its label; until then time passes."""
        told = await self.here.results(execution)
        if told[0]["status"] == "CONCLUIDO":
            return told
        self.clock.jump(1)
        database = await self.here.app.database()
        await database.write(ring, verb="ring")
        return []


@asynccontextmanager
async def two_runners(url: str, folder: Path, clock: Any) -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        service = build_service()
        port = await stack.enter_async_context(serving(service))
        settings = Settings(
            database_url=url,
            openrouter_url=f"http://127.0.0.1:{port}/api/v1",
            openrouter_key=KEY,
            openrouter_model=MODEL,
        )
        out = await stack.enter_async_context(Outbound(private=frozenset({"127.0.0.1"})))
        apps = []
        for _ in range(2):
            app = await stack.enter_async_context(Retoma(url))
            app.install(replace(APP, schedules=()), Tools(app, out, settings=settings))
            apps.append(app)
        door = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False
        )
        await stack.enter_async_context(door)
        yield Two(World(apps[0], service, folder), apps[1], door, clock)


async def test_two_executions_at_once_pay_for_one(database_url, tmp_path, test_clock):
    """C6: the second waits for the answer of the first, on another runner, at no cost."""
    async with two_runners(database_url, tmp_path, test_clock) as two:
        await two.door.post("/_sandbox/faults", json={"trouble": "hold", "times": None})
        same = Papers().make(7)
        project = await two.here.project(rules=RULES)
        first = await two.here.handed_in(project, [same])
        async with running(two.here.app, slots=1):
            await eventually(two.at_the_model)
            second = await two.here.handed_in(project, [same])
            async with running(two.there, slots=1):
                await eventually(two.snoozed)
                await two.door.delete("/_sandbox/faults")
                [told] = await eventually(lambda: two.ended(first))
                [copy] = await eventually(lambda: two.ended(second))
        assert (told["rotulo"], told["id"]) == (copy["rotulo"], copy["origem"])
        assert {7: 1} == two.here.asked()
        assert not await two.here.app.costs.of_batch(second)


# — who may ask —


async def took(found: House, execution: int) -> TakenUp:
    [(document, job, epoch)] = await found.rows(
        "SELECT d.id, j.id, j.epoch FROM documents d JOIN jobs j ON j.id = d.job"
        " WHERE d.execution = :execution",
        execution=execution,
    )
    database = await found.app.database()
    [taken] = await database.write(
        lambda tx: store.documents.take_up(
            tx, [Turn(document, job, epoch)], lambda rules: rules.recipe("1", ["m"])
        ),
        verb="take_up",
    )
    assert isinstance(taken, TakenUp)
    return taken


async def two_executions(found: House) -> tuple[int, int]:
    """Each with one document of the same content, both held by a runner that lives."""
    first = await found.execution(TWICE, SHORT, name="a")
    second = await found.execution(TWICE, SHORT, name="b")
    await found.booted("alive", 60)
    for each in (first, second):
        await found.held_by("alive", each)
    return first, second


async def test_one_asks_and_may_ask_again_the_other_waits(database_url):
    async with house(database_url) as found:
        first, second = await two_executions(found)
        assert [True, False, True] == [
            (await took(found, each)).ours for each in (first, second, first)
        ]


async def test_both_at_once_are_one(database_url):
    async with house(database_url) as found:
        first, second = await two_executions(found)
        rows = await found.rows(
            "SELECT d.id, j.id, j.epoch FROM documents d JOIN jobs j ON j.id = d.job ORDER BY d.id"
        )
        database = await found.app.database()
        taken = await database.write(
            lambda tx: store.documents.take_up(
                tx, [Turn(*each) for each in rows], lambda rules: rules.recipe("1", ["m"])
            ),
            verb="take_up",
        )
        assert [False, True] == sorted(each.ours for each in taken if isinstance(each, TakenUp))
        assert [first, second] == sorted(
            each.wanted.execution for each in taken if isinstance(each, TakenUp)
        )


LATER = "epoch = epoch + 1"


@pytest.mark.parametrize(
    "over", ["state = 'waiting', runner = NULL", LATER, "state = 'dead', runner = NULL"]
)
async def test_a_holder_that_is_over_stands_in_nobodys_way(database_url, over):
    """It died and was taken back, was claimed anew, or failed: whoever comes next asks."""
    async with house(database_url) as found:
        first, second = await two_executions(found)
        assert (await took(found, first)).ours
        await found.change(f"UPDATE jobs SET {over} WHERE batch = {first}")  # noqa: S608
        assert (await took(found, second)).ours
        if over == LATER:
            assert not (await took(found, first)).ours


async def test_an_older_look_at_the_holder_takes_nothing_from_it(database_url):
    """Its claim may be newer than what a statement sees of its job."""
    async with house(database_url) as found:
        first, second = await two_executions(found)
        assert (await took(found, first)).ours
        await found.change("UPDATE document_askings SET epoch = epoch + 1")
        assert not (await took(found, second)).ours


async def test_what_was_answered_and_not_told_is_not_asked_again(database_url):
    """Killed between the answer and its end: it ends by itself with what it has, and then all know."""
    async with house(database_url) as found:
        first, second = await two_executions(found)
        assert (await took(found, first)).ours
        await found.change(
            "INSERT INTO steps (job, name, version, key, generation, epoch, state, value)"  # noqa: S608
            f" SELECT id, '{CLASSIFY}', 1, '', 1, 1, 'saved', 'null' FROM jobs"
            f" WHERE batch = {first}"
        )
        await found.change(
            f"UPDATE jobs SET state = 'waiting', runner = NULL WHERE batch = {first}"  # noqa: S608
        )
        assert not (await took(found, second)).ours
        await found.change(f"UPDATE jobs SET aside = 'batch:1' WHERE batch = {first}")  # noqa: S608
        assert (await took(found, second)).ours


async def test_what_has_an_answer_is_read_by_the_others(database_url):
    async with house(database_url) as found:
        first, second = await two_executions(found)
        assert (await took(found, first)).ours
        result = '{"label": "petição", "confidence": 1, "justification": "j", "model": "m"}'
        await found.change(
            f"UPDATE jobs SET state = 'done', runner = NULL, result = '{result}'"  # noqa: S608
            f" WHERE batch = {first}"
        )
        mine, taken = await took(found, first), await took(found, second)
        assert (None, False) == (mine.answer, taken.ours)
        assert taken.answer is not None
        assert (mine.wanted.id, "petição") == (taken.answer.origin, taken.answer.label)
