"""`retoma dead`: a dead letter is found, read, tried again or put away."""

import json

import pytest


def test_a_dead_letter_is_listed_with_the_codes_and_read_with_its_error(worked, verb):
    listed = json.loads(verb("dead", "list", "--json").out)
    page = verb("dead", "list").out
    shown = json.loads(verb("dead", "show", "3", "--json").out)
    read = verb("dead", "show", "3").out

    assert [3] == [job["id"] for job in listed]
    assert "1 no_three" in page
    assert "three cannot be done" == shown["error"]["message"]
    assert "job 3: dead (permanent, code no_three): three cannot be done" in shown["why"]
    assert "three cannot be done" in read
    assert "payload" in read


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (("--kind", "story"), 1),
        (("--kind", "note"), 0),
        (("--batch", "1"), 1),
        (("--code", "no_three"), 1),
        (("--code", "other"), 0),
        (("--before", "3"), 0),
    ],
)
def test_the_list_can_be_narrowed(worked, verb, which, found):
    assert found == len(json.loads(verb("dead", "list", *which, "--json").out))


def test_a_dead_letter_is_tried_again_and_only_a_dead_one(worked, verb):
    again = verb("dead", "retry", "3")
    twice = verb("dead", "retry", "3")

    assert (0, "job 3 waits again, generation 2; committed steps are kept\n") == (
        again.code,
        again.out,
    )
    assert (1, "retoma: job 3 is waiting, not dead\n") == (twice.code, twice.err)
    assert "no dead letters" in verb("dead", "list").out


def test_a_discarded_letter_is_off_the_list_and_not_forgotten(worked, verb):
    away = verb("dead", "discard", "3", "--why", "known")

    assert (0, "job 3 is put away; its history is kept\n") == (away.code, away.out)
    assert [] == json.loads(verb("dead", "list", "--json").out)
    assert "dead" == json.loads(verb("jobs", "show", "3", "--json").out)["state"]


@pytest.mark.parametrize("word", ["show", "retry", "discard"])
def test_what_is_not_dead_or_not_there_is_refused(worked, verb, word):
    assert (1, 1) == (verb("dead", word, "1").code, verb("dead", word, "99").code)
    assert "done" == json.loads(verb("jobs", "show", "1", "--json").out)["state"]
