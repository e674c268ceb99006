"""What a Celery worker takes from our queue is looked at before anything believes it.

Celery itself says an error for every message it cannot read; here each sort of badness is said once, and
a body is never unpacked but as JSON. Other queues of the same worker are none of our business.
"""

from collections.abc import Callable, Collection
from typing import Any

from celery.utils.imports import symbol_by_name

from retoma.dispatch.message import RUN, Bad, problem_of

SEEN = 60  # characters of a body that are told


def strict_consumer(
    base: Any,
    queue: str,
    duties: frozenset[str],
    ignore: Callable[[Bad, str], None],
    exported: Collection[str] = (),
) -> Any:
    """The consumer the worker would have had, and before it our own look at what comes by `queue`.

    `exported`: tasks that carry one number; looked into at each message, so it may grow.
    """
    consumer: Any = symbol_by_name(base)

    def create_task_handler(self: Any, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        take: Callable[[Any], None] = consumer.create_task_handler(self, *args, **kwargs)

        def look(message: Any) -> None:
            ours = _is_ours(message, queue, {RUN, *duties, *exported})
            bad = _problem(message, duties, exported) if ours else None
            if bad is None:
                take(message)
            else:
                message.ack()
                ignore(bad, repr(_raw(message)[:SEEN]))

        return look

    return type("HintConsumer", (consumer,), {"create_task_handler": create_task_handler})


def _is_ours(message: Any, queue: str, tasks: Collection[str]) -> bool:
    """By our queue, as far as it says so itself; or by whatever queue, if it wants a task of ours."""
    came_by = (message.delivery_info or {}).get("routing_key")
    return came_by == queue or _task(message) in tasks


def _problem(message: Any, duties: frozenset[str], exported: Collection[str]) -> Bad | None:
    if isinstance(message.headers, dict) and message.headers.get("compression"):
        return Bad.ENCODING
    task, kind, encoding = _task(message), message.content_type, message.content_encoding
    return problem_of(task, _raw(message), kind, encoding, duties, exported)


def _task(message: Any) -> Any:
    return message.headers.get("task") if isinstance(message.headers, dict) else None


def _raw(message: Any) -> str | bytes:
    """The body as it came; whatever is no text was no message of ours."""
    body = message.body
    if isinstance(body, str | bytes):
        return body
    return bytes(body) if isinstance(body, bytearray | memoryview) else b""
