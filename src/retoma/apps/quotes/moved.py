"""What moved code has said of a quote: as steps whose keys are the face's own, never a story's.

`face/000003` is what was saved the third time; `face/000003/claude_payload_json` what was paid for by then.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from retoma.apps.quotes.model import ProcessingCheckpoint
from retoma.codec import encode
from retoma.engine.rules.job import SavedStep

FACE: Final = "face/"
TESTED: Final = "tested_products"


class Paid(Protocol):
    """What may have been paid for before."""

    claude_payload_json: Any
    google_shopping_response_json: Any
    resume_data: dict[str, Any] | None


def key(number: int, column: str | None = None) -> str:
    """In the order of keys is the order of saving."""
    return f"{FACE}{number:06d}" + (f"/{column}" if column else "")


def last_saved(steps: Iterable[SavedStep]) -> int:
    """How often a face has saved."""
    mine = [each.id.key for each in steps if each.id.key.startswith(FACE)]
    return max((int(each.split("/")[1]) for each in mine), default=0)


def reached(
    steps: Sequence[SavedStep], checkpoint: str | None, paid: Paid
) -> ProcessingCheckpoint | None:
    """Where to go on from: as it was said, else as the document reads it off what is there."""
    if steps and checkpoint is not None:
        return ProcessingCheckpoint(checkpoint)
    if (paid.resume_data or {}).get(TESTED):
        return ProcessingCheckpoint.PRICE_EXTRACTION_PROGRESS
    if paid.google_shopping_response_json is not None:
        return ProcessingCheckpoint.SHOPPING_SEARCH_DONE
    if paid.claude_payload_json is not None:
        return ProcessingCheckpoint.AI_ANALYSIS_DONE
    return None


def merged(
    before: Mapping[str, Any] | None, now: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """What is named now holds; of what was tested nothing is ever lost (H-16)."""
    if not before and not now:
        return None
    both = {**(before or {}), **(now or {})}
    tested = [_tested(before), _tested(now)]
    if any(tested):
        once = {encode(each): each for each in (*tested[0], *tested[1])}
        both[TESTED] = list(once.values())
    return both


def _tested(data: Mapping[str, Any] | None) -> list[Any]:
    found = (data or {}).get(TESTED)
    return found if isinstance(found, list) else []
