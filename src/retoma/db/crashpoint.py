"""Named places where a process may be made to die, so that tests can see what then happens.

Every write to a database passes `<verb>.before_commit` and `<verb>.after_commit`; the engine adds
the places between writes. Nothing happens at any of them unless one is armed, by a test in this
process or by the environment of another:

    RETOMA_CRASHPOINT="settle.after_commit=kill"      the first time it is passed
    RETOMA_CRASHPOINT="save.before_commit=exception@3"  the third time
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Harm(StrEnum):
    """What happens at an armed place."""

    KILL = "kill"
    EXCEPTION = "exception"
    REPLY_LOST = "reply_lost"  # only after a commit: it happened, but nobody is told


class Injected(Exception):
    """An armed crash point was passed."""


class ReplyWithheld(Injected):
    """As `Injected`, where the database layer must say that its connection broke."""


@dataclass(slots=True)
class _Armed:
    harm: Harm
    passes_left: int


class CrashPoints:
    """The armed places of this process."""

    def __init__(self, spec: str = "") -> None:
        self._armed: dict[str, _Armed] = {}
        self._on_pass: Callable[[str], None] | None = None
        self.live = False  # asked first where it is passed ten thousand times a second
        for item in filter(None, spec.split(",")):
            name, _, rest = item.partition("=")
            harm, _, count = rest.partition("@")
            self.arm(name, Harm(harm), int(count or 1))

    def arm(self, name: str, harm: Harm, on_pass: int = 1) -> None:
        self._armed[name] = _Armed(harm, on_pass)
        self.live = True

    def armed(self, name: str) -> bool:
        """Whether the harm there is still to come."""
        return name in self._armed

    def disarm(self) -> None:
        self._armed.clear()
        self.live = self._on_pass is not None

    @property
    def on_pass(self) -> Callable[[str], None] | None:
        """Told of every place that is passed, where somebody set it."""
        return self._on_pass

    @on_pass.setter
    def on_pass(self, tell: Callable[[str], None] | None) -> None:
        self._on_pass = tell
        self.live = bool(self._armed) or tell is not None

    def __call__(self, name: str) -> None:
        if self._on_pass is not None:
            self._on_pass(name)
        armed = self._armed.get(name)
        if armed is None:
            return
        armed.passes_left -= 1
        if armed.passes_left > 0:
            return
        del self._armed[name]
        if armed.harm is Harm.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if armed.harm is Harm.REPLY_LOST:
            raise ReplyWithheld(name)
        raise Injected(name)


crashpoint = CrashPoints(os.environ.get("RETOMA_CRASHPOINT", ""))
