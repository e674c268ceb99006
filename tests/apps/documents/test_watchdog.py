"""TRAVADO only when nothing moves and nobody can say why; resumed once for all who ask; never ended so."""

import asyncio
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from retoma.apps.documents import APP, store
from retoma.apps.documents.model import MOVES, ExecutionStatus
from retoma.apps.documents.steps import watch_over
from retoma.db import Transaction, adhoc
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ops.alerts import application_chores
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.store.alerts import Rule
from retoma.testing import FakeClock
from retoma.web import build_site
from tests.apps.documents.aids import TOLD, WHO, House, house, paper
from tests.engine.aids import eventually, running
from tests.web.aids import set_up

E = ExecutionStatus
QUIET = 301  # seconds: a little more than five minutes


async def watched(there: House) -> int:
    return await there.app.write(lambda tx: store.executions.watch_over(tx, actor="watchdog"))


async def resumed(there: House, execution: int, *, anyway: bool = False) -> Any:
    return await there.app.write(
        lambda tx: store.executions.resume(tx, execution, actor=WHO, anyway=anyway)
    )


class Log:
    """What an execution was, move by move."""

    def __init__(self, there: House, execution: int) -> None:
        self._there = there
        self._execution = execution
        self.told: list[ExecutionStatus] = []

    async def look(self) -> ExecutionStatus:
        status = (await self._there.stand(self._execution)).status
        if not self.told or self.told[-1] is not status:
            self.told.append(status)
        return status

    def assert_legal(self) -> None:
        for before, after in pairwise(self.told):
            assert after in MOVES[before], self.told


async def test_c3_what_is_stuck_is_seen_resumed_and_ends(database_url, test_clock):
    """C3 C5: EM_ANDAMENTO, TRAVADO, EM_ANDAMENTO, CONCLUIDO; the watchdog tells of it once."""
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1"), paper("A-2")])
        log = Log(there, execution)
        await log.look()
        await there.left_by_a_dead_runner(execution)
        assert "EM_ANDAMENTO" == await log.look()
        test_clock.jump(QUIET - 2)
        assert "EM_ANDAMENTO" == await log.look()
        test_clock.jump(2)
        assert "TRAVADO" == await log.look()

        await there.idle_runner()
        await watch_over(there.app.tools["documents"])
        assert 0 == await watched(there)
        assert (await there.seen(execution))["travado_em"] is not None
        database = await there.app.database()
        [alert] = (await database.read(store.executions.watch)).values()
        assert "0" in alert["text"]
        made = [await resumed(there, execution) for _ in range(3)]
        assert [True, False, False] == [each is not None for each in made]
        assert "EM_ANDAMENTO" == await log.look()
        await there.app.runners.take_back()
        await there.drained()

        assert "CONCLUIDO" == await log.look()
        log.assert_legal()
        seen = await there.seen(execution)
        assert (1, 3, 2) == (seen["tentativas_retry"], seen["max_retries"], seen["epoca"])
        assert {} == await database.read(store.executions.watch)


async def alive(there: House, execution: int) -> None:
    await there.booted("slow", 3600)
    await there.held_by("slow", execution)


async def waits(there: House, execution: int) -> None:
    await there.held_by_nobody(execution)
    await there.change("UPDATE jobs SET turn = NULL, run_at = clock_in(900)")


async def paused(there: House, execution: int) -> None:
    await there.held_by_nobody(execution)
    await (await there.app.batches.get(execution)).pause()


async def resting(there: House, execution: int) -> None:
    await there.held_by_nobody(execution)
    await there.app.pauses.pause("application", "documents")


async def aside(there: House, execution: int) -> None:
    await there.held_by_nobody(execution)
    await there.change("UPDATE jobs SET aside = 'breaker:documents.openrouter'")


async def in_line(there: House, execution: int) -> None:
    """The only runner has its hands full with another execution."""
    await there.held_by_nobody(execution)
    await there.booted("busy", 3600, slots=0)


HELD = {
    "running": alive,
    "backoff": waits,
    "pause": paused,
    "breaker:documents.openrouter": aside,
    "line": in_line,
}


