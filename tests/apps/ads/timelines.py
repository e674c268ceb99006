"""What the timelines of missions prove (M4, M5, M6, M11): each line follows from the one before it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Line = tuple[str, Mapping[str, Any]]  # an event, and what is told of it
Timelines = Mapping[str, Sequence[Line]]  # by mission

# What may come after what. A line that is not in the table says nothing about the order of the others.
NEXT: Mapping[str, tuple[str, ...]] = {
    "": ("mission_queued",),
    "mission_queued": ("mission_assigned", "mission_canceled"),
    "mission_assigned": ("scrape_started", "scrape_failed", "mission_canceled"),
    "scrape_started": (
        *("scrape_completed", "scrape_empty", "scrape_failed"),
        *("mission_canceled", "scrape_started"),
    ),
    "scrape_failed": (
        *("retry_triggered", "mission_assigned", "mission_failed"),
        "mission_canceled",
    ),
    "scrape_empty": ("mission_completed",),
    "scrape_completed": ("writer_started", "writer_failed", "mission_canceled"),
    "retry_triggered": (
        *("mission_assigned", "writer_started", "writer_failed"),
        "mission_canceled",
    ),
    "writer_started": ("writer_completed", "writer_failed", "mission_canceled"),
    "writer_failed": (
        *("retry_triggered", "writer_started", "writer_failed"),
        *("mission_failed", "mission_canceled"),
    ),
    "writer_completed": ("mission_completed",),
    # A writer that was begun is followed to its end (§5.4); nothing else is begun.
    "mission_canceled": ("writer_completed", "writer_failed", "mission_queued"),
    "mission_completed": ("mission_queued",),
    "mission_failed": ("mission_queued",),
}
ENDS = ("mission_completed", "mission_failed", "mission_canceled")
WAITS = ("ERROR501", "ERROR502")  # never the end of a mission by themselves


def impossible(told: Timelines) -> list[str]:
    """M11: a line that cannot follow the one before; M5: anything begun after a cancel."""
    found = []
    for mission, lines in told.items():
        before, canceled = "", False
        for event, _ in lines:
            if event not in NEXT:
                continue
            followed = NEXT["mission_canceled"] if canceled else NEXT[before]
            if event not in followed and not (canceled and event == before):
                found.append(f"{mission}: {event} after {before or 'nothing'}")
            canceled = (canceled or event == "mission_canceled") and event != "mission_queued"
            before = event
        if not canceled and before not in ENDS:
            found.append(f"{mission}: its timeline ends with {before}")
    return found


def overspent(told: Timelines, **budgets: int) -> list[str]:
    """M4: more tries of a phase than its budget has, or a wait that ended a mission."""
    found = []
    for mission, lines in told.items():
        tries: Counter[str] = Counter()
        for event, details in lines:
            if event == "mission_queued":
                tries.clear()
            elif event == "retry_triggered":
                tries[str(details["phase"])] += 1
            elif event == "mission_failed" and details["error_code"] in WAITS:
                found.append(f"{mission}: failed of {details['error_code']}, which only waits")
        found += [
            f"{mission}: {n} retries of {phase}"
            for phase, n in tries.items()
            if n > budgets.get(phase, 0)
        ]
    return found


def miscounted(told: Timelines) -> list[str]:
    """M6: what was found is what was stored and what could not be."""
    found = []
    for mission, lines in told.items():
        for event, details in lines:
            if event != "mission_completed":
                continue
            kept = (details["success_count"] or 0) + (details["failed_count"] or 0)
            if details["ads_count"] != kept:
                found.append(f"{mission}: {details['ads_count']} ads found, {kept} handled")
    return found
