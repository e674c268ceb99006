"""What a Celery worker takes from our queue is looked at before anything believes it.

Celery itself says an error for every message it cannot read; here each sort of badness is said once, and
a body is never unpacked but as JSON. Other queues of the same worker are none of our business.
"""

from collections.abc import Callable
from typing import Any

from celery.utils.imports import symbol_by_name

from retoma.dispatch.message import Bad, problem_of

SEEN = 60  # characters of a body that are told


def strict_consumer(
    base: Any, queue: str, duties: frozenset[str], ignore: Callable[[Bad, str], None]
) -> Any:
    """The consumer the worker would have had, and before it our own look at what comes by `queue`."""
    consumer: Any = symbol_by_name(base)

    def create_task_handler(self: Any, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        take: Callable[[Any], None] = consumer.create_task_handler(self, *args, **kwargs)

        def look(message: Any) -> None:
            bad = _problem(message, duties) if _came_by(message) == queue else None
            if bad is None:
                take(message)
            else:
                message.ack()
                ignore(bad, repr(message.body[:SEEN]))

        return look

    return type("HintConsumer", (consumer,), {"create_task_handler": create_task_handler})


def _came_by(message: Any) -> Any:
    return (message.delivery_info or {}).get("routing_key")


def _problem(message: Any, duties: frozenset[str]) -> Bad | None:
    headers = message.headers if isinstance(message.headers, dict) else {}
    if headers.get("compression"):
        return Bad.ENCODING
    task, body = headers.get("task"), message.body
    raw = body if isinstance(body, str) else bytes(body)
    return problem_of(task, raw, message.content_type, message.content_encoding, duties)
