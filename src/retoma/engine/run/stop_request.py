"""Why an attempt is to stop, if it is: set once by its attempt, read by the services it uses."""

from enum import StrEnum


class Why(StrEnum):
    """Why an attempt was stopped from outside."""

    CANCEL = "cancel"
    RELEASE = "release"
    LOST = "lost"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    STALLED = "stalled"


class StopRequest:
    """Of one attempt; the first reason stays."""

    __slots__ = ("late", "why")

    def __init__(self) -> None:
        self.why: Why | None = None
        self.late = ""  # of an attempt that took too long: how long
