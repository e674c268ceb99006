"""How the old pages say things."""

import re
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from retoma.apps.matches.model import EventKind, MatchStatus, Side

STATUSES: Final = {
    "agendado": MatchStatus.SCHEDULED,
    "ao vivo": MatchStatus.LIVE,
    "encerrado": MatchStatus.FINISHED,
    "adiado": MatchStatus.POSTPONED,
    "w.o.": MatchStatus.FINISHED,
}
AWARDED: Final = ("w.o.",)
SIDES: Final = {"mandante": Side.HOME, "visitante": Side.AWAY}
GOALS: Final = {"": EventKind.GOAL, "contra": EventKind.OWN_GOAL, "pênalti": EventKind.PENALTY}
CARDS: Final = {"amarelo": EventKind.YELLOW, "vermelho": EventKind.RED}
STATISTICS: Final = {
    "posse de bola": "possession",
    "finalizações": "shots",
    "finalizações no gol": "shots_on_target",
    "escanteios": "corners",
    "faltas": "fouls",
    "impedimentos": "offsides",
    "passes": "passes",
}
UNSAID: Final = "a definir"
ORDINAL: Final = re.compile(r"([0-9]{1,3})ª rodada")
TOTAL: Final = re.compile(r"([0-9]{1,3}) jogos?")
SCORE: Final = re.compile(r"([0-9]{1,4})\s*x\s*([0-9]{1,4})")
MINUTE: Final = re.compile(r"([0-9]{1,4})(?:\+([0-9]{1,4}))?'")


def number_in(pattern: re.Pattern[str], said: str) -> str:
    """The digits of it; else what was said, to be refused."""
    found = pattern.fullmatch(said)
    return said if found is None else found[1]


def score(said: str) -> Any:
    if said == "x":
        return None
    found = SCORE.fullmatch(said)
    return said if found is None else {"home": found[1], "away": found[2]}


def minute(said: str) -> dict[str, Any]:
    found = MINUTE.fullmatch(said)
    if found is None:
        return {"minute": said}
    return {"minute": found[1], "added": found[2]}


def kickoff(said: str, zone: str) -> Any:
    if said.casefold() == UNSAID:
        return None
    try:
        return datetime.strptime(said, "%d/%m/%Y %H:%M").replace(tzinfo=ZoneInfo(zone))
    except ValueError:
        return said


def side(classes: str | None) -> Any:
    said = (classes or "").split()
    return next((SIDES[each] for each in said if each in SIDES), " ".join(said))


def card(classes: str | None) -> Any:
    said = (classes or "").split()
    return next((CARDS[each] for each in said if each in CARDS), " ".join(said))
