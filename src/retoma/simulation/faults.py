"""What goes wrong in a universe, and how often: drawn from its seed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

SPAN = 60.0  # seconds of virtual time in which things go wrong: five leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Chances of one call, or seconds between two; 0: never."""

    unreachable: float = 0.0  # a call that does not reach the database
    answer_lost: float = 0.0  # a commit that happens without anybody hearing of it
    busy: float = 0.0
    full: float = 0.0  # of a call after which the disk is full for a while
    slow: float = 0.0  # a call that takes up to two leases
    kill_in_call: float = (
        0.0  # the host is killed before a call, or after it and before its answer
    )
    stop_in_call: float = 0.0  # the host is stopped there for up to two leases
    deaf: float = 0.0  # a wake-up that does not arrive
    child_dies: float = 0.0
    kill_every: float = 0.0  # seconds
    stop_every: float = 0.0  # seconds
    hold_every: float = 0.0  # seconds: the loop of a host is held, its heartbeat goes on
    leave_every: float = 0.0  # seconds: a runner is told to leave
    act_every: float = 0.0  # seconds: an operator does something
    span: float = SPAN

    @classmethod
    def draw(cls, rng: Random) -> "Faults":
        """A mix of its own for each universe: some never, some now and then, some all the time."""

        def chance(most: float) -> float:
            return rng.choice((0.0, 0.0, most / 20, most / 4, most)) * rng.random()

        def every(least: float) -> float:
            return rng.choice((0.0, least, least * 4)) * (0.5 + rng.random())

        return cls(
            unreachable=chance(0.2),
            answer_lost=chance(0.2),
            busy=chance(0.1),
            full=chance(0.02),
            slow=chance(0.1),
            kill_in_call=chance(0.05),
            stop_in_call=chance(0.1),
            deaf=chance(1.0),
            child_dies=chance(0.8),  # few steps have one
            kill_every=every(5.0),
            stop_every=every(6.0),
            hold_every=every(10.0),
            leave_every=every(12.0),
            act_every=every(2.0),
        )


NONE = Faults(span=0.0)


class Fault(NamedTuple):
    """Something that went wrong: what, where, and the how manyeth time that it could have there."""

    host: str
    kind: str
    number: int


@dataclass(slots=True)
class Chances:
    """Decides each fault once, and can leave out all but some: so a failure is made smaller.

    Each host has a chance of its own for each kind of fault: leaving one out changes no other draw. It is
    asked only where the fault would hit somebody, so what is counted has happened.
    """

    seed: int | str
    only: frozenset[Fault] | None = None  # which of those that would happen may
    happened: list[Fault] = field(default_factory=list)
    _asked: dict[tuple[str, str], "_Asked"] = field(default_factory=dict)

    def happens(self, host: str, kind: str, chance: float = 1.0) -> bool:
        if not chance:
            return False
        asked = self._asked.get((host, kind))
        if asked is None:
            asked = self._asked[host, kind] = _Asked(
                Random(f"{self.seed}/{host}/{kind}").random
            )
        asked.times += 1
        if chance < 1.0 and asked.draw() >= chance:
            return False
        fault = Fault(host, kind, asked.times)
        if self.only is not None and fault not in self.only:
            return False
        self.happened.append(fault)
        return True


class _Asked:
    """How often one kind of fault could have hit one host, and its own chance."""

    __slots__ = ("draw", "times")

    def __init__(self, draw: Callable[[], float]) -> None:
        self.draw = draw
        self.times = 0
