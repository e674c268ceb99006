"""The engine's own log, quiet in somebody else's process.

A program that has set structlog up gets every line its own way. One that has not sees warnings on
its standard error, and not a line for every job on its standard output; of an error its stack, without the
values in it, among which may be a secret.

A line that cannot be written is lost, and nothing else: where the log lies on a full disk, or its reader is
gone, jobs must end all the same.
"""

import logging
import os
import sys
from functools import lru_cache
from typing import Any, cast

import structlog


@lru_cache(maxsize=8)  # of classes that programs set structlog up with: one, or two
def never_raising(wrapper: Any) -> Any:
    """The same class of loggers, except that what goes wrong with a line loses that line."""

    class NeverRaising(wrapper):  # type: ignore[misc]
        def _proxy_to_logger(self, *args: Any, **fields: Any) -> Any:
            try:
                return super()._proxy_to_logger(*args, **fields)
            except Exception:  # noqa: BLE001 — there is nowhere left to record it
                return None

    return NeverRaising


_QUIET: Any = never_raising(structlog.make_filtering_bound_logger(logging.WARNING))


def get_logger(name: str) -> Any:
    """As structlog's own, deciding at each first use: whoever sets structlog up may do it late."""
    return structlog.wrap_logger(
        None, wrapper_class=cast("Any", _chosen), logger_factory_args=(name,)
    )


def _chosen(logger: Any, processors: Any, context: Any) -> Any:
    if structlog.is_configured():
        wrapper: Any = never_raising(structlog.get_config()["wrapper_class"])
        return wrapper(logger, processors=processors, context=context)
    plain = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
    )
    return _QUIET(
        structlog.PrintLogger(sys.stderr), processors=[*processors[:-1], plain], context=context
    )
