"""Imports point one way: the contracts in pyproject.toml are kept."""

import subprocess
import sys
from pathlib import Path

from tests.house.files import ROOT

PLANTED = """
[tool.importlinter]
root_package = "planted"
[[tool.importlinter.contracts]]
name = "top over bottom"
type = "layers"
layers = ["planted.top", "planted.bottom"]
"""


def lint_imports(folder: Path) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_import_contracts_are_kept():
    done = lint_imports(ROOT)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_broken_contract_is_seen(tmp_path):
    package = tmp_path / "planted"
    package.mkdir()
    for name, text in {"__init__": "", "top": "", "bottom": "import planted.top\n"}.items():
        (package / f"{name}.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text(PLANTED)

    assert 0 != lint_imports(tmp_path).returncode
