"""A runner that somebody drains from afar leaves as on SIGTERM (E29): heard by its pulse, exit code 0."""

import pytest

from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.engine.aids import rows

GATE = {"gate": "never"}
ASKED = "SELECT actor, verb, subject FROM audit WHERE verb LIKE 'runner.drain%'"


async def test_e29_a_drained_runner_finishes_or_gives_back_and_its_process_ends(new_world):
    async with new_world() as world:
        runner = world.start_runner("drained", slots=8, grace=1.0)
        long = await world.submit_all("hold", [GATE] * 4)
        await world.wait_held(long)
        [boot] = [seen.boot for seen in await world.boots_of(runner)]

        asked = await world.app.runners.drain(boot, actor="Olga")
        again = await world.app.runners.drain(boot, actor="Rui")
        await world.eventually(lambda: ended(runner), "it has left")

        assert 0 == runner.popen.returncode
        assert (boot, "drained", "alive") == (asked.boot, asked.name, asked.state)
        assert again.state in ("alive", "leaving")
        found = await world.verdict(finished=False)
        assert {(State.WAITING, 0)} == {
            (job.state, job.failures) for job in found.jobs if job.id in long
        }
        assert set(long) == {e.job for e in found.events if e.type is EventType.RELEASED}
        database = await world.app.database()
        assert [("Olga", "runner.drain_requested", f"drained {boot}")] == await rows(
            database, ASKED
        )
        assert ["gone"] == [seen.state for seen in await world.boots_of(runner)]
        with pytest.raises(IllegalMove, match="gone already"):
            await world.app.runners.drain(boot)
        with pytest.raises(NotFound, match="no runner nobody"):
            await world.app.runners.drain("nobody")


async def ended(runner) -> bool:
    return runner.popen.poll() is not None
