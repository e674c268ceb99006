"""The document's table is read by whoever opens the file: no function of ours is needed."""

import sqlite3
from pathlib import Path

from tests.apps.embeddings.aids import Counting, house


async def test_plain_sqlite_reads_every_column_of_queue_jobs_by_its_index(sqlite_url):
    """Also by status, which an index over an expression answers."""
    provider = Counting(refuses={"veneno": "refused"})
    async with house(sqlite_url, provider) as there:
        await there.add(("a.txt", "uma casa"), ("b.txt", "veneno"))
        await there.drained()
        await there.add(("c.txt", "um mar"))
        asked = """SELECT id, status, attempts, "createdAt", "errorCode" FROM queue_jobs"""
        expected = [tuple(row) for row in await there.rows(f"{asked} ORDER BY id")]

    with sqlite3.connect(Path(sqlite_url.removeprefix("sqlite:///"))) as plain:
        assert expected == plain.execute(f"{asked} ORDER BY id").fetchall()
        assert 3 == len(plain.execute("SELECT * FROM queue_jobs").fetchall())
        by_status = plain.execute("SELECT id FROM queue_jobs WHERE status = 'pending'")
        assert 1 == len(by_status.fetchall())
    plain.close()
    assert ["completed", "failed", "pending"] == [status for _, status, *_ in expected]
