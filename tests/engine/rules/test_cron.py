"""When a schedule ticks: cron lines in time zones, over changes of clocks, and what is no line."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma import BadInput
from retoma.engine.rules.cron import Cron

SAO_PAULO = "America/Sao_Paulo"
NEW_YORK = "America/New_York"


def ticks(line: str, zone: str, first: str, last: str) -> list[str]:
    """In the local time of that zone."""
    local = ZoneInfo(zone)
    begin, end = (datetime.fromisoformat(at).replace(tzinfo=local) for at in (first, last))
    found = Cron(line, zone).between(begin, end)
    return [f"{at.astimezone(local):%m-%d %H:%M %Z}" for at in found]


def test_a_line_is_read_in_its_own_zone():
    nightly = Cron("0 3 * * *", SAO_PAULO)

    assert datetime(2026, 11, 15, 6, tzinfo=UTC) == nightly.after(
        datetime(2026, 11, 15, 5, 59, 59, tzinfo=UTC)
    )
    assert datetime(2026, 11, 16, 6, tzinfo=UTC) == nightly.after(
        datetime(2026, 11, 15, 6, tzinfo=UTC)
    )


def test_a_tick_in_the_hour_that_is_left_out_comes_right_after_it():
    assert ["03-07 02:30 EST", "03-08 03:00 EDT", "03-09 02:30 EDT"] == ticks(
        "30 2 * * *", NEW_YORK, "2026-03-07 00:00", "2026-03-09 12:00"
    )
    # São Paulo once changed at midnight: the day began at one.
    assert ["11-03 00:00 -03", "11-04 01:00 -02", "11-05 00:00 -02"] == ticks(
        "0 0 * * *", SAO_PAULO, "2018-11-02 12:00", "2018-11-05 12:00"
    )


def test_a_tick_in_the_hour_that_comes_twice_comes_once():
    assert ["10-31 01:30 EDT", "11-01 01:30 EDT", "11-02 01:30 EST"] == ticks(
        "30 1 * * *", NEW_YORK, "2026-10-31 00:00", "2026-11-02 12:00"
    )


def test_what_ticks_every_hour_ticks_in_every_hour_there_is():
    spring = ticks("0 * * * *", NEW_YORK, "2026-03-08 00:30", "2026-03-08 04:00")
    autumn = ticks("0 * * * *", NEW_YORK, "2026-11-01 00:30", "2026-11-01 02:00")

    assert ["03-08 01:00 EST", "03-08 03:00 EDT", "03-08 04:00 EDT"] == spring
    assert ["11-01 01:00 EDT", "11-01 01:00 EST", "11-01 02:00 EST"] == autumn


LINES = ["* * * * *", "*/7 * * * *", "30 2 * * *", "15 1 * * *", "0 3 * * 1", "0 0 1 * *"]


@given(
    line=st.sampled_from(LINES),
    zone=st.sampled_from([SAO_PAULO, NEW_YORK, "Europe/Lisbon", "UTC", "Asia/Kolkata"]),
    at=st.integers(0, 11 * 366 * 24 * 3600).map(
        lambda seconds: datetime(2016, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    ),
)
def test_ticks_go_forward_and_none_is_left_out_from_wherever_one_looks(line, zone, at):
    cron = Cron(line, zone)

    first, second = (following := cron.after(at)), cron.after(following)
    halfway = first + (second - first) / 2

    assert at < first < second
    assert first == cron.after(first - timedelta(seconds=1))
    assert second == cron.after(halfway)
    assert [first, second] == cron.between(at, second)
    assert cron.until(first) == first


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 0 3 * * *", "6 fields"),
        ("@daily", "1 fields"),
        ("61 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * 9", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("5-1 * * * *", "bad minute"),
        ("nonsense at all my friend", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 1 * *\0", "bad day-of-week"),
        (None, "0 fields"),
    ],
)
def test_what_is_no_cron_line_is_refused_with_what_is_wrong(line, complaint):
    with pytest.raises(BadInput, match=complaint):
        Cron(line, SAO_PAULO)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "America", None, "\0"])
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(BadInput, match="no time zone is called"):
        Cron("0 3 * * *", zone)
