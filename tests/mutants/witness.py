"""A plugin of pytest: writes down how each test has ended, and that it was the tree that was tried."""

import json
import os
from pathlib import Path

import pytest

import retoma
from tests.mutants.killers import REPORT, TREE

ended: dict[str, str | None] = {}


def pytest_configure() -> None:
    check_tree()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        ended[report.nodeid] = f"{ended.get(report.nodeid) or ''}{report.longreprtext}\n"
    elif report.when == "call" and report.passed:
        ended.setdefault(report.nodeid, None)


def pytest_sessionfinish() -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(ended))


def check_tree() -> None:
    """Fail where something else would be tried than the tree that was asked for."""
    used = Path(retoma.__file__).resolve()
    assert used.is_relative_to(Path(os.environ[TREE]).resolve()), f"{used} was imported"
