"""The engine's own log, quiet in somebody else's process.

A program that has set structlog up gets every line its own way. One that has not sees warnings on
its standard error, and not a line for every job on its standard output; of an error its stack, without the
values in it, among which may be a secret.
"""

import logging
import os
import sys
from typing import Any, cast

import structlog

_QUIET: Any = structlog.make_filtering_bound_logger(logging.WARNING)


def get_logger(name: str) -> Any:
    """As structlog's own, deciding at each first use: whoever sets structlog up may do it late."""
    return structlog.wrap_logger(
        None, wrapper_class=cast("Any", _chosen), logger_factory_args=(name,)
    )


def _chosen(logger: Any, processors: Any, context: Any) -> Any:
    if structlog.is_configured():
        wrapper: Any = structlog.get_config()["wrapper_class"]
        return wrapper(logger, processors=processors, context=context)
    plain = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
    )
    return _QUIET(
        structlog.PrintLogger(sys.stderr), processors=[*processors[:-1], plain], context=context
    )
