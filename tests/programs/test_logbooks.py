"""The reader of workers' logs sees what it is there to see."""

import json
from pathlib import Path

from tests.programs.logbooks import doubled, left, overworked, unrotated


def told(folder: Path, name: str, *lines: tuple[int, str, str, str]) -> Path:
    """Each: when, what happened, to which one, through which proxy (or for which day)."""
    file = folder / name
    with file.open("w") as out:
        for at, event, name, where in lines:
            about = (
                {"session": name, "proxy": where}
                if event.startswith("session")
                else {"job_id": name, "session": "s1", "filters": {"start": where}}
            )
            out.write(json.dumps({"at": f"2026-01-01T00:00:{at:02}", "event": event, **about}))
            out.write("\n")
    return file


def test_one_after_another_is_well(tmp_path):
    one = told(
        tmp_path,
        "one",
        (1, "session.began", "s1", "red"),
        (2, "scrape.began", "j1", "monday"),
        (3, "scrape.ended", "j1", "monday"),
        (4, "session.ended", "s1", "red"),
    )
    two = told(
        tmp_path,
        "two",
        (2, "session.began", "s2", "blue"),
        (5, "scrape.began", "j2", "monday"),
        (6, "session.began", "s3", "red"),
    )

    assert [] == doubled([one])
    assert ["session of worker 1: s3 beside ['s2']"] == doubled([one, two])
    assert ["s2", "j2", "s3"] == left([one, two])


def test_m1_m3_two_at_a_time_are_seen_over_many_workers(tmp_path):
    one = told(
        tmp_path,
        "one",
        (1, "session.began", "s1", "red"),
        (3, "scrape.began", "j1", "monday"),
        (4, "scrape.began", "j2", "tuesday"),
    )
    two = told(
        tmp_path, "two", (2, "session.began", "s2", "red"), (5, "scrape.began", "j3", "monday")
    )

    found = doubled([one, two])

    assert [
        "proxy red: s2 beside ['s1']",
        "scrape of worker 0: j2 beside ['j1']",
        'ads {"start": "monday"}: j3 beside [\'j1\']',
    ] == found


def test_m8_a_session_with_too_much_to_do_and_one_by_the_same_proxy_are_seen(tmp_path):
    one = told(
        tmp_path,
        "one",
        (1, "session.began", "s1", "red"),
        (2, "scrape.began", "j1", "monday"),
        (3, "scrape.ended", "j1", "monday"),
        (4, "scrape.began", "j2", "tuesday"),
        (5, "scrape.ended", "j2", "tuesday"),
        (6, "session.ended", "s1", "red"),
        (7, "session.began", "s2", "red"),
    )
    two = told(tmp_path, "two", (1, "session.began", "s3", "blue"))

    assert [] == overworked([one, two], limit=2)
    assert ["s1: 2 scrapes"] == overworked([one, two], limit=1)
    assert [] == unrotated([one, two], ["red", "blue"])  # the other one was taken
    assert ["s2: red again, ['green'] free"] == unrotated([one, two], ["red", "blue", "green"])
