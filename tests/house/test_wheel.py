"""The wheel carries everything the code reads at run time, and what its pages load."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.files import ROOT, SOURCE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("retoma-*.whl")
    return built


def test_the_wheel_carries_the_sql_and_the_types(wheel):
    packed = set(zipfile.ZipFile(wheel).namelist())

    read = [
        path
        for suffix in ("sql", "py", "po", "html", "css", "js", "svg")
        for path in SOURCE.rglob(f"*.{suffix}")
    ]
    needed = [*read, SOURCE / "py.typed"]
    assert any("vendor/htmx" in path.as_posix() for path in needed), "./run check fetches it"
    assert {path.relative_to(SOURCE.parent).as_posix() for path in needed} <= packed
    assert not [name for name in packed if name.startswith("tests")]


def test_the_demo_of_the_wheel_can_be_built_without_the_repository(wheel, tmp_path):
    """Everything that it imports is in the wheel; tests/test_build.py plays it."""
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    asked = "import retoma, retoma.cli.demo, retoma.cli.up; print(retoma.__file__)"

    done = _run([sys.executable, "-c", asked], tmp_path, {"PYTHONPATH": str(unpacked)})

    assert 0 == done.returncode, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(unpacked)


def _run(
    words: "list[str | Path]", folder: Path, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        words,
        cwd=folder,
        env={**bare, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
