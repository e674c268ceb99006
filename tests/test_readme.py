"""The README's example, copied into an empty folder, works as shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.files import ROOT

README = (ROOT / "README.md").read_text()
PORTUGUESE = (ROOT / "README.pt-BR.md").read_text()


def block(language: str) -> str:
    """The one block of this language."""
    [text] = re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert isinstance(text, str)
    return text


def transcript(commands: list[str], folder: Path) -> str:
    """What a terminal shows: each command, then what it prints."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": programs, "PYTHONUNBUFFERED": "1", "HOME": str(folder)}
    shown = ""
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,  # for what hangs, not for a machine that is busy
        )
        assert "Traceback" not in done.stderr, done.stderr
        shown += f"$ {command}\n{done.stdout}"
    return shown


def test_the_example_of_the_readme_works_as_shown(tmp_path):
    [name] = set(re.findall(r"save this as `(\w+\.py)`", README))
    console = block("console")
    commands = re.findall(r"^\$ (.*)$", console, re.MULTILINE)
    (tmp_path / name).write_text(block("python"))

    assert commands
    assert console == transcript(commands, tmp_path)


def test_whoever_reads_portuguese_is_shown_the_same_example():
    for language in ("python", "console"):
        assert f"```{language}\n{block(language)}```" in PORTUGUESE
    commands = re.findall(r"^\./run \w+", block("sh"), re.MULTILINE)
    assert all(each in PORTUGUESE for each in commands)
