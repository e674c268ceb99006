"""No pattern of the tree takes more than twice as long for an input that is twice as long."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import patterns
from tests.house.files import ROOT, SOURCE
from tests.house.patterns import Found

CPU = 240  # seconds of the child that feeds them all; it takes some twelve

SQUARE = re.compile(r"a+b")
CUBE = re.compile(r"(-?)\s*(?:R\$)?\s*(-?\d[\d.,\s]*)")  # how prices were read
POWER = re.compile(r"(<!--.{0,2000}?-->\s*)*<html", re.DOTALL)  # how pages were known
OPEN = re.compile(r"«[^»]*»")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))


@pytest.mark.timeout(900)
def test_every_pattern_is_linear(tmp_path: Path):
    told = tmp_path / "patterns"
    fed = [sys.executable, "-m", "tests.house.patterns", str(told)]

    ended = subprocess.run(fed, cwd=ROOT, preexec_fn=_limit, check=False, timeout=800)

    lines = told.read_text(encoding="utf-8").splitlines()
    assert [] == [each for each in lines if each.startswith("slow ")]
    assert (0, "done") == (ended.returncode, lines[-1])


def test_all_patterns_are_found():
    """Those of the standard library as they are used here, those of models, and those in comprehensions."""
    found = {
        each.pattern if isinstance(each.pattern, str) else each.pattern.pattern
        for each in patterns.collect()
    }

    assert len(found) > 130
    for known in (
        r"\d[\d.,\s]*",  # of quotes
        r"\A[a-z0-9]+(-[a-z0-9]+)*\z",  # of a model
        "^(gone|adopt)$",  # of a route
        r"</script",  # made in a comprehension
        r"\s*q=([01](?:\.\d{0,3})?)\s*",  # not compiled
    ):
        assert known in found


@pytest.mark.parametrize(
    ("pattern", "anywhere"), [(SQUARE, True), (CUBE, True), (POWER, False), (OPEN, True)]
)
def test_a_pattern_that_is_not_linear_is_seen(pattern, anywhere):
    found = Found("here", pattern, anywhere=anywhere, whole=not anywhere)

    with patterns.stopping():
        slow = list(patterns.slow_inputs(found))

    assert slow
    assert all(patterns.STEEPEST < each.ratio for each in slow)


def test_a_pattern_whose_source_cannot_be_told_is_refused(tmp_path: Path):
    (tmp_path / "made.py").write_text(
        "import re\n\ndef found(word: str) -> object:\n    return re.search(word + '+', 'aaa')\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path.parent))
    try:
        with pytest.raises(AssertionError, match="say in MADE"):
            patterns.collect(tmp_path, tmp_path.name)
    finally:
        sys.path.remove(str(tmp_path.parent))


def test_models_are_checked_by_an_engine_that_is_linear():
    """Pydantic's own; `re` would be chosen by this name."""
    for path in SOURCE.rglob("*.py"):
        assert "regex_engine" not in path.read_text(encoding="utf-8"), path
