"""How rows of this application are asked for and read, and the round that most are about."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from retoma.db import Statement, statement
from retoma.words import Said, say


@dataclass(frozen=True, slots=True)
class Round:
    """What is scraped as a whole."""

    league: str
    season: int
    round: int

    def parameters(self) -> dict[str, Any]:
        return {"league": self.league, "season": self.season, "round": self.round}

    @property
    def said(self) -> Said:
        """Its name for people, in their language."""
        return say("{league} {season}, round {round}", **self.parameters())

    def __str__(self) -> str:
        return f"{self.league} {self.season} rodada {self.round}"


def verb(name: str) -> Statement:
    return statement("retoma.apps.matches.sql", name)


def json_of(value: Any) -> Any:
    """A json column, as either database gives it."""
    return json.loads(value) if isinstance(value, str) else value


def time_of(at: Any) -> datetime | None:
    """A time, as either database gives it: SQLite's tables as a number, its views as text."""
    if at is None or isinstance(at, datetime):
        return at
    if isinstance(at, int):
        return datetime.fromtimestamp(at / 1e6, UTC)
    return datetime.fromisoformat(at).replace(tzinfo=UTC)
