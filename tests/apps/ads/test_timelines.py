"""The checkers of timelines see what they are there to see."""

import pytest

from tests.apps.ads.timelines import impossible, miscounted, overspent

BEGUN = ["mission_queued", "mission_assigned", "scrape_started"]
STORED = ["scrape_completed", "writer_started", "writer_completed", "mission_completed"]


def told(*events: str):
    return {"MIS-1": [(event, {}) for event in events]}


@pytest.mark.parametrize(
    "events",
    [
        [*BEGUN, *STORED],
        [*BEGUN, "scrape_progress", "scrape_empty", "mission_completed"],
        [*BEGUN, "scrape_failed", "retry_triggered", *BEGUN[1:], *STORED],
        [*BEGUN, "scrape_failed", "mission_failed", *BEGUN, *STORED],
        [*BEGUN, *STORED[:2], "mission_canceled", "writer_completed"],
    ],
)
def test_m11_what_can_be_is_well(events):
    assert [] == impossible(told(*events))


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([*BEGUN, "mission_completed"], "mission_completed after scrape_started"),
        (BEGUN, "its timeline ends with scrape_started"),
        ([*BEGUN, *STORED[:2]], "its timeline ends with writer_started"),
        (
            [*BEGUN, "mission_canceled", "scrape_started"],
            "scrape_started after mission_canceled",
        ),
        (
            [*BEGUN, "mission_canceled", "retry_triggered"],
            "retry_triggered after mission_canceled",
        ),
        (["mission_assigned", "mission_canceled"], "mission_assigned after nothing"),
    ],
)
def test_m5_m11_what_cannot_be_is_seen(events, problem):
    assert [f"MIS-1: {problem}"] == impossible(told(*events))


def test_m4_a_budget_that_was_overspent_and_a_wait_that_ended_a_mission_are_seen():
    again = ("retry_triggered", {"phase": "writer"})
    lines = {
        "MIS-1": [("mission_queued", {}), again, ("mission_queued", {}), again],
        "MIS-2": [again, again],
        "MIS-3": [("mission_failed", {"error_code": "ERROR502"})],
    }

    assert [
        "MIS-2: 2 retries of writer",
        "MIS-3: failed of ERROR502, which only waits",
    ] == overspent(lines, writer=1)


def test_m6_ads_that_nobody_counted_are_seen():
    well = {"ads_count": 5, "success_count": 4, "failed_count": 1}
    lines = {
        "MIS-1": [("mission_completed", well)],
        "MIS-2": [("mission_completed", {**well, "failed_count": 0})],
    }

    assert ["MIS-2: 5 ads found, 4 handled"] == miscounted(lines)
