"""How the relaunched pages say things."""

from datetime import datetime
from typing import Any, Final

from selectolax.lexbor import LexborNode

from retoma.apps.matches.model import EventKind, MatchStatus

STATUSES: Final = {
    "ns": MatchStatus.SCHEDULED,
    "live": MatchStatus.LIVE,
    "ft": MatchStatus.FINISHED,
    "pst": MatchStatus.POSTPONED,
    "wo": MatchStatus.FINISHED,
}
AWARDED: Final = ("wo",)
KINDS: Final = {
    "goal": EventKind.GOAL,
    "own-goal": EventKind.OWN_GOAL,
    "penalty-goal": EventKind.PENALTY,
    "yellow-card": EventKind.YELLOW,
    "red-card": EventKind.RED,
    "sub": EventKind.SUBSTITUTION,
}
STATISTICS: Final = {
    "possession": "possession",
    "shots": "shots",
    "shots-on-target": "shots_on_target",
    "corners": "corners",
    "fouls": "fouls",
    "offsides": "offsides",
    "passes": "passes",
}


def kickoff(time: LexborNode) -> Any:
    said = time.attributes.get("datetime")
    if said is None:
        return None
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        return said


def score(output: LexborNode) -> Any:
    said = {side: output.attributes.get(f"data-{side}") for side in ("home", "away")}
    return None if set(said.values()) == {None} else said
