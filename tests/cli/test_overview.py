"""The questions about all jobs at once, and the timeline of one."""

import json
import signal
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import PATIENCE, started, with_app
from tests.engine import aids


def held(url):
    """A runner that says it lives, and holds two of three jobs."""

    async def prepared(app):
        database = await app.database()
        await aids.boot(database, "ana")
        await aids.submit(database, 3)
        await aids.claim(database, "ana", slots=2)

    with_app(url, prepared)


def test_runners_show_slots_in_use_and_the_last_beat(url, verb):
    held(url)

    [told] = json.loads(verb("runners", "list", "--json").out)
    page = verb("runners", "list").out

    assert ("ana", "alive", 10, 2) == (
        told["name"],
        told["state"],
        told["slots"],
        told["held"],
    )
    assert "2/10" in page
    assert "work@1" in page


@pytest.mark.parametrize(("zone", "hours"), [(None, -3), ("Asia/Tokyo", 9)])
def test_times_in_a_table_are_by_the_houses_clock(url, verb, monkeypatch, zone, hours):
    held(url)
    if zone is not None:
        monkeypatch.setenv("RETOMA_TIMEZONE", zone)

    [told] = json.loads(verb("runners", "list", "--json").out)
    page = verb("runners", "list").out

    local = datetime.fromisoformat(told["beat_at"]) + timedelta(hours=hours)
    assert f"{local:%Y-%m-%d %H:%M:%S}" in page


def test_runners_that_are_gone_are_shown_on_demand(worked, verb):
    assert "no runner is alive" in verb("runners", "list").out
    assert [] == json.loads(verb("runners", "list", "--json").out)
    assert ["gone"] == [
        each["state"] for each in json.loads(verb("runners", "list", "--all", "--json").out)
    ]


def test_counts_by_kind_and_state(worked, verb):
    assert {"story": {"done": 4, "dead": 1}} == json.loads(verb("jobs", "counts", "--json").out)
    assert {} == json.loads(verb("jobs", "counts", "--batch", "9", "--json").out)
    assert "canceled" in verb("jobs", "counts").out


def test_the_funnel_tells_where_jobs_stand(url, verb):
    held(url)

    [stand] = json.loads(verb("jobs", "funnel", "--json").out)

    assert ("work", None, "running", 2) == (
        stand["kind"],
        stand["checkpoint"],
        stand["state"],
        stand["jobs"],
    )
    assert "running" in verb("jobs", "funnel").out
    assert "nothing runs" in verb("jobs", "funnel", "--kind", "other").out


def test_stuck_is_a_list_of_what_does_not_move(url, verb):
    held(url)

    assert "everything that runs moves" in verb("jobs", "stuck").out
    stuck = json.loads(verb("jobs", "stuck", "--quiet", "0.001s", "--json").out)
    assert [(1, "ana"), (2, "ana")] == [(each["job"], each["runner"]) for each in stuck]
    assert "no progress" in verb("jobs", "stuck", "--quiet", "0.001s").out


@pytest.mark.parametrize(
    "words",
    [("stuck", "--quiet", "soon"), ("pace", "--last", "99d"), ("stuck", "--limit", "0")],
)
def test_a_strange_question_is_refused(worked, verb, words):
    assert 2 == verb("jobs", *words).code


def test_the_pace_has_minutes_and_percentiles(worked, verb):
    told = json.loads(verb("jobs", "pace", "--json").out)

    assert 4 == sum(each["jobs"] for each in told["minutes"] if each["state"] == "done")
    assert [("story", 4)] == [(each["kind"], each["attempts"]) for each in told["durations"]]
    assert "p95" in verb("jobs", "pace").out
    assert "nothing moved" in verb("jobs", "pace", "--kind", "other").out


def test_the_timeline_is_a_line_for_each_event(worked, verb):
    lines = verb("jobs", "logs", "3").out.splitlines()
    told = json.loads(verb("jobs", "logs", "3", "--json").out)

    assert ["submitted", "claimed", "step_saved", "buried"] == [each["type"] for each in told]
    assert 4 == len(lines)
    assert "#4 e1 buried" in lines[-1]
    assert "three cannot be done" in lines[-1]
    assert 1 == verb("jobs", "logs", "99").code


def test_followed_to_its_end_every_event_is_a_json_line(worked, verb):
    said = verb("jobs", "logs", "3", "--follow", "--json")

    assert 0 == said.code
    assert [1, 2, 3, 4] == [json.loads(line)["seq"] for line in said.out.splitlines()]


def test_ctrl_c_ends_the_following_and_says_that_the_job_goes_on(url):
    held(url)
    following = started("jobs", "logs", "1", "--follow", folder=Path.cwd())
    assert following.stdout is not None

    first = following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=PATIENCE)

    assert "submitted" in first
    assert 130 == following.returncode
    assert "retoma: the job goes on without being followed" in err
