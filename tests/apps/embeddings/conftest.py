"""The tables of the application are in the database before its tests begin."""

import pytest

from retoma.db.migrations import ENGINE, Room
from tests.databases import Rooms


@pytest.fixture
def rooms() -> Rooms:
    return (ENGINE, Room("embeddings", "retoma.apps.embeddings.migrations"))
