"""What follows a failure: another try of its phase, or the end of the mission."""

from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.ads.model import (
    COUNTED,
    ERRORS,
    Action,
    Error,
    Event,
    counted_in,
    tries_again,
)
from retoma.apps.ads.store.rows import SQL, tell
from retoma.engine.run.transaction import Transaction
from retoma.words import Language
from retoma.words.recall import tell_stored

UNWANTED: Final = "unwanted"
MESSAGE: Final = 2000  # characters of an error that are kept


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure."""

    code: str
    again: bool
    action: str


def failed(
    tx: Transaction,
    mission: str,
    code: str,
    message: str,
    event: Event,
    told: dict[str, Any],
    *,
    waits: bool = False,
) -> Verdict:
    """Another try of its phase, or the end of the mission with the code of a spent budget.

    `waits`: the other side has asked for time, which costs no try."""
    error = ERRORS[code]
    text = in_portuguese(message)
    tell_of_failure(tx, mission, code, text, event, told)
    if not _goes_on(tx, mission):
        return Verdict(code, again=False, action=UNWANTED)
    if waits:
        return Verdict(code, again=True, action=str(Action.WAIT))
    if error.action in (Action.WAIT, Action.OPERATOR):
        return Verdict(code, again=True, action=str(error.action))
    used = _used(tx, mission, error)
    if used < tries_again(error, tx.knob("ads.max_retries")):
        tx.run(
            SQL.count_retry, mission=mission, phase=str(error.phase), code=code, message=text
        )
        retry = {"attempt": used + 1, "error_code": code, "phase": str(error.phase)}
        tell(tx, Event.RETRY_TRIGGERED, retry, mission=mission)
        return Verdict(code, again=True, action=str(Action.RETRY))
    end = error.exhausted or code
    fail_mission(tx, mission, end, f"{code}: {text}")
    return Verdict(end, again=False, action=str(Action.FAIL))


def tell_of_failure(
    tx: Transaction, mission: str, code: str, message: str, event: Event, told: dict[str, Any]
) -> None:
    """A line of the log, and the last cause on the mission itself."""
    text = in_portuguese(message)
    tx.run(SQL.note_failure, mission=mission, code=code, message=text)
    tell(tx, event, {**told, "error_code": code, "error_message": text}, mission=mission)


def note_refusal(tx: Transaction, mission: str, code: str, message: str) -> None:
    """Why it waits for a person, on the mission itself: no failure of the document's."""
    tx.run(SQL.note_failure, mission=mission, code=code, message=in_portuguese(message))


def _goes_on(tx: Transaction, mission: str) -> bool:
    """What was canceled meanwhile is never tried again."""
    return bool(tx.one(SQL.mission_goes_on, into=bool, mission=mission))


def _used(tx: Transaction, mission: str, error: Error) -> int:
    """How often the phase of this error was tried again."""
    spent = tx.one(SQL.phase_retries, mission=mission)
    by_phase = dict(zip(COUNTED, spent or (0, 0, 0), strict=True))
    return int(by_phase.get(counted_in(error.phase), 0))


def fail_mission(tx: Transaction, mission: str, code: str, message: str) -> None:
    text = in_portuguese(message)
    retries = tx.one(SQL.fail_mission, into=int, mission=mission, code=code, message=text)
    if retries is not None:
        told = {"error_code": code, "error_message": text, "retry_count": retries}
        tell(tx, Event.MISSION_FAILED, told, mission=mission)


def in_portuguese(message: str) -> str:
    """A message as a mission keeps it: in the language of the document, whose readers see it in SQL.

    A page tells it in the language of its reader (`retoma.words.recall`)."""
    return tell_stored(message, Language.PT_BR)[:MESSAGE]
