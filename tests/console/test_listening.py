"""Programs that the demo starts: they say where they are, and leave when whoever started them is gone."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from retoma.console.processes import Listening
from tests.cli.conftest import wait_for

PARENT = """
import asyncio, os, sys
from retoma.console.processes import Listening

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


COUNTED = """
import atexit, gc, runpy, sys
atexit.register(lambda: print(gc.get_freeze_count(), flush=True))
sys.argv = ["retoma", *sys.argv[1:], "--port", "0"]
runpy.run_module("retoma", run_name="__main__")
"""


@pytest.mark.parametrize("which", ["serve", "writer-service"])
def test_what_a_server_loaded_is_not_looked_through_for_garbage(tmp_path, which):
    """A look through all of it held the loop for 130 ms."""
    given = {"RETOMA_DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "RETOMA_API_KEY": "k" * 40}
    with subprocess.Popen(
        [sys.executable, "-c", COUNTED, which],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, **given},
        text=True,
    ) as server:
        assert server.stdout is not None
        assert "listens on" in server.stdout.readline()
        server.terminate()
        frozen = int(server.stdout.read().splitlines()[-1])

    assert 100_000 < frozen


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
