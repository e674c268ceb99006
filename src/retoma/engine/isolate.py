"""Sync steps run elsewhere: in spawned child processes, or, where asked for, in a thread.

A child that dies or hangs costs its own step and no neighbour. Only what can be named can travel:
a function at the top of a module, its arguments and its result as JSON text.
"""

import asyncio
import contextlib
import importlib
import inspect
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_type_hints

from pebble import ProcessExpired, ProcessPool

from retoma.codec import decode, encode
from retoma.engine.errors import BadInput, Transient

CHILDREN = max(2, os.cpu_count() or 1)
THREADS = 32


class Isolate:
    """The children and threads of one runner; none is started before it is needed."""

    def __init__(self) -> None:
        self._children: ProcessPool | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def in_child(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> str:
        """The JSON text of what `fn` returned, in a process of its own."""
        module, name = _address(fn)
        if self._children is None:
            context = multiprocessing.get_context("spawn")
            self._children = ProcessPool(max_workers=CHILDREN, context=context)
        future = self._children.schedule(_call, args=[module, name, encode(list(args))])
        try:
            text = await asyncio.wrap_future(future)
        except ProcessExpired as error:
            raise Transient(
                f"{module}.{name}: its process ended with exit code {error.exitcode}",
                code="child_died",
            ) from error
        return str(text)

    async def in_thread(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "retoma-step")
        return await asyncio.get_running_loop().run_in_executor(self._threads, fn, *args)

    def close(self) -> None:
        if self._children is not None:
            self._children.stop()  # type: ignore[no-untyped-call]
            with contextlib.suppress(TimeoutError):
                self._children.join(5)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _address(fn: Callable[..., Any]) -> tuple[str, str]:
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__qualname__", "")
    if not module or not name.isidentifier():
        raise BadInput(
            f"{name or fn!r} is sync and not at the top of a module, so it cannot run in a child"
            ' process: move it there, make it async, or ask for where="thread"'
        )
    return module, name


def check_can_travel(fn: Callable[..., Any]) -> None:
    """Refuse a lambda or a closure where it is given, not where it is run."""
    _address(fn)


def _call(module: str, name: str, arguments: str) -> str:
    fn = getattr(importlib.import_module(module), name)
    hints = _hints(fn)
    names = [*inspect.signature(fn).parameters]
    values = [
        decode(encode(value), hints.get(names[place]) if place < len(names) else None)
        for place, value in enumerate(decode(arguments))
    ]
    try:
        return encode(fn(*values))
    except Exception as error:
        told = _that_travels(error)
        if told is error:
            raise
        raise told from error


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(fn)
    except NameError:
        return {}  # a name only a type checker knows: the arguments stay plain JSON


def _that_travels(error: Exception) -> Exception:
    """Itself, or, where it cannot be rebuilt on the other side, what it said."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 — our own, a moment old
    except Exception:  # noqa: BLE001 — whatever its class does when it is rebuilt
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
