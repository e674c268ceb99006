"""Configure the logs of our own programs: structlog, as JSON lines, or in colour on a terminal.

Only our programs call this. A process that uses the library configures its own logging.
"""

import logging
import os
import sys
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from retoma.engine.log import never_raising
from retoma.secret import redact


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send every log line of this process to `stream`: as JSON, or in colour on a terminal."""
    out = sys.stderr if stream is None else stream
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    structlog.configure(
        processors=[*shared, *_rendering(out)],
        wrapper_class=never_raising(structlog.make_filtering_bound_logger(number)),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _take_in_stdlib(out, number, shared)


def _rendering(out: TextIO) -> list[Processor]:
    """Turn tracebacks into text before redaction, so that it covers them. Local variables are never shown."""
    return [structlog.processors.format_exc_info, _without_secrets, _renderer(out)]


def _renderer(out: TextIO) -> Processor:
    if not out.isatty():
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=not os.environ.get("NO_COLOR"),
        timestamp_key="at",
        exception_formatter=structlog.dev.plain_traceback,
    )


def _without_secrets(_: Any, __: str, event: EventDict) -> EventDict:
    return cast("EventDict", redact(event))


def _take_in_stdlib(out: TextIO, number: int, shared: list[Processor]) -> None:
    """Render log lines of other libraries in the same format, at warning and above."""
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
