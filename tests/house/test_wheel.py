"""The wheel carries everything the code reads at run time, and what ./run fetched for its pages."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.files import ROOT, SOURCE

OF_THE_DEMO = ("ads", "documents", "embeddings", "matches", "quotes")


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
    """The small brother of the one below: everything it imports is in the wheel."""
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    asked = "import retoma, retoma.cli.demo, retoma.cli.up; print(retoma.__file__)"

    done = _run([sys.executable, "-c", asked], tmp_path, {"PYTHONPATH": str(unpacked)})

    assert 0 == done.returncode, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(unpacked)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", ["", "[anthropic]"])
def test_the_wheel_in_an_empty_environment_plays_the_demo(wheel, tmp_path, extra):
    _run([sys.executable, "-m", "venv", "venv"], tmp_path).check_returncode()
    pip = [tmp_path / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, f"{wheel}{extra}"], tmp_path).check_returncode()

    done = _run([tmp_path / "venv/bin/retoma", "demo", "--fast", "--json"], tmp_path)

    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert {*OF_THE_DEMO[: None if extra else -1]} == {*told["applications"]}


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
