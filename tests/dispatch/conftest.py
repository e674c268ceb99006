"""A fleet for each test: a world, a broker, a queue of its own."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.chaos.conftest import new_world, seed
from tests.chaos.world import World
from tests.dispatch import project
from tests.dispatch.fleet import SOON, Fleet

__all__ = ["new_world", "seed"]  # the chaos tests' own, for the tests of this folder too

NewFleet = Callable[..., AbstractAsyncContextManager[Fleet]]


@pytest.fixture
def new_fleet(new_world: Callable[[], World], redis_url: str) -> NewFleet:
    """`async with new_fleet() as fleet:` on each database."""

    @asynccontextmanager
    async def fleet(broker: str | None = None, **told: Any) -> AsyncIterator[Fleet]:
        world = new_world()
        world.app = project.build(world.url, world.folder)
        queue = f"retoma-{secrets.token_hex(4)}"
        async with world:
            made = Fleet(world, broker or redis_url, queue, {**SOON, **told})
            try:
                yield made
            finally:
                made.close()

    return fleet
