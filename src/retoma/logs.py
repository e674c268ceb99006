"""How our own programs log: structlog, JSON lines for machines, colours for people.

Only a program of ours calls this. In a library user's process the log is theirs to set up.
"""

import logging
import os
import sys
from typing import Any, TextIO

import structlog
from structlog.typing import Processor


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send every line of this process to `stream`: as JSON, unless a person is looking."""
    out = sys.stderr if stream is None else stream
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    structlog.configure(
        processors=[*shared, *_rendering(out)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _take_in_stdlib(out, number, shared)


def _rendering(out: TextIO) -> list[Processor]:
    if out.isatty():
        colours = not os.environ.get("NO_COLOR")
        return [structlog.dev.ConsoleRenderer(colors=colours, timestamp_key="at")]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=_as_text, ensure_ascii=False),
    ]


def _take_in_stdlib(out: TextIO, number: int, shared: list[Processor]) -> None:
    """What other libraries say through `logging` looks the same, at warning and above."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(out),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))


def _as_text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
