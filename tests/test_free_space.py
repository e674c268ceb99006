"""A disk that is nearly full: not ready before the first write fails."""

from typing import Any

import pytest

from retoma import Retoma
from retoma.db import Database, Full
from retoma.library import LEAST_FREE


class Nearly:
    """A database on a disk of which only so much is free."""

    def __init__(self, database: Database, free: int) -> None:
        self._database = database
        self._free = free

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def free_space(self) -> int:
        return self._free


async def test_a_disk_with_less_than_a_log_may_grow_is_not_ready(database_url):
    async with Retoma(database_url) as app:
        database: Any = await app.database()
        app.connection.use(Nearly(database, LEAST_FREE))
        await app.ready()

        app.connection.use(Nearly(database, LEAST_FREE - 1))
        with pytest.raises(Full, match="no room left"):
            await app.ready()
