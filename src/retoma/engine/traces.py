"""Where spans go, if anybody wants them: submit → claim → step → call outside.

The engine knows no tracer, only this. Without one nothing here is ever called: whoever would open a
span looks first whether there is somewhere for it to go.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Protocol


class Side(StrEnum):
    """Which side of a conversation it is."""

    PRODUCER = "producer"  # it leaves work for others
    CONSUMER = "consumer"  # it takes up what was left
    INTERNAL = "internal"
    CLIENT = "client"  # it calls somebody else


class Span(Protocol):
    """One that is open."""

    @property
    def traceparent(self) -> str:
        """Itself, for whoever goes on elsewhere (W3C Trace Context)."""

    def tell(self, **facts: Any) -> None:
        """What is known of it only now."""

    def fail(self, code: str) -> None:
        """It went wrong. A code, never a message: those may hold what nobody is to see."""


class Traces(Protocol):
    """Somewhere for spans to go."""

    def span(
        self,
        name: str,
        side: Side = Side.INTERNAL,
        *,
        parent: str | None = None,
        **facts: Any,
    ) -> AbstractContextManager[Span]:
        """Open until the block ends; below `parent`, else below the one that is open here."""

    def here(self) -> str | None:
        """The one that is open here."""

    def flush(self) -> None:
        """Send what has not been sent; gives up after a while."""


# Of the attempt that is told here: whoever is called by its story finds it without being handed it.
TRACES: ContextVar[Traces | None] = ContextVar("retoma_traces", default=None)