@pytest.mark.parametrize("why", [*HELD, "pause of all"])
async def test_c4_what_somebody_can_explain_is_not_stuck(database_url, test_clock, why):
    """C4 H-21: slow but alive, a backoff, a pause, a gate, a line: EM_ANDAMENTO, and says why."""
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1"), paper("A-2")])
        await HELD.get(why, resting)(there, execution)
        test_clock.jump(600)

        assert "EM_ANDAMENTO" == (await there.stand(execution)).status
        database = await there.app.database()
        holds = await database.read(lambda tx: store.executions.holds_of(tx, execution))
        assert why.removesuffix(" of all") in [each for each, *_ in holds]
        assert 0 == await watched(there)


@pytest.mark.parametrize(
    ("runs", "documents", "slots"),
    [
        pytest.param(1, 4, 2, id="gate"),
        pytest.param(
            20, 2_000, 200, id="soak", marks=[pytest.mark.soak, pytest.mark.timeout(3600)]
        ),
    ],
)
async def test_c4_slow_but_alive_is_never_stuck(database_url, runs, documents, slots):
    """C4 H-21: looked at every 30 seconds of its time, while its runner beats, though nothing ends in
    five minutes."""
    chance = Random(7)
    async with house(database_url) as there:
        clock = there.app.clock
        assert isinstance(clock, FakeClock)
        for run in range(runs):
            names = [f"slow-{chance.randint(QUIET, 2 * QUIET)}.pdf" for _ in range(documents)]
            papers = [paper(f"A-{n}", name) for n, name in enumerate(names)]
            execution = await there.execution(papers, name=f"PGE {run}")
            log = Log(there, execution)
            async with running(there.app, slots=slots):
                await eventually(partial(begun, there, execution))
                looks = 1
                while await log.look() is not ExecutionStatus.CONCLUIDO:
                    clock.advance(30)
                    await eventually(partial(beaten, there))
                    looks += 1
            print(f"run {run}: {documents} documents, {looks} looks, {log.told}", flush=True)
            assert [E.EM_ANDAMENTO, E.CONCLUIDO] == log.told


async def begun(there: House, execution: int) -> bool:
    return (await there.stand(execution)).status is not E.PENDENTE


async def beaten(there: House) -> bool:
    """Its runner knows how late it is: nobody waits for a bell that real time would ring."""
    database = await there.app.database()
    await database.write(ring, verb="test")
    late = "SELECT 1 FROM runners WHERE state = 'alive' AND beat_at > clock_in(-10)"
    return bool(await there.rows(late))


def ring(tx: Transaction) -> None:
    tx.one(adhoc("SELECT 1 FROM runners"))
    tx.ring("look")


async def test_what_waits_for_a_person_says_so_and_is_not_stuck(database_url, test_clock):
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1", "key.pdf")])
        await there.drained()
        test_clock.jump(QUIET)

        assert "EM_ANDAMENTO" == (await there.stand(execution)).status
        database = await there.app.database()
        [(why, n, _)] = await database.read(lambda tx: store.executions.holds_of(tx, execution))
        assert ("parked:no_key", 1) == (why, n)


async def test_an_execution_that_nobody_begins_is_pending_not_stuck(database_url, test_clock):
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1")])
        test_clock.jump(3600)

        assert "PENDENTE" == (await there.stand(execution)).status
        assert await resumed(there, execution) is None


async def test_the_server_does_the_watching_where_no_runner_lives(database_url, test_clock):
    """What is stuck is written down and told of; what was resumed too often becomes ERRO."""
    async with house(database_url, replace(TOLD, mend=APP.mend)) as there:
        execution = await there.execution([paper("A-1")])
        await there.left_by_a_dead_runner(execution)
        await there.app.runners.take_back()
        await there.change("UPDATE executions SET resumes = most_resumes")
        test_clock.jump(QUIET)
        site = build_site(there.app, set_up(database_url), [APP])
        own: Kinds = site.state.house.own
        assert {"application.documents"} == {*application_chores(own)}
        assert "documents.document" not in {each.name for each in own}
        async with running(there.app, kinds=own, tick=0.05):
            await eventually(partial(held, there))
            there.app.clock.advance(31)  # type: ignore[attr-defined]
            await eventually(partial(told_of, there, execution))

        chores = application_chores(own)
        await chores["application.documents"](await there.app.database())  # type: ignore[arg-type]
        assert "ERRO" == (await there.stand(execution)).status


async def held(there: House) -> bool:
    sql = "SELECT 1 FROM duties WHERE name = 'application.documents' AND boot IS NOT NULL"
    return bool(await there.rows(sql))


