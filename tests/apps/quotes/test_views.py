"""The document's table is read by whoever opens the file: no function of ours is needed."""

import sqlite3
from pathlib import Path

from tests.apps.quotes.aids import world
from tests.apps.quotes.test_story import number


async def test_plain_sqlite_reads_every_column_of_quote_requests(sqlite_url, tmp_path):
    """A quote that is done by each way, one that waits for a key, and one that nobody has begun."""
    async with world(sqlite_url, tmp_path) as there:
        for vehicle in (True, False):
            await there.quote(number(there, vehicle=vehicle))
        await there.drained()
        there.app.tools["quotes"].settings = there.settings.model_copy(
            update={"fipe_url": f"{there.settings.fipe_url}/nowhere"}
        )
        await there.quote(number(there, vehicle=True))
        await there.drained()
        await there.quote(1)
        asked = "SELECT id, status, processing_checkpoint, started_at, resume_data, result FROM quote_requests"
        expected = [tuple(row) for row in await there.rows(f"{asked} ORDER BY id")]

    with sqlite3.connect(Path(sqlite_url.removeprefix("sqlite:///"))) as plain:
        assert expected == plain.execute(f"{asked} ORDER BY id").fetchall()
        rows = plain.execute("SELECT * FROM quote_requests").fetchall()
    plain.close()
    assert ["DONE", "DONE", "PROCESSING", "PENDING"] == [status for _, status, *_ in expected]
    assert 4 == len(rows)
