"""What was answered for survives a power cut, with the settings we ship (E24, F19)."""

import json
import subprocess
import sys

import apsw

from retoma import Retoma, State


def told_before_the_cut(url: str) -> dict[str, list[int]]:
    program = [sys.executable, "-m", "tests.db.power", url]
    said = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    told: dict[str, list[int]] = json.loads(said.stdout)
    return told


async def test_e24_what_was_answered_for_survives_a_power_cut(tmp_path):
    url = f"sqlite:///{tmp_path / 'work.db'}"

    told = told_before_the_cut(url)

    assert "ok" == apsw.Connection(str(tmp_path / "work.db")).pragma("integrity_check")
    async with Retoma(url) as app:
        assert 10 == len(told["done"])
        for job in told["done"]:
            found = await app.get(job)
            [step] = await app.steps(job)
            assert (State.DONE, found.result) == (found.state, step.value)
        for job in told["waiting"]:
            assert State.WAITING is (await app.get(job)).state


def test_a_disk_that_forgets_does_forget_what_is_not_synced(tmp_path):
    """Without the sync of every commit the same cut loses it: the test above can fail."""
    path = tmp_path / "work.db"

    told = told_before_the_cut(f"sqlite:///{path}?synchronous=normal")

    with apsw.Connection(str(path)) as left:
        tables = left.execute("SELECT count(*) FROM sqlite_master WHERE name = 'jobs'").get
        kept = left.execute("SELECT count(*) FROM jobs").get if tables else 0
    assert kept < len(told["submitted"]) + len(told["waiting"])
