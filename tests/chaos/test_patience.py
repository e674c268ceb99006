"""The patience of these tests: a slow machine has as long as it needs, and what hangs is found."""

import pytest

from tests.chaos import world as worlds

SHORT = 0.1  # seconds


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(worlds, "PATIENCE", SHORT)


async def never() -> bool:
    return False


async def test_what_hangs_fails_by_its_name(new_world):
    async with new_world() as world:
        with pytest.raises(AssertionError, match=r"nothing has moved .* it is done"):
            await world.eventually(never, "it is done")


async def test_what_moves_is_waited_for(new_world):
    async with new_world() as world:

        async def submitted_often() -> bool:
            await world.submit("chain", {})
            return len(await world.states()) == 20

        await world.eventually(submitted_often, "twenty jobs, one at each look")
