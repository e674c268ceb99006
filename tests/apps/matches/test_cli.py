"""`retoma matches …`: rounds are begun and tried again; what was refused is read again."""

import json
import re
from functools import partial

from retoma.apps.matches.sandbox import Layout, Odd
from tests.apps import verbs
from tests.apps.matches.aids import LEAGUE, house
from tests.apps.verbs import verb

__all__ = ["verb"]  # the command line's own fixture, for this module too

typed, said = partial(verbs.typed, "matches"), partial(verbs.said, "matches")


async def test_a_replay_is_shown_first_and_applied_then(sqlite_url, verb, monkeypatch):
    async with house(sqlite_url) as there:
        monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
        monkeypatch.setenv("RETOMA_MATCHES_URL", there.settings.matches_url)
        there.site.world.draw(Layout.MODERN, LEAGUE)
        run = await there.scraped()
        how = ("--code", "LAYOUT_CHANGED", "--layouts", "modern,classic")

        shown = await typed(verb, "replay", *how)
        assert (0, True) == (
            shown.code,
            "rounds whose matches would be looked for: 1" in " ".join(shown.out.split()),
        ), shown
        [page] = json.loads((await typed(verb, "replay", *how, "--json")).out)
        assert ("round", "discovered", 10) == (
            page["what"],
            page["change"],
            len(page["after"]["matches"]),
        )
        refused = await typed(verb, "replay", "--layouts", "cubist")
        assert (2, True) == (refused.code, "cubist" in refused.err), refused
        assert "FAILED" == (await there.seen(run))["status"]

        done = await typed(verb, "replay", *how, "--apply")
        assert "stored or begun: 1" in " ".join(done.out.split()), done
        assert 10 == (await there.seen(run))["expected"]
        none = await typed(verb, "replay", *how)
        assert "pages read again: 0" in none.out, none


async def test_a_round_is_begun_once_looked_at_and_tried_again(sqlite_url, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
    async with house(sqlite_url) as there:
        [broken, *_] = there.truth(1)
        there.site.world.make_odd(LEAGUE, broken.key, Odd.SCORE_100)
        assert "No round was scraped yet." in (await typed(verb, "status")).out
        which = (LEAGUE, "2026", "1")
        begun = await typed(verb, "scrape", *which, "--to-round", "2")
        assert (0, True) == (begun.code, "scrape 2: brasileirao 2026, round 2" in begun.out)
        assert "which is open already" in (await typed(verb, "scrape", *which)).out
        await there.drained()

        shown = (await typed(verb, "status", "1")).out
        assert re.search(rf"{broken.key} +FAILED +1 +SCHEMA_INVALID", shown), shown
        told = await said(verb, "status", "1")
        assert (10, 9, 1, False) == (
            *(told[name] for name in ("expected", "stored", "failed", "complete")),
        )
        assert 10 == len(told["tasks"])
        assert [2, 1] == [each["id"] for each in await said(verb, "status")]

        there.site.world.make_odd(LEAGUE, broken.key, None)
        again = [await said(verb, "retry-failed", "--scrape", "1") for _ in range(2)]
        assert [1, 0] == [len(each["jobs"]) for each in again]
        await there.drained()
        missing = await typed(verb, "retry-missing", *which)
        assert "scrape 1: missing matches tried again: 0 of 0" in missing.out, missing
        assert not (await said(verb, "retry-missing", *which))["looked_again"]
        assert (await said(verb, "status", "1"))["complete"]


async def test_what_is_no_round_is_refused(sqlite_url, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
    async with house(sqlite_url):
        refused = {
            "the leagues are": ("scrape", "serie-z", "2026", "1"),
            "has the rounds 1 to 38": ("scrape", LEAGUE, "2026", "39"),
            "a range of rounds goes up": ("scrape", LEAGUE, "2026", "5", "--to-round", "2"),
            "there is no scrape 9": ("status", "9"),
        }
        for why, words in refused.items():
            done = await typed(verb, *words)
            assert (True, True) == (0 != done.code, why in done.err), (words, done)
        assert [] == await said(verb, "status")
