"""What a step is asked to do: by which function, where, and within which limits."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from retoma.engine.isolation.function import is_async, what_it_is
from retoma.engine.isolation.isolate import Limits, check_can_travel
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import StepId
from retoma.engine.rules.outcome import Happened, Unknown
from retoma.words import say

Place = Literal["loop", "thread", "child", "confined", "database"]


class Once(NamedTuple):
    """Of what must not happen twice without anybody knowing: what follows where nobody knows."""

    unknown: Unknown
    reconcile: Callable[..., Awaitable[Happened | None]] | None


@dataclass(slots=True)  # not frozen: one is made for every step, and that would cost half of it
class Work:
    """One step, as its story asks for it."""

    step: StepId
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    place: Place
    limits: Limits | None = None
    once: Once | None = None
    reuse: Any = None
    pays: str | None = None
    cost: Callable[[Any], Mapping[str, Any]] | None = None


def place_of(fn: Callable[..., Any], where: str | None) -> Place:
    """Refuses what can run nowhere."""
    if where not in (None, "thread", "confined"):
        raise BadInput(
            say(
                'where={where!r}: a step runs where it belongs, or where="thread" or "confined"',
                where=where,
            )
        )
    if is_async(fn):
        if where is not None:
            raise BadInput(say("{fn!r} is async: it runs on the loop, not in a thread", fn=fn))
        return "loop"
    check_function(fn)
    if where == "thread":
        return "thread"
    check_can_travel(fn)
    return "child" if where is None else "confined"


def check_function(fn: Any) -> None:
    wrong = what_it_is(fn)
    if wrong is not None:
        raise BadInput(say("{fn!r} is {found}", fn=fn, found=wrong))


def limits_of(name: str, place: Place, timeout: Any, cpu: Any, memory: Any) -> Limits | None:
    if timeout is None and cpu is None and memory is None:
        return None
    limits = Limits.read(name, timeout=timeout, cpu=cpu, memory=memory)
    if place not in ("child", "confined") and (
        limits.cpu is not None or limits.memory is not None
    ):
        raise BadInput(
            say(
                "{name}: cpu and memory are limits of a child, and it does not run in one",
                name=name,
            )
        )
    return limits


def once_of(name: str, unknown: Unknown | str, reconcile: Any, reuse: Any) -> Once:
    if reuse is not None:
        raise BadInput(
            say(
                "{name}: what must not happen twice has an effect, and that cannot be used again",
                name=name,
            )
        )
    return Once(Unknown(unknown), reconcile)
