"""./run is plain sh, says what it can do, and works from any folder."""

import os
import shutil
import subprocess

import pytest

from tests.house.files import ROOT

SCRIPTS = ("run", "requirements/compile")
VERBS = ("demo", "up", "test", "check", "bench", "prove")


def run(*args: str, cwd: str = "/") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [ROOT / "run", *args], cwd=cwd, capture_output=True, text=True, check=False
    )


def syntax_of(path: str, shell: str = "sh") -> int:
    return subprocess.run([shell, "-n", path], capture_output=True, check=False).returncode


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_executable_and_plain_sh(script):
    path = ROOT / script

    assert path.read_text().startswith("#!/bin/sh\n")
    assert os.access(path, os.X_OK)
    assert 0 == syntax_of(str(path))


def test_what_ci_runs_is_the_tests_and_nothing_else():
    path = ROOT / ".ci" / "run"

    assert os.access(path, os.X_OK)
    assert 0 == syntax_of(str(path), shutil.which("bash") or "sh")
    assert path.read_text().rstrip().endswith("exec ./run test")


def test_a_syntax_error_is_seen(tmp_path):
    broken = tmp_path / "run"
    broken.write_text("if true; then\n")

    assert 0 != syntax_of(str(broken))


def test_help_names_every_verb_from_any_folder():
    done = run("help")

    assert 0 == done.returncode
    assert all(f"\n  {verb} " in done.stdout for verb in VERBS)


@pytest.mark.parametrize("args", [(), ("dance",)])
def test_an_unknown_verb_is_refused_with_the_list(args):
    done = run(*args)

    assert 2 == done.returncode
    assert "usage: ./run" in done.stderr


def test_an_environment_of_the_tests_serves_the_demo_too():
    demo, tests = (pinned(name) for name in ("demo", "dev"))

    assert demo <= tests


def pinned(lock: str) -> set[str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return {line for line in text.splitlines() if "==" in line}
