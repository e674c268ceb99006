"""`retoma jobs`: what it shows is what the database says, and what it refuses it refuses clearly."""

import json

import pytest

from tests.cli.conftest import batch_at_work, with_app


def test_the_list_is_newest_first_and_says_how_to_go_on(worked, verb):
    said = verb("jobs", "list", "--limit", "2")

    assert 0 == said.code
    assert ["5", "4"] == [line.split()[0] for line in said.out.splitlines()[1:3]]
    assert "--before 4" in said.out


def test_the_list_can_be_narrowed(worked, verb):
    dead = json.loads(verb("jobs", "list", "--state", "dead", "--json").out)
    of_batch = json.loads(verb("jobs", "list", "--batch", "1", "--before", "3", "--json").out)
    of_no_kind = json.loads(verb("jobs", "list", "--kind", "other", "--json").out)

    assert [(3, "permanent", "no_three", 3)] == [
        (job["id"], job["reason"], job["code"], job["payload"]) for job in dead
    ]
    assert [2, 1] == [job["id"] for job in of_batch]
    assert [] == of_no_kind


def test_show_tells_everything_of_a_job(worked, verb):
    told = json.loads(verb("jobs", "show", "3", "--json").out)
    page = verb("jobs", "show", "3").out

    assert "dead" == told["state"]
    assert [("double", "6")] == [(step["name"], step["value"]) for step in told["steps"]]
    assert ["failed"] == [attempt["ended"] for attempt in told["attempts"]]
    assert ["submitted", "claimed", "step_saved", "buried"] == [
        event["type"] for event in told["events"]
    ]
    assert all(word in page for word in ("no_three", "double", "buried"))


def test_explain_says_it_in_one_sentence(worked, verb):
    said = verb("jobs", "explain", "3")
    document = json.loads(verb("jobs", "explain", "3", "--json").out)

    assert 1 == len(said.out.splitlines())
    assert "three cannot be done" in said.out
    assert {"job": 3, "why": said.out.strip()} == document


def test_retry_opens_the_next_generation_and_keeps_steps_unless_told_otherwise(worked, verb):
    kept = verb("jobs", "retry", "3")
    fresh = json.loads(verb("jobs", "retry", "1", "--fresh", "--json").out)

    assert 0 == kept.code
    assert "generation 2; committed steps are kept" in kept.out
    assert ("waiting", 2) == (fresh["state"], fresh["generation"])
    events = with_app(worked, lambda app: app.events(3))
    assert ("again", "cli") == (events[-1].type, events[-1].actor)


def test_cancel_ends_a_waiting_job(worked, verb):
    verb("jobs", "retry", "3")

    said = verb("jobs", "cancel", "3")

    assert (0, "job 3 is canceled\n") == (said.code, said.out)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("jobs", "show", "99"), 1, "99"),
        (("jobs", "explain", "99"), 1, "99"),
        (("jobs", "retry", "99"), 1, "99"),
        (("jobs", "cancel", "99"), 1, "99"),
        (("jobs", "cancel", "1"), 1, "done"),
        (("jobs", "show", "abc"), 2, "'ID'"),
        (("jobs", "show", "0"), 2, "'ID'"),
        (("jobs", "show", str(10**30)), 2, "'ID'"),
        (("jobs", "show"), 2, "ID"),
        (("jobs", "list", "--limit", "-1"), 2, "limit"),
        (("jobs", "list", "--limit", "100000"), 2, "limit"),
        (("jobs", "list", "--state", "sleeping"), 2, "waiting, running"),
        (("jobs", "list", "--batch", "x"), 2, "batch"),
        (("jobs", "dance"), 2, "dance"),
        (("dance",), 2, "dance"),
        (("jobs", "list", "--database", "mysql://there/x"), 2, "mysql is no database"),
        (("jobs", "list", "--database", "nothing"), 2, "without a scheme"),
    ],
)
def test_bad_input_is_refused_in_words_and_changes_nothing(
    worked, verb, words, code, complaint
):
    said = verb(*words)

    assert code == said.code
    assert complaint in said.err
    assert "" == said.out
    assert "Traceback" not in said.err


def test_asking_makes_no_database(url, tmp_path, verb):
    said = verb("jobs", "list")

    assert 69 == said.code
    assert "there is no database" in said.err
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_is_not_ours_is_refused_and_left_as_it_was(url, tmp_path, verb):
    file = tmp_path / "work.db"
    file.write_bytes(b"dear diary, " * 400)

    said = verb("jobs", "list")

    assert 1 == said.code
    assert 1 == len(said.err.splitlines())
    assert b"dear diary, " * 400 == file.read_bytes()


def test_an_empty_list_says_so(url, verb):
    verb("db", "upgrade")

    assert "no such jobs\n" == verb("jobs", "list").out
    assert [] == json.loads(verb("jobs", "list", "--json").out)
    assert "no batches\n" == verb("batches", "list").out


async def awkward_job(app):
    await app.submit_many("note", ["[red]:smile:\x1b[2J[/nope]"], name="[red]lote[/nope]")


def test_what_came_from_outside_is_shown_as_it_is_and_steers_no_terminal(url, verb):
    with_app(url, awkward_job)

    for words in (("jobs", "show", "1"), ("jobs", "list"), ("batches", "list")):
        assert "\x1b" not in verb(*words).out
    assert r"[red]:smile:\x1b[2J[/nope]" in verb("jobs", "show", "1").out


def test_the_verbs_speak_to_both_databases(database_url, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_DATABASE_URL", database_url)
    with_app(database_url, batch_at_work)

    listed = json.loads(verb("jobs", "list", "--json").out)
    shown = json.loads(verb("jobs", "show", "3", "--json").out)
    again = verb("jobs", "retry", "3")

    assert [5, 4, 3, 2, 1] == [job["id"] for job in listed]
    assert {**shown, **listed[2]} == shown
    assert 0 == again.code
    assert "generation" in verb("jobs", "show", "3").out
    assert "4 done" in verb("batches", "show", "1").out
