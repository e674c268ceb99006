"""Check the messages of our queue before a Celery worker processes them.

Celery logs an error for every message it cannot read; this consumer logs each kind of problem once, and
decodes bodies only as JSON. Messages of other queues pass unchanged.
"""

from collections.abc import Callable, Collection
from typing import Any

from celery.utils.imports import symbol_by_name

from retoma.dispatch.message import RUN, IgnoreReason, check_message

EXCERPT = 60  # characters of a body that are logged


def strict_consumer(
    base: Any,
    queue: str,
    leader_tasks: frozenset[str],
    ignore: Callable[[IgnoreReason, str], None],
    exported: Collection[str] = (),
) -> Any:
    """Extend the worker's consumer class by a check of the messages of `queue`.

    `exported`: tasks that carry one id; read at each message, so tasks may be added later.
    """
    consumer: Any = symbol_by_name(base)

    def create_task_handler(self: Any, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        process: Callable[[Any], None] = consumer.create_task_handler(self, *args, **kwargs)

        def check(message: Any) -> None:
            ours = _is_ours(message, queue, {RUN, *leader_tasks, *exported})
            reason = _ignore_reason(message, leader_tasks, exported) if ours else None
            if reason is None:
                process(message)
            else:
                message.ack()
                ignore(reason, repr(_raw(message)[:EXCERPT]))

        return check

    return type("HintConsumer", (consumer,), {"create_task_handler": create_task_handler})


def _is_ours(message: Any, queue: str, tasks: Collection[str]) -> bool:
    """Whether the message came by our queue, or names one of our tasks."""
    routing_key = (message.delivery_info or {}).get("routing_key")
    return routing_key == queue or _task(message) in tasks


def _ignore_reason(
    message: Any, leader_tasks: frozenset[str], exported: Collection[str]
) -> IgnoreReason | None:
    if isinstance(message.headers, dict) and message.headers.get("compression"):
        return IgnoreReason.ENCODING
    task, kind, encoding = _task(message), message.content_type, message.content_encoding
    return check_message(task, _raw(message), kind, encoding, leader_tasks, exported)


def _task(message: Any) -> Any:
    return message.headers.get("task") if isinstance(message.headers, dict) else None


def _raw(message: Any) -> str | bytes:
    """Return the raw body; empty if it is neither text nor bytes."""
    body = message.body
    if isinstance(body, str | bytes):
        return body
    return bytes(body) if isinstance(body, bytearray | memoryview) else b""
