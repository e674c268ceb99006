"""Five applications that never import each other, laid out alike. One of your own begins with what is here."""

from typing import TYPE_CHECKING, Any

from retoma.manifest import Application

if TYPE_CHECKING:
    from retoma.engine.handlers.kinds import job

__all__ = ["Application", "job"]


def __getattr__(name: str) -> Any:
    # `retoma --help` names the applications, and must not pay for the engine.
    if name == "job":
        from retoma.engine.handlers.kinds import job  # noqa: PLC0415

        return job
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
