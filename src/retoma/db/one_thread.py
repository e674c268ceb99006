"""The thread that drives one connection."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from retoma.db.database import Away

P = ParamSpec("P")
T = TypeVar("T")

NONE_LEFT = "can't start new thread"  # as Python says it


class OneThread(ThreadPoolExecutor):
    """Starts its thread with the first call; where the system has none left, the call raises Away.

    Its base keeps such a call, and makes it as soon as a thread starts: a write that its caller was told
    has failed, and makes again, would be done twice.
    """

    def __init__(self, name: str) -> None:
        super().__init__(1, name)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        refused: list[str] = []

        def call() -> T:
            if refused:
                raise Away(refused[0])
            return fn(*args, **kwargs)

        try:
            return super().submit(call)
        except RuntimeError as error:
            if NONE_LEFT not in str(error):
                raise
            refused.append(f"the database was not asked: {error}")
            raise Away(refused[0]) from error
