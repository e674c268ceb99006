"""The way of a quote, as the document's diagram has it: what it passed, where it stands, what is ahead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from retoma.apps.quotes.model import PICTURE, ProcessingCheckpoint, QuoteKind, QuoteStatus
from retoma.engine.query import StepSeen

At = ProcessingCheckpoint


class Branch(StrEnum):
    """Which way it goes after the analysis."""

    VEHICLE = "vehicle"
    PRODUCT = "product"


LANES: Final[Mapping[ProcessingCheckpoint, Branch]] = {
    At.FIPE_SEARCH: Branch.VEHICLE,
    **dict.fromkeys(
        (
            *(At.SHOPPING_SEARCH_START, At.SHOPPING_SEARCH_DONE, At.PRICE_EXTRACTION_START),
            *(At.PRICE_EXTRACTION_PROGRESS, At.PRICE_EXTRACTION_DONE),
        ),
        Branch.PRODUCT,
    ),
}
STANDS: Final = {
    QuoteStatus.PENDING: "ahead",
    QuoteStatus.PROCESSING: "begun",
    QuoteStatus.DONE: "saved",
    QuoteStatus.ERROR: "failed",
    QuoteStatus.CANCELED: "failed",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """One checkpoint on the way."""

    name: ProcessingCheckpoint
    look: str  # saved, begun, failed or ahead
    here: bool
    lane: Branch | None  # of which branch, while both are open
    at: datetime | None
    times: int  # how often it was saved: once for each page


def branch_of(
    kind: QuoteKind | str, checkpoint: ProcessingCheckpoint | None, analysis: Any
) -> Branch | None:
    """By what the analysis said, else by where it stands, else by what was asked; None: open."""
    if isinstance(analysis, dict) and "tool" in analysis:
        return Branch.VEHICLE if analysis["tool"] == Branch.VEHICLE else Branch.PRODUCT
    if checkpoint is not None and checkpoint in LANES:
        return LANES[checkpoint]
    return None if kind == QuoteKind.AUTO else Branch(kind)


def trail_of(
    status: QuoteStatus,
    checkpoint: ProcessingCheckpoint | None,
    branch: Branch | None,
    *,
    began: datetime | None,
    ended: datetime | None,
    steps: Sequence[StepSeen],
) -> list[Stop]:
    """The checkpoints of its branch in their order; of both, while nobody knows which it takes."""
    times: dict[str, list[datetime]] = {}
    for step in steps:
        if step.saved_at is not None and not step.key.startswith(PICTURE):
            times.setdefault(step.name, []).append(step.saved_at)
    if began is not None:
        times[At.INIT] = [began]
    if ended is not None and status is QuoteStatus.DONE:
        times[At.COMPLETED] = [ended]
    way = [each for each in At if branch is None or LANES.get(each, branch) is branch]
    reached = way.index(checkpoint) if checkpoint in way else -1
    looks = ("saved", STANDS[status], "ahead")
    return [
        Stop(
            name,
            looks[(n >= reached) + (n > reached)],
            n == reached,
            LANES.get(name) if branch is None else None,
            max(times.get(name, ()), default=None),
            len(times.get(name, ())),
        )
        for n, name in enumerate(way)
    ]
