"""Programs that the demo starts: they say where they are, and leave when whoever started them is gone."""

import asyncio
import subprocess
import sys
from pathlib import Path

from retoma.cli.processes import Listening
from tests.cli.conftest import wait_for

PARENT = """
import asyncio, os, sys
from retoma.cli.processes import Listening

async def main():
    os.environ["RETOMA_SANDBOX_PROXY"] = "ana:secret"
    started = await asyncio.gather(
        Listening.start("sandbox", "ads"),
        Listening.start("sandbox", "quotes"),
        Listening.start("sandbox", "matches"),
        Listening.start("sandbox", "proxy", "red"),
    )
    print(*(each.pid for each in started), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_sites_and_a_proxy_leave_when_their_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert 4 == len(pids)
        parent.kill()

    wait_for(lambda: not any(lives(pid) for pid in pids), "they stay behind")


def lives(pid: int) -> bool:
    """One that ended and that nobody asks after does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def test_one_that_does_not_come_up_is_told_of():
    async def start() -> str:
        try:
            await Listening.start(
                "sandbox", "proxy", "red", environment={"RETOMA_SANDBOX_PROXY": ""}
            )
        except RuntimeError as error:
            return str(error)
        return ""

    assert "sandbox proxy ended with 2" == asyncio.run(start())
