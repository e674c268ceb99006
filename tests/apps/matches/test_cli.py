"""`retoma matches replay`: what was refused is read again, first to see, then to store."""

import json
from functools import partial

from retoma.sandbox.matches import Layout
from tests.apps import verbs
from tests.apps.matches.aids import LEAGUE, house
from tests.apps.verbs import verb

__all__ = ["verb"]  # the command line's own fixture, for this module too

typed = partial(verbs.typed, "matches")


async def test_a_replay_is_shown_first_and_applied_then(sqlite_url, verb, monkeypatch):
    async with house(sqlite_url) as there:
        monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)
        monkeypatch.setenv("RETOMA_MATCHES_URL", there.settings.matches_url)
        there.site.world.draw(Layout.MODERN, LEAGUE)
        run = await there.scraped()
        how = ("--code", "LAYOUT_CHANGED", "--layouts", "modern,classic")

        shown = await typed(verb, "replay", *how)
        assert (0, True) == (shown.code, "1 can be read, 0 were promoted" in shown.out), shown
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
        assert "1 were promoted" in done.out, done
        assert 10 == (await there.seen(run))["expected"]
        none = await typed(verb, "replay", *how)
        assert "0 pages read again" in none.out, none
