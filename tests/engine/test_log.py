"""In a library user's process the engine tells only warnings; a set-up log gets everything."""

import logging
import secrets

import pytest
import structlog

from retoma.engine.log import get_logger


@pytest.fixture(autouse=True)
def _as_it_was():
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def test_unless_set_up_only_warnings_are_told_and_not_on_standard_output(capsys):
    log = get_logger("retoma.x").bind(job=7)
    log.debug("job.settled")
    log.info("runner.booted")
    log.warning("job.failed")

    said = capsys.readouterr()
    assert "" == said.out
    assert "job.failed" in said.err
    assert "runner.booted" not in said.err


def test_a_log_that_was_set_up_late_is_still_heard():
    log = get_logger("retoma.x")
    told: list[str] = []

    def keep(_logger, _method, line):
        told.append(line["event"])
        raise structlog.DropEvent

    structlog.configure(
        processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
    )
    log.debug("job.settled")
    log.info("runner.booted")

    assert ["runner.booted"] == told


def test_an_error_is_told_with_its_stack_and_without_the_values_in_it(capsys, monkeypatch):
    """As structlog is where nobody has touched it: it would show them."""
    default = structlog.get_config()["processors"][-1]
    values = structlog.dev.RichTracebackFormatter()
    monkeypatch.setattr(default, "exception_formatter", values)
    key = secrets.token_hex()
    try:
        raise LookupError(len(key))
    except LookupError:
        get_logger("retoma.x").exception("job.broke")

    said = capsys.readouterr().err
    assert "job.broke" in said
    assert "test_an_error_is_told" in said
    assert key[:16] not in said
