"""What is known of a function before it is called: whether it is async, and what it returns."""

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType
from typing import Any, get_type_hints

from retoma.codec import Undecodable, decode


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return _is_async(fn if type(fn) is FunctionType else _called(fn))


def returns(fn: Callable[..., Any]) -> Any:
    """The type a function says it returns; None where it does not say."""
    return _returns(fn if type(fn) is FunctionType else _called(fn))


def read_as(text: str | None, fn: Callable[..., Any]) -> Any:
    """A kept value, in the type the function says it returns."""
    return decode("null" if text is None else text, returns(fn))


def fits(text: str, fn: Callable[..., Any]) -> bool:
    """Whether a kept value is still what the function says it returns."""
    try:
        read_as(text, fn)
    except Undecodable:
        return False
    return True


@lru_cache(maxsize=1024)
def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)


@lru_cache(maxsize=1024)
def _returns(function: Callable[..., Any]) -> Any:
    try:
        return get_type_hints(function).get("return")
    except (TypeError, NameError):
        return None


def _called(fn: Any) -> Callable[..., Any]:
    """The function that runs when it is called: of a partial, a method, an object with __call__.

    It is remembered in place of what was given, which may have no hash and should not be kept.
    """
    while isinstance(fn, partial):
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    return fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__
