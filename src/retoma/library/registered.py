"""What is registered with one `Retoma`: kinds, applications, schedules, references, live settings."""

from dataclasses import dataclass, field, replace
from typing import Any

from retoma.db.migrations import Room
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ops import alerts, retention
from retoma.engine.rules.live_settings import Declared
from retoma.engine.store import Plan, Reference


def _engine_knobs() -> Declared:
    return Declared((*alerts.KNOBS, *retention.KNOBS), rule=retention.go_together)


@dataclass(slots=True)
class Registered:
    """Known before a database is opened; `undeclared` while the database has not all of it."""

    kinds: Kinds = field(default_factory=Kinds)
    tools: dict[str, Any] = field(default_factory=dict)  # of installed applications, by name
    plans: dict[str, Plan] = field(default_factory=dict)  # of schedules
    references: list[Reference] = field(default_factory=list)
    rooms: list[Room] = field(default_factory=list)  # tables of applications
    knobs: Declared = field(default_factory=_engine_knobs)
    undeclared: bool = False

    def shared(self) -> "Registered":
        """The same for another `Retoma`, which has a database of its own to declare it to."""
        return replace(self, undeclared=bool(self.plans or self.references))
