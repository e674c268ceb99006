"""Logs are JSON lines for machines and readable for people; only a program of ours sets them up."""

import io
import json
import logging

import pytest
import structlog

from retoma import logs


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _leave_no_trace():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


def test_a_line_is_one_json_document_with_what_was_bound():
    out = io.StringIO()
    logs.configure("info", out)

    log = structlog.get_logger("retoma.x").bind(job=7, correlation=None)
    log.info("job.settled", status="done", message="linha\nnova: não")

    (line,) = out.getvalue().splitlines()
    said = json.loads(line)
    assert ("job.settled", 7, "done", "info") == (
        said["event"],
        said["job"],
        said["status"],
        said["level"],
    )
    assert said["at"].endswith("Z")


def test_an_error_carries_its_stack_inside_its_line():
    out = io.StringIO()
    logs.configure("info", out)

    try:
        raise ValueError("oh")
    except ValueError:
        structlog.get_logger().exception("broke")

    assert "ValueError: oh" in json.loads(out.getvalue())["exception"]


def test_what_is_below_the_level_is_not_told():
    out = io.StringIO()
    logs.configure("warning", out)

    structlog.get_logger().info("quiet")

    assert "" == out.getvalue()


def test_other_libraries_speak_the_same_way():
    out = io.StringIO()
    logs.configure("info", out)

    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("not told")

    assert "slow callback" == json.loads(out.getvalue())["event"]


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_person_sees_pairs_and_colours_unless_they_want_none(monkeypatch, no_color, coloured):
    monkeypatch.setenv("NO_COLOR", no_color)
    out = Terminal()
    logs.configure("info", out)

    structlog.get_logger().info("job.settled", job=7)

    assert coloured == ("\x1b[" in out.getvalue())
    assert "job.settled" in out.getvalue()
