"""What a killed process leaves on the disk is removed by the next, and nothing of the living."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retoma.engine.isolation import scratch as room
from retoma.engine.isolation.scratch import PREFIX, scratch, sweep

WORK = """
import sys
from retoma.engine.isolation.scratch import scratch
file = scratch() / "paper.pdf"
file.write_bytes(b"x" * 1000)
print(file, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of this machine is looked at, and none of this process is kept."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(room, "_ours", {})


@contextmanager
def at_work(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process with a file in its folder."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_the_next_removes_what_a_killed_process_left_and_nothing_of_the_living(tmp_path):
    other = tmp_path / "retoma-of-another-sort"
    other.mkdir()
    with at_work(tmp_path) as (victim, left), at_work(tmp_path) as (_, kept):
        assert 0 == sweep()
        victim.kill()
        victim.wait()
        assert left.exists(), "nobody was there to tidy up"
        mine = scratch()
        assert [False, True, True, True] == [
            each.exists() for each in (left.parent, kept, mine, other)
        ]
        assert 0 == sweep(), "our own is not swept either"
        assert mine == scratch()


def test_who_leaves_by_itself_takes_its_folder_along(tmp_path):
    with at_work(tmp_path) as (process, file):
        assert process.stdin is not None
        process.stdin.close()
        assert 0 == process.wait()
        assert not file.parent.exists()


def test_a_link_in_its_place_is_left_alone(tmp_path):
    valued = tmp_path / "valued"
    valued.mkdir()
    (tmp_path / f"{PREFIX}x").symlink_to(valued)
    (tmp_path / f"{PREFIX}y").write_text("a file")
    assert 0 == sweep()
    assert valued.exists()
