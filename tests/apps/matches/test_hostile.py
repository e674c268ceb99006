"""Show 2: a round site that does everything wrong at once, then is mended piece by piece, then whole.

Layouts change in mid-round, 503s, a slow drip, a missing and a doubled match, another round's page, a wrong
score, letters of another charset, a page of 20 MB. At no moment is the round complete before it is.
"""

from typing import Any

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Layout, Odd
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house, stored_as
from tests.apps.matches.test_identity import failed_again, gate

PAGES = (
    Odd.OTHER_ROUND,
    Odd.UNEQUAL,
    Odd.MOJIBAKE,
    Odd.HUGE,
    Odd.OTHER,
    Odd.OTHER_SEASON,
)


def hostile(there: House) -> None:
    """All at once: six pages, two addresses that fail, one that drips; the round itself is short."""
    odd, [away, slow, unlisted, doubled] = there.truth()[:6], there.truth()[6:]
    for match, how in zip(odd, PAGES, strict=True):
        there.site.world.make_odd(LEAGUE, match.key, how)
    there.ill(away.path, 503)
    there.site.world.make_odd(LEAGUE, slow.key, Odd.DRIP)
    there.site.world.make_odd(LEAGUE, unlisted.key, Odd.UNLISTED)
    there.site.world.make_odd(LEAGUE, doubled.key, Odd.LISTED_TWICE)


async def never_complete(there: House, run: int) -> dict[str, Any]:
    """Neither the view nor the gate nor whoever waits says so, and nothing is stored that is not true."""
    told = await there.seen(run)
    assert not told["complete"], told
    assert told["completed_at"] is None
    assert [] == await there.rows("SELECT 1 FROM jobs WHERE kind = 'matches.complete'")
    assert [] == await there.rows(PARTIAL)
    truth = {match.key: match for match in there.truth()}
    for key, stored in (await there.matches()).items():
        stored_as(truth[key], stored)
    return told


async def test_a_hostile_round_is_complete_when_all_of_it_is_there_and_not_before(database_url):
    """R1 R3 R4."""
    async with house(database_url) as there:
        hostile(there)
        run = await there.scraped()
        told = await never_complete(there, run)
        assert ("FAILED", None, "SCHEMA_INVALID") == (
            told["status"],
            told["expected"],
            told["error_code"],
        )

        doubled = there.truth()[9]
        there.site.world.make_odd(LEAGUE, doubled.key, None)
        assert 1 == await failed_again(there, run)
        told = await never_complete(there, run)
        assert ("FAILED", "ROUND_SHORT", 10, 9, 1) == tuple(
            told[name] for name in ("status", "error_code", "expected", "listed", "stored")
        )
        tasks = await there.tasks(run)
        assert {"FAILED": 8, "DONE": 1} == await there.statuses(run)
        assert all(each["error"]["code"] for each in tasks.values() if not each["partida_id"])

        there.site.world.draw(Layout.MODERN)  # in the middle of the round
        for match in (*there.truth()[:3], there.truth()[7]):
            there.site.world.make_odd(LEAGUE, match.key, None)
        there.site.box._faults.clear()
        assert 9 == await failed_again(there, run)
        await never_complete(there, run)
        assert 1 == (await there.seen(run))["stored"]
        await there.app.knobs.set("matches.layouts", "modern,classic", actor=WHO)
        assert 9 == await failed_again(there, run)
        told = await never_complete(there, run)
        assert 6 == told["stored"]
        assert ("ROUND_SHORT", 3) == (told["error_code"], told["failed"])

        there.site.world.draw(Layout.CLASSIC)  # and back
        for match in there.truth()[3:6]:
            there.site.world.make_odd(LEAGUE, match.key, None)
        assert 4 == await failed_again(there, run)
        told = await never_complete(there, run)
        assert (9, 10, 9) == (told["stored"], told["expected"], told["listed"])

        there.site.world.make_odd(LEAGUE, there.truth()[8].key, None)
        assert 1 == await failed_again(there, run)
        assert ("DONE", True, 10, 10) == await gate(there, run)
        for match in there.truth():
            stored_as(match, (await there.matches())[match.key])
        assert [(1,)] == await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'matches.complete' AND state = 'done'"
        )
        database = await there.app.database()
        assert {} == await database.read(store.runs.watch)
