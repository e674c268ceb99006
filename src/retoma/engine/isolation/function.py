"""What is known of a function before it is called: whether it is async, and what it returns.

Nothing that is kept here may lead to a function made inside another one: a closure holds the context
of its handler, and with it all that the attempt has saved.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from inspect import Parameter
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple, cast, get_type_hints

from retoma.codec import Undecodable, decode
from retoma.words import Said, say

UNSAID = object()
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    if type(fn) is FunctionType and fn.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(_called(fn))


def returns(fn: Callable[..., Any]) -> Any:
    """The type a function says it returns; None where it does not say. Of a class: itself."""
    called = _called(fn)
    if inspect.isclass(called):
        return called
    said = getattr(called, "__annotations__", {}).get("return", UNSAID)
    if said is UNSAID or isinstance(said, type):
        return None if said is UNSAID else said
    if said is None:
        return type(None)
    return _known_type(called) if _is_permanent(called) else _type_of(called)


def what_it_is(fn: Any) -> Said | None:
    """What was given in place of a function that returns one value; None where it is one."""
    if inspect.iscoroutine(fn):
        fn.close()
        return say("a coroutine: give the function itself, not what calling it returns")
    if not callable(fn):
        return say("no function")
    called = _called(fn)
    if inspect.isasyncgenfunction(called) or inspect.isgeneratorfunction(called):
        return say("a generator function: return one value, such as a list")
    return None


def parameter_types(fn: Callable[..., Any]) -> "Types":
    """The types of its positional arguments, in their order."""
    try:
        hints = get_type_hints(fn)
    except (NameError, TypeError):
        hints = {}  # a name only a type checker knows: the arguments stay plain JSON
    named = [*inspect.signature(fn).parameters.values()]
    rest = next((each.name for each in named if each.kind is each.VAR_POSITIONAL), None)
    before = [hints.get(each.name) for each in named if each.kind in POSITIONAL]
    return Types(before, None if rest is None else hints.get(rest))


class Types(NamedTuple):
    """Of arguments: those that have a name, and the rest (`*args`). None: it is not said."""

    named: list[Any]
    rest: Any

    def at(self, place: int) -> Any:
        return self.named[place] if place < len(self.named) else self.rest


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


@lru_cache(maxsize=1024)  # of functions that last as long as their module
def _known_type(function: Callable[..., Any]) -> Any:
    return _type_of(function)


def _type_of(function: Any) -> Any:
    """What its annotation means; None where it names what only a type checker knows."""
    alone = SimpleNamespace(__annotations__={"return": function.__annotations__["return"]})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return get_type_hints(alone, globalns=names)["return"]
    except (TypeError, NameError):
        return None


def _is_permanent(function: Any) -> bool:
    """Whether it was made by its module or a class of it, not by a call of another function."""
    code = getattr(function, "__code__", None)
    return code is not None and function.__closure__ is None and "<" not in code.co_qualname


def _called(fn: Any) -> Callable[..., Any]:
    """The function that runs when it is called: of a partial, a method, an object with __call__."""
    if type(fn) is FunctionType:
        return fn
    while isinstance(fn, partial):
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    if not inspect.isroutine(fn) and not inspect.isclass(fn):
        fn = getattr(type(fn), "__call__", fn)  # noqa: B004  # its function, not whether it has one
    return cast("Callable[..., Any]", fn)
