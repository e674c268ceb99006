"""`retoma batches`: how far work that was submitted together is."""

import asyncio
import json

from tests.cli.conftest import with_app


def test_the_list_and_the_page_count_every_state(worked, verb):
    (listed,) = json.loads(verb("batches", "list", "--json").out)
    shown = json.loads(verb("batches", "show", "1", "--json").out)

    assert listed == shown
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
    assert "retoma jobs list --state dead --batch 1" in said.err


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
