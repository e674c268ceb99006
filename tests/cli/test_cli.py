"""The face as a whole: every verb is documented, --help is quick, errors are one line."""

import os
import resource
import signal
import subprocess
import sys
from typing import Any

import pytest

from retoma import manifest
from retoma.cli import build, program
from retoma.console.exits import Exit, Stop, code_of, guarded
from retoma.db import Away, Busy, Full, ReplyLost, Unfit
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from tests.cli.conftest import command
from tests.house.files import ROOT
from tests.house.tables import rows_of

PAGE = ROOT / "docs" / "reference" / "cli.md"
QUICK = 0.4  # seconds: DESIGN's bar for --help


def verbs(command: Any, typed: str) -> list[str]:
    """Return every verb below a command, as a person types it."""
    below = getattr(command, "commands", {})
    alone = [typed] if not below or command.invoke_without_command else []
    return [*alone, *(verb for name in below for verb in verbs(below[name], f"{typed} {name}"))]


VERBS = [
    verb for name, each in build().commands.items() for verb in verbs(each, f"retoma {name}")
]


def test_every_verb_is_on_the_page_and_none_that_is_not():
    assert sorted(f"`{verb}`" for verb in VERBS) == sorted(
        row[0] for row in rows_of(PAGE, "verb")
    )


def test_every_exit_code_is_on_the_page():
    assert [str(int(code)) for code in Exit] == [row[0] for row in rows_of(PAGE, "exit code")]


@pytest.mark.parametrize("words", [verb.split()[1:] for verb in VERBS])
def test_every_verb_explains_itself(verb, words):
    said = verb(*words, "--help")

    assert 0 == said.code
    assert f"Usage: retoma {' '.join(words)}" in said.out


def test_help_imports_typer_and_nothing_of_ours_that_is_slow():
    code = "import sys, retoma.cli; print([m for m in sys.modules if m.startswith(%r)])"
    slow = ("retoma.engine", "retoma.db", "rich", "structlog", "pydantic", "asyncio")

    done = subprocess.run(
        [sys.executable, "-c", code % (slow,)], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()


@pytest.mark.parametrize("language", ["en", "pt_BR"])
def test_help_is_quick(language):
    """By the processor's time, the best of five: the machine may be busy, the program may not."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "RETOMA_LANGUAGE": language}
        subprocess.run(command("--help"), check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert QUICK > min(once() for _ in range(5))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("x"), 2),
        (NotFound("x"), 1),
        (IllegalMove("x"), 1),
        (Unfit("x"), 1),
        (Away("x"), 69),
        (ReplyLost("x"), 69),
        (Busy("x"), 75),
        (Full("x"), 75),
        (Stop(Exit.TEMPORARY, "x"), 75),
        (ValueError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert code == code_of(error)


def raising(error):
    def command():
        raise error

    return command


def test_an_error_is_one_line_and_its_stack_only_on_demand(capsys, monkeypatch):
    monkeypatch.delenv("RETOMA_DEBUG", raising=False)
    with pytest.raises(SystemExit):
        guarded(raising(ValueError("two\nlines")))
    brief = capsys.readouterr().err

    monkeypatch.setenv("RETOMA_DEBUG", "1")
    with pytest.raises(SystemExit):
        guarded(raising(ValueError("two\nlines")))
    long = capsys.readouterr().err

    assert "retoma: ValueError: two lines (RETOMA_DEBUG=1 shows where)\n" == brief
    assert "Traceback" in long


def test_ctrl_c_is_130(capsys):
    with pytest.raises(SystemExit) as left:
        guarded(raising(KeyboardInterrupt()))

    assert 130 == left.value.code


def test_a_reader_that_has_enough_ends_a_list_without_a_word(worked):
    """`retoma jobs list | head -1`"""
    listing = subprocess.Popen(
        command("jobs", "list"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert listing.stdout is not None
    assert listing.stderr is not None

    listing.stdout.close()
    with listing.stderr as said:
        err = said.read()

    assert -signal.SIGPIPE == listing.wait()
    assert "" == err


def test_no_color_means_none(worked):
    done = subprocess.run(
        command("jobs", "list"),
        capture_output=True,
        text=True,
        check=True,
        env={"RETOMA_DATABASE_URL": worked, "NO_COLOR": "1", "TERM": "xterm-256color"},
    )

    assert "\x1b" not in done.stdout


def test_the_version_is_said(verb):
    assert verb("--version").out.startswith("retoma 0.")


def test_an_application_that_cannot_be_loaded_takes_no_other_verb_along(monkeypatch, capsys):
    monkeypatch.setattr(manifest, "installed", lambda: {"broken": "no_such_package:APP"})

    assert {"jobs", "quotes"} <= build().commands.keys()
    assert "the verbs of broken are left out: No module named" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        program(["broken"])
