"""A process that writes as often as it can for a while, and says how often that was.

python turns.py URL SECONDS, then one line on its input to begin
"""

import asyncio
import sys
import time

from retoma import db
from retoma.db import adhoc

ADD = adhoc("INSERT INTO turns DEFAULT VALUES")


async def write_for(url: str, seconds: float) -> int:
    database = db.open(url)
    await database.read(lambda tx: tx.one(adhoc("SELECT 1")))
    print("ready", flush=True)
    sys.stdin.readline()  # nothing else runs here yet
    until = time.monotonic() + seconds
    written = 0
    while time.monotonic() < until:
        written += await database.write(lambda tx: tx.run(ADD), verb="add")
    database.close()
    return written


if __name__ == "__main__":
    print(asyncio.run(write_for(sys.argv[1], float(sys.argv[2]))))
