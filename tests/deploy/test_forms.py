"""What is deployed is well formed: every command is one of ours, every variable is a setting."""

import configparser
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from retoma.cli import build
from tests.house.files import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()
PROGRAM = "/usr/local/bin/retoma"
WAIT = 28  # seconds: RETOMA_GRACE and RETOMA_LET_GO


def compose() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return told


def unit(path: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text())
    return found


def commands() -> Iterator[list[str]]:
    for name, service in compose()["services"].items():
        if name != "postgres":
            yield service["command"]
    for path in UNITS:
        for key, value in unit(path)["Service"].items():
            if key.startswith("Exec"):
                program, *words = shlex.split(value)
                assert PROGRAM == program
                yield words


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_names_verbs_and_options_that_exist(words):
    command: Any = build()
    context = command.make_context("retoma", [], resilient_parsing=True)
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(
            name, list(words), parent=context, resilient_parsing=hasattr(command, "commands")
        )

    assert not context.args


def test_a_command_that_does_not_exist_is_seen():
    with pytest.raises(Exception, match="No such"):
        test_every_command_names_verbs_and_options_that_exist(["runner", "--concurrency", "20"])


def test_every_variable_is_a_setting():
    said = "".join(
        path.read_text()
        for path in (DEPLOY / "retoma.env.example", DEPLOY / "compose.yaml", *UNITS)
    )
    names = set(re.findall(r"RETOMA_[A-Z_]+", said))

    assert names
    assert [] == [name for name in names if f"`{name}`" not in SETTINGS]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_has_its_sections_and_an_unprivileged_user(path):
    found = unit(path)

    assert ["Unit", "Service", "Install"] == found.sections()
    assert "retoma" == found["Service"]["User"]
    assert "/etc/retoma/retoma.env" == found["Service"]["EnvironmentFile"]
    assert WAIT < int(found["Service"]["TimeoutStopSec"])


def test_the_image_installs_a_wheel_and_nothing_that_has_no_hash():
    text = (DEPLOY / "Dockerfile").read_text()
    pips = re.findall(r"pip (?:install|wheel) [^\\&\n]*", text)

    assert (
        "\nARG PYTHON_IMAGE\n" in text
    )  # no default: by its digest, which only its user can look up
    assert ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"] == re.findall(r"\nFROM (.*)", text)
    assert 4 == len(pips)
    for each in pips:
        assert "--require-hashes" in each or "--no-deps" in each, each
    locked = (ROOT / "requirements" / "image.txt").read_text()
    of_runtime = (ROOT / "requirements" / "runtime.txt").read_text()
    named = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
    assert set(named.findall(of_runtime)) < set(named.findall(locked))
    assert "anthropic" in dict(named.findall(locked))
    for lock in ("image", "build"):
        blocks = (ROOT / "requirements" / f"{lock}.txt").read_text().split("\n")
        assert all(
            "--hash=sha256:" in after for line, after in pairwise(blocks) if named.match(line)
        )


def test_runners_of_the_compose_file_are_waited_for_and_its_image_runs_as_nobody_special():
    services = compose()["services"]

    assert {"postgres", "upgrade", "server", "runner"} == set(services)
    assert WAIT < int(services["runner"]["stop_grace_period"].removesuffix("s"))
    assert "\nUSER retoma\n" in (DEPLOY / "Dockerfile").read_text()
    for name in ("upgrade", "server", "runner"):
        assert services[name]["build"]["dockerfile"] == "deploy/Dockerfile"
        assert "retoma.env" == services[name]["env_file"]
    assert services["upgrade"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
