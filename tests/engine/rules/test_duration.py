"""Lengths of time as people write them."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.engine.rules.duration import LONGEST, instant, seconds
from retoma.engine.rules.errors import BadInput


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0, 0.0),
        (90, 90.0),
        (0.25, 0.25),
        (timedelta(minutes=5), 300.0),
        ("5m", 300.0),
        ("90s", 90.0),
        ("1h30m", 5_400.0),
        ("250ms", 0.25),
        ("1.5h", 5_400.0),
        ("2d", 172_800.0),
        ("1h30m15s500ms", 5_415.5),
        ("0s", 0.0),
    ],
)
def test_a_length_of_time_is_told_in_seconds(written, meant):
    assert meant == seconds(written)


@pytest.mark.parametrize(
    "nonsense",
    [
        *("", "5", "m", "-5m", "5 m", "5M", "30m1h", "5m5m", "1e3s", ".5s", "5min", "\u0665s"),
        *(-1, float("nan"), float("inf"), 10**400, timedelta(seconds=-1), "9" * 400 + "d"),
        *(True, None, [5], b"5m"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_length_of_time_is_refused_in_words(nonsense):
    with pytest.raises(BadInput, match="length of time"):
        seconds(nonsense)


@pytest.mark.parametrize("far", [1e12, "36526d", timedelta(days=36_526), 10**10, LONGEST + 1])
def test_d6_a_length_of_more_than_a_hundred_years_is_refused(far):
    with pytest.raises(BadInput, match="at most 100 years"):
        seconds(far)


def test_a_hundred_years_are_a_length_of_time():
    assert 36_525 * 86_400.0 == seconds(LONGEST) == seconds("36525d")


def test_d6_what_cannot_be_shown_is_refused_all_the_same():
    for odd in (10**5_000, [Unshown()], Unshown()):
        with pytest.raises(BadInput, match="length of time"):
            seconds(odd)  # type: ignore[arg-type]


class Unshown:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [
        *(datetime(1969, 12, 31, tzinfo=UTC), datetime(2127, 1, 1, tzinfo=UTC)),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        *(datetime(2026, 1, 1), "2026-01-01", 1e12, Unshown()),  # noqa: DTZ001
    ],
    ids=lambda value: type(value).__name__,
)
def test_d6_an_instant_has_a_zone_and_is_from_1970_to_a_hundred_years_ahead(wrong):
    with pytest.raises(BadInput):
        instant(wrong, now=NOW.timestamp())


def test_an_instant_is_told_in_utc():
    there = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))

    assert NOW == instant(there, now=NOW.timestamp())
    assert UTC is instant(there).tzinfo
    assert datetime(9999, 1, 1, tzinfo=UTC) == instant(datetime(9999, 1, 1, tzinfo=UTC))


@given(st.text())
def test_any_text_is_either_a_length_of_time_or_refused(text):
    with suppress(BadInput):
        assert seconds(text) >= 0


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours, minutes, rest):
    written = f"{hours}h{minutes}m{rest}s"

    assert hours * 3_600 + minutes * 60 + rest == seconds(written)
