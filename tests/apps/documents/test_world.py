"""Real files through real processes: each ends once, whoever is killed, and what was paid for stays paid.

The log of the service is the witness (C6). A call is repeated only where its runner was killed between its
intent and its answer's commit, or where the answer was of no use.
"""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from retoma.apps.documents import APP
from retoma.apps.documents.model import MOVES, ExecutionStatus
from retoma.apps.documents.sandbox import Odd
from retoma.apps.documents.steps import watch_over
from retoma.web import broadcast
from tests.apps.documents.around import Around, House, around, house
from tests.apps.documents.test_stream import ADMIN, heard_until_over
from tests.apps.people import people
from tests.programs.processes import PATIENCE
from tests.web.aids import served
from tests.web.sse import Ear

QUIET = 301  # seconds: a little more than five minutes
READ_BADLY = (
    *(Odd.CORRUPT, Odd.ENCRYPTED, Odd.SCANNED, Odd.EMPTY, Odd.WRONG_EXTENSION),
    *(Odd.UNSUPPORTED, Odd.CRASH, Odd.ENDLESS),
)
ANSWERED_BADLY = (
    *(Odd.PROSE, Odd.UNKNOWN_LABEL, Odd.TRUNCATED, Odd.LONG_ANSWER, Odd.REFUSED, Odd.FAILED),
)
FEW = (Odd.CRASH, Odd.CORRUPT, Odd.SCANNED, Odd.PROSE, Odd.TRUNCATED, Odd.INJECTION)
MANY = (*READ_BADLY, *ANSWERED_BADLY * 4, *(Odd.INJECTION,) * 4, *(Odd.HUGE,) * 3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    with around(tmp_path_factory.mktemp("documents")) as made:
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "LOOK", 0.02)


async def test_files_all_end_and_none_is_paid_twice_when_a_runner_is_killed(
    database_url, tmp_path, world, test_clock
):
    """Show 2 in small, C1 C2 C6 C7: 40 files, two copies, six odd ones, two kills."""
    async with house(database_url, world, tmp_path, test_clock) as found:
        await endure(found, files=40, odd=FEW, kills=2, slots=6)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_two_thousand_files_survive_five_kills(database_url, tmp_path, world):
    """Show 2, C1 C2 C6 C7: by the readers and the limits of every day, in the time of every day."""
    async with house(database_url, world, tmp_path) as found:
        found.quick = False
        await endure(found, files=2_000, odd=MANY, kills=5, slots=24)


async def endure(
    found: House, *, files: int, odd: tuple[Odd, ...], kills: int, slots: int
) -> None:
    """Each kill meets a call on its way, the last one before all has ended."""
    copies = ("copia-1", "copia-2")
    patience = 30 * PATIENCE if files > 100 else 2 * PATIENCE
    execution = await found.hand_in(found.world.some(files, odd), copies)
    with served(found.app.url) as server:
        url = f"{server.origin}/api/stream?batch={execution}"
        ear = await Ear.open(url, ADMIN)
        hello = await ear.next()
        ear.close()  # who leaves changes nothing (H-26)
        assert hello is not None
        met = []
        for kill in range(kills):
            found.world.hold(after=(files - len(odd)) // (kills + 1))
            found.start(f"runner {kill}", slots=slots)
            await found.flying(patience=patience)
            met.append(await found.kill(f"runner {kill}"))
            await found.peace()
        found.start("last", slots=slots)
        await found.until_share(1, patience=patience)

        replay = await Ear.open(url, ADMIN | {"last-event-id": hello.id or ""})
        told = await heard_until_over(replay, [*found.papers])
        replay.close()
    async with people(found.app, APP, found.app.url) as those:
        answer = await those["viewer"].get(
            f"/classificador/execucoes/{execution}/status-detalhado"
        )
        status = answer.json()

    print(f"{status['por_status']}, calls on their way at each kill: {met}, {status['erros']}")
    assert all(met), "a kill met no call on its way"
    assert found.looks
    assert ("CONCLUIDO", 100.0, files + len(copies)) == (
        *(status["status"], status["progresso"], status["total"]),
    )
    assert {name: n for name, n in status["por_status"].items() if n} == told.by_status
    assert files + len(copies) == sum(status["por_status"].values())
    assert [] == await found.problems()


async def test_a_stuck_execution_is_seen_resumed_and_ends_though_a_file_is_poisoned(
    database_url, tmp_path, world, test_clock
):
    """Show 1, C2 C3 C6: its only runner is killed and nobody comes: a person is told so, and nothing is
    spent. The next runner goes on; the file that costs a child each time costs nobody else a try."""
    async with (
        house(database_url, world, tmp_path, test_clock) as found,
        people(found.app, APP, database_url) as those,
    ):
        poisoned = world.some(1, [Odd.CRASH])
        execution = await found.hand_in([*world.some(6), *poisoned])
        there = f"/classificador/execucoes/{execution}"
        seen = [await found.status()]

        async def look() -> dict[str, Any]:
            told = dict((await those["viewer"].get(f"{there}/status-detalhado")).json())
            seen.append(told["status"])
            return told

        world.hold()
        found.start("only", slots=3)
        await found.flying(3)
        await look()
        assert 3 == await found.kill("only")
        world.peace()
        assert "EM_ANDAMENTO" == (await look())["status"]
        test_clock.jump(QUIET)
        stuck = await look()
        assert ("TRAVADO", True, "/classificador/") == tuple(
            stuck[name] for name in ("status", "pode_retomar", "rota_origem")
        )
        await watch_over(found.app.tools["documents"])
        asked = [those["operator"].post(f"{there}/retomar") for _ in range(5)]
        answers = await asyncio.gather(*asked)
        assert {409} == {each.status_code for each in answers}
        assert all("no runner" in each.text for each in answers)
        stuck = await look()
        assert ("TRAVADO", 0) == (stuck["status"], stuck["tentativas_retry"])
        world.hold()
        found.start("next")
        await found.flying()
        assert "EM_ANDAMENTO" == (await look())["status"]
        world.peace()
        await found.until_share(1)
        ended = await look()

        steps = [a for a, b in pairwise([*seen, ""]) if a != b]
        assert [] == [
            (a, b)
            for a, b in pairwise(steps)
            if ExecutionStatus(b) not in MOVES[ExecutionStatus(a)]
        ]
        assert ["PENDENTE", "EM_ANDAMENTO", "TRAVADO", "EM_ANDAMENTO", "CONCLUIDO"] == steps
        assert ({"child_died": 1}, 0) == (ended["erros"], ended["tentativas_retry"])
        tries = {each["codigo"]: each["tentativas"] for each in await found.results()}
        assert 3 == tries.pop(poisoned[0].codigo)
        assert {1} == set(tries.values())  # a try that was lost with its runner is none
        assert [] == await found.problems()
