"""A process that writes many times, and never waits for SQLite's own lock: it fails where it would have to.

python turns.py URL TIMES, then one line on its input to begin
"""

import asyncio
import os
import sys

from retoma import db
from retoma.db import adhoc, sqlite

ROWS = 2_000  # in one write: it lasts long enough for the others to come meanwhile
ADD = adhoc(
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)"
    " INSERT INTO turns (writer) SELECT :writer FROM n"
)


async def write_often(url: str, times: int) -> None:
    sqlite.BUSY_MS = 0
    database = db.open(url)
    await database.read(lambda tx: tx.one(adhoc("SELECT 1")))
    print("ready", flush=True)
    sys.stdin.readline()  # nothing else runs here yet
    for _ in range(times):
        await database.write(
            lambda tx: tx.run(ADD, rows=ROWS, writer=os.getpid()), verb="add", patience=0
        )
    database.close()


if __name__ == "__main__":
    asyncio.run(write_often(sys.argv[1], int(sys.argv[2])))