async def told_of(there: House, execution: int) -> bool:
    """As the server's own runner looks: at once after it begins, then every 30 seconds."""
    alerts = [each for each in await there.app.alerts.list() if each.rule is Rule.APPLICATION]
    return bool(alerts) and (await there.seen(execution))["travado_em"] is not None


async def test_without_a_runner_nothing_is_resumed_and_nothing_is_spent(
    database_url, test_clock
):
    """It is told so, and how to help it; with a runner the first resume is the first."""
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1"), paper("A-2")])
        await there.left_by_a_dead_runner(execution)
        test_clock.jump(QUIET)
        before = await there.stand(execution)
        for anyway in (False, True):
            with pytest.raises(IllegalMove, match="no runner that"):
                await resumed(there, execution, anyway=anyway)
        assert before == await there.stand(execution)
        await there.booted("leaving", -1)
        with pytest.raises(IllegalMove, match="no runner"):
            await resumed(there, execution)

        await there.idle_runner()
        after = await resumed(there, execution)
        assert ("EM_ANDAMENTO", 1) == (after.status, after.resumes)


async def test_after_three_resumes_only_an_admin_goes_on(database_url, test_clock):
    """TRAVADO → ERRO; nothing of it begins by itself; a fourth resume is refused with the reason."""
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1"), paper("A-2")])
        log = Log(there, execution)
        await there.left_by_a_dead_runner(execution)
        await there.idle_runner()
        for _ in range(3):
            test_clock.jump(QUIET)
            await log.look()
            assert 1 == await watched(there)
            assert await resumed(there, execution) is not None
            await log.look()
        test_clock.jump(QUIET)
        assert "TRAVADO" == await log.look()
        with pytest.raises(IllegalMove, match="3 of 3"):
            await resumed(there, execution)
        assert [1, 1, 0] == [await watched(there) for _ in range(3)]
        assert "ERRO" == await log.look()
        with pytest.raises(IllegalMove):
            await resumed(there, execution)
        await there.app.runners.take_back()
        await there.drained()
        assert "ERRO" == await log.look()

        assert await resumed(there, execution, anyway=True) is not None
        assert "EM_ANDAMENTO" == await log.look()
        await there.drained()
        assert "CONCLUIDO" == await log.look()
        log.assert_legal()


async def test_c5_fifty_who_resume_at_once_are_one_epoch(database_url, test_clock):
    # Both open before the jump: a database that opens later sets the clock of its own test kit.
    async with house(database_url) as there, house(database_url) as other:
        execution = await there.execution([paper(f"A-{n}") for n in range(5)])
        await there.left_by_a_dead_runner(execution, 2)
        await there.idle_runner()
        test_clock.jump(QUIET)
        both = [there, other] * 25
        made = await asyncio.gather(*(resumed(each, execution) for each in both))

        assert 1 == sum(each is not None for each in made)
        stand = await there.stand(execution)
        assert (2, 1, "EM_ANDAMENTO") == (stand.epoch, stand.resumes, stand.status)


async def test_fifty_who_reprocess_at_once_are_one_generation(database_url):
    """H-22: only what failed is tried again; what was done stays."""
    async with house(database_url) as there:
        papers = [paper(f"A-{n}", "corrupt.pdf" if n % 2 else None) for n in range(6)]
        execution = await there.execution(papers)
        with pytest.raises(IllegalMove, match="PENDENTE"):
            await reprocessed(there, execution)
        await there.drained()
        async with house(database_url) as other:
            both = [there, other] * 25
            made = await asyncio.gather(*(reprocessed(each, execution) for each in both))

        assert {(2, 3, "EM_ANDAMENTO")} == {
            (each.generation, each.reprocessed, each.status) for each, _ in made
        }
        assert 1 == sum(first for _, first in made)
        await there.drained()
        assert "CONCLUIDO" == (await there.stand(execution)).status
        assert ["CONCLUIDO"] * 6 == [each["status"] for each in await there.results(execution)]
        assert 2 == (await reprocessed(there, execution))[0].generation
        [(most,)] = await there.rows("SELECT max(generation) FROM jobs")
        assert 2 == most


async def reprocessed(there: House, execution: int) -> Any:
    return await there.app.write(
        lambda tx: store.executions.reprocess(tx, execution, actor=WHO)
    )
