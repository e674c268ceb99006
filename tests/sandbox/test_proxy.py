"""`retoma sandbox proxy` leaves nothing behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs.processes import eventually


def children(pid: int) -> list[int]:
    """Those that are still there, as Linux tells."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parts = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just gone
            if int(parts[1]) == pid and parts[0] != "Z":
                found.append(int(each.name))
    return found


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_proxy_that_is_killed_leaves_no_child(by):
    words = [sys.executable, "-m", "retoma", "sandbox", "proxy", "red", "--port", "0"]
    told = {**os.environ, "RETOMA_SANDBOX_PROXY": "user:secret"}
    with subprocess.Popen(words, env=told, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        born = children(child.pid)

        child.send_signal(by)
        child.wait()

        assert born
        eventually(lambda: not any(map(lives, born)))
