"""In a library user's process the engine tells only warnings; a set-up log gets everything."""

import asyncio
import logging
import secrets
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from retoma import Context, Retoma, Retry, State
from retoma.engine.handlers.kinds import job
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


@pytest.fixture
def full_disk() -> Iterator[TextIO]:
    """A file that has no room for a single character."""
    with suppress(OSError), Path("/dev/full").open("w", buffering=1) as out:
        yield out


@pytest.mark.parametrize("set_up", [False, True])
def test_a_line_that_cannot_be_written_is_lost_and_nothing_else(full_disk, monkeypatch, set_up):
    monkeypatch.setattr(sys, "stderr", full_disk)
    if set_up:
        structlog.configure(logger_factory=structlog.WriteLoggerFactory(full_disk))

    log = get_logger("retoma.x").bind(job=7)
    log.error("job.buried")
    log.warning("job.failed", ms=1)

    with pytest.raises(OSError, match="No space left"):
        full_disk.write("as it is\n")


async def test_jobs_end_although_their_lines_cannot_be_written(full_disk, database_url):
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(full_disk))
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=2, base=0.01, cap=0.01))
        async def fails(ctx: Context, n: int) -> None:
            raise ValueError(n)

        batch = await app.submit_many(fails, range(3))
        async with asyncio.timeout(60):
            await app.run(until_idle=True)

        assert 3 == (await batch.counts())[State.DEAD]


async def test_what_a_kind_says_of_an_end_keeps_nobody_from_ending(database_url):
    def wrong(ended: int, state: State, ms: float) -> dict[str, object]:
        raise ZeroDivisionError

    async with Retoma(database_url) as app:

        @job(log_settled=wrong)
        async def work(ctx: Context, n: int) -> int:
            return n

        app.kinds.add(work.kind)  # type: ignore[attr-defined]
        batch = await app.submit_many("work", range(10))
        async with asyncio.timeout(60):
            await app.run(until_idle=True)

        assert 10 == (await batch.counts())[State.DONE]


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
