"""`retoma batches`: how far work that was submitted together is."""

import asyncio
import json

from tests.cli.conftest import with_app


def test_the_list_and_the_page_count_every_state(worked, verb):
    (listed,) = json.loads(verb("batches", "list", "--json").out)
    shown = json.loads(verb("batches", "show", "1", "--json").out)

    assert {**listed, "codes": {"no_three": 1}} == shown
    assert ("five", 5, 5, True) == (
        shown["name"],
        shown["total"],
        shown["ended"],
        shown["finished"],
    )
    assert {"done": 4, "dead": 1} == shown["counts"]
    assert "4 done · 1 dead" in verb("batches", "list").out
    assert "5 of 5 ended" in verb("batches", "show", "1").out


def test_watching_returns_when_the_batch_has_ended_and_fails_if_a_job_is_dead(worked, verb):
    said = verb("batches", "watch", "1")

    assert 1 == said.code
    assert "batch 1 has ended: 4 done · 1 dead" in said.out
    assert "retoma dead list --batch 1" in said.err


def test_watching_waits_for_the_last_job(url, verb):
    async def submit_and_watch(app):
        await app.submit_many("story", [1, 2], name="two")
        watching = asyncio.to_thread(verb, "batches", "watch", "1", "--json")
        said, _ = await asyncio.gather(watching, app.run(until_idle=True))
        return said

    said = with_app(url, submit_and_watch)

    assert 0 == said.code
    assert {"done": 2} == json.loads(said.out)["counts"]


def test_an_unknown_batch_is_refused(worked, verb):
    for each in ("show", "watch"):
        said = verb("batches", each, "77")

        assert (1, "") == (said.code, said.out)
        assert "there is no batch 77" in said.err


# --- steering


def parked_and_waiting(url):
    async def prepared(app):
        await app.submit_many("shy", [1, 2], name="shy")
        await app.run(until_idle=True)
        await app.submit_many("story", [1, 2, 4], name="open")

    with_app(url, prepared)


def test_e12_resume_lets_parked_jobs_go_on_and_a_finished_batch_refuses(url, verb):
    parked_and_waiting(url)

    first = verb("batches", "resume", "1")
    again = json.loads(verb("batches", "resume", "1", "--json").out)
    verb("batches", "cancel", "1")
    refused = verb("batches", "resume", "1")

    assert (0, "batch 1: 2 parked jobs go on\n") == (first.code, first.out)
    assert {"batch": 1, "jobs": 0} == again
    assert 1 == refused.code
    assert "has finished" in refused.err


def test_e12_retry_failed_takes_the_codes_it_is_given(worked, verb):
    none = verb("batches", "retry-failed", "1", "--code", "other")
    some = verb("batches", "retry-failed", "1", "--code", "other", "--code", "no_three")

    assert "batch 1: 0 dead jobs wait again" in none.out
    assert "batch 1: 1 dead jobs wait again; committed steps are kept" in some.out
    assert {"waiting": 1, "done": 4} == json.loads(verb("batches", "show", "1", "--json").out)[
        "counts"
    ]


def test_again_runs_everything_that_has_ended(worked, verb):
    said = json.loads(verb("batches", "again", "1", "--fresh", "--json").out)

    assert {"batch": 1, "jobs": 5} == said


def test_skip_needs_to_know_what(worked, verb):
    unclear = verb("batches", "skip", "1", "--why", "known")
    told = verb("batches", "skip", "1", "--why", "known", "--job", "3")

    assert 2 == unclear.code
    assert "say what to skip" in unclear.err
    assert "batch 1: 1 jobs are skipped" in told.out
    assert "known" in json.loads(verb("jobs", "explain", "3", "--json").out)["why"]


def test_pause_and_unpause_say_whether_they_changed_anything(url, verb):
    parked_and_waiting(url)

    said = [verb("batches", word, "2").out for word in ("pause", "pause", "unpause", "unpause")]
    held = json.loads(verb("batches", "pause", "2", "--json").out)
    explained = verb("jobs", "explain", "3").out

    assert [
        "batch 2 is paused: what runs ends, nothing more is started\n",
        "batch 2 was paused already\n",
        "batch 2 goes on\n",
        "batch 2 was not paused\n",
    ] == said
    assert {"batch": 2, "paused": True, "changed": True} == held
    assert "`retoma batches unpause 2`" in explained


def test_cancel_ends_what_is_open(url, verb):
    parked_and_waiting(url)

    said = verb("batches", "cancel", "2")

    assert "batch 2: 3 jobs are canceled" in said.out
    assert {"canceled": 3} == json.loads(verb("batches", "show", "2", "--json").out)["counts"]


def test_a_verb_on_an_unknown_batch_is_refused(worked, verb):
    for words in (("resume",), ("retry-failed",), ("again",), ("pause",), ("cancel",)):
        said = verb("batches", *words, "77")

        assert (1, "") == (said.code, said.out)
        assert "there is no batch 77" in said.err
