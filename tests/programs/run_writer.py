"""A process with all that the writer needs in memory, which forks one for each life it is told of.

`python -m tests.programs.run_writer FOLDER`: a line of JSON on standard input is a life: the job to do, and
where to die; its exit status is the answer.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from retoma.db.crashpoint import CrashPoints, crashpoint
from retoma.programs.writer.model import Order
from retoma.programs.writer.story import KIND, writer_kind
from tests.programs.writers import AT_ONCE, GROUP, desk_at

DATABASES = ("retoma.db.sqlite", "retoma.db.postgres")


async def live(folder: Path, told: dict[str, Any]) -> None:
    desk = desk_at(folder)
    desk.retoma.kinds.add(writer_kind(desk, retry=AT_ONCE, group=GROUP))
    async with desk.retoma:
        try:
            await desk.ready()
            order = Order(profile="ads_v1", url=told["url"])
            await desk.retoma.submit(KIND, order, key=told["job"])
            await desk.retoma.run(until_idle=True, tick=0.1)
        finally:
            await desk.close()


def born(folder: Path, told: dict[str, Any]) -> int:
    """What became of one life."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        armed = CrashPoints(told["armed"])
        crashpoint._armed, crashpoint.live = armed._armed, armed.live
        asyncio.run(live(folder, told))
    except BaseException as error:  # noqa: BLE001 — a child must not go on as its parent
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    for each in DATABASES:
        __import__(each)
    for line in sys.stdin:
        print(born(Path(sys.argv[1]), json.loads(line)), flush=True)
