"""How rows of this application are asked for and read, and the round that most are about."""

from dataclasses import dataclass
from typing import Any, Final

from retoma.db.statements import Statements
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


SQL: Final = Statements("retoma.apps.matches.sql")
