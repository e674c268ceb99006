"""A world for each test of chaos, with a seed that is told when it fails."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.world import World
from tests.clock import TestClock

HERE = Path(__file__).parent
SEED = "RETOMA_SEED"
LONGEST = 600  # seconds of one test; what gets no further fails by its own patience long before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONGEST))


@pytest.fixture
def seed() -> int:
    """Another one each time; `RETOMA_SEED` repeats one."""
    return int(os.environ.get(SEED) or secrets.randbelow(2**31))


@pytest.fixture
def new_world(
    database_url: str, test_clock: TestClock, tmp_path: Path, seed: int
) -> Callable[[], World]:
    """`async with new_world() as world:` on each database."""
    folder = tmp_path / "world"
    folder.mkdir()
    return lambda: World(database_url, folder, test_clock, seed)
