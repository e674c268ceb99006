"""The wheel carries everything the code reads at run time, and what ./run fetched for its pages."""

import subprocess
import sys
import zipfile

from tests.house.files import ROOT, SOURCE


def test_the_wheel_carries_the_sql_and_the_types(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )

    (wheel,) = tmp_path.glob("retoma-*.whl")
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
