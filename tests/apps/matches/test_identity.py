"""Zero tolerance: a page is stored as the match that was found or as none, and nine of ten is not complete."""

from typing import Any

import pytest

from retoma.apps.matches import store
from retoma.apps.matches.model import SchemaInvalid
from retoma.apps.matches.sandbox import Odd
from retoma.apps.matches.store.tasks import Keeping
from retoma.db.rows import read_json
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import IllegalMove
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, House, house, stored_as
from tests.apps.matches.test_rounds import found, page_of, refs
from tests.engine.aids import eventually, running

# What else the page of a match may be of, and which of its values says so.
OTHERS = {
    Odd.OTHER: "key",
    Odd.OTHER_ROUND: "round",
    Odd.OTHER_SEASON: "season",
    Odd.OTHER_LEAGUE: "league",
    Odd.OTHER_DAY: "kickoff",
    Odd.MOJIBAKE: "stadium",
}
LEGITIMATE = (Odd.COACH, Odd.GOALLESS, Odd.WALKOVER, Odd.LATIN_1)


async def failed_again(there: House, run: int) -> int:
    """What has failed of a scrape is tried again: how many jobs."""
    tried = await there.app.write(lambda tx: store.runs.retry_failed(tx, run=run, actor=WHO))
    await there.drained()
    return len(tried)


async def gate(there: House, run: int) -> tuple[str, bool, int, int | None]:
    told = await there.seen(run)
    return told["status"], told["complete"], told["stored"], told["expected"]


async def test_a_page_of_anything_else_is_refused_with_its_evidence(database_url):
    """R3 R4: of another pair, round, season, league or day; nothing of it is stored in any round."""
    async with house(database_url) as there:
        odd = list(zip(there.truth(), OTHERS, strict=False))
        for match, how in odd:
            there.site.world.make_odd(LEAGUE, match.key, how)
        run = await there.scraped()

        assert ("FAILED", False, 4, 10) == await gate(there, run)
        tasks = await there.tasks(run)
        for match, how in odd:
            task = tasks[match.key]
            assert ("FAILED", "SCHEMA_INVALID", OTHERS[how]) == (
                task["status"],
                task["error_code"],
                task["error"]["path"],
            ), how
            assert await there.app.evidence.read(task["snapshot"])
        stored = await there.rows("SELECT DISTINCT league, season, round FROM partidas")
        assert [(LEAGUE, 2026, 1)] == stored
        assert [] == await there.rows("SELECT 1 FROM jobs WHERE kind = 'matches.complete'")

        assert 6 == await failed_again(there, run)
        assert ("FAILED", False, 4, 10) == await gate(there, run)
        for match, _ in odd:
            there.site.world.make_odd(LEAGUE, match.key, None)
        assert 6 == await failed_again(there, run)
        assert ("DONE", True, 10, 10) == await gate(there, run)
        for match in there.truth():
            stored_as(match, (await there.matches())[match.key])


async def test_what_is_legitimate_is_stored_however_rare_it_is(database_url):
    """A card for a coach, no goals and no events at all, a walkover, a charset that is declared."""
    async with house(database_url) as there:
        for match, how in zip(there.truth(), LEGITIMATE, strict=False):
            there.site.world.make_odd(LEAGUE, match.key, how)
        run = await there.scraped()

        assert ("DONE", True, 10, 10) == await gate(there, run)
        coach, goalless, walkover, latin_1, *_ = there.truth()
        stored = await there.matches()
        assert coach.coach("home") in [each["player"] for each in stored[coach.key]["events"]]
        assert (0, 0, []) == tuple(
            stored[goalless.key][name] for name in ("home_score", "away_score", "events")
        )
        assert (3, 0, True, None, {}) == tuple(
            stored[walkover.key][name]
            for name in ("home_score", "away_score", "walkover", "lineups", "statistics")
        )
        stored_as(latin_1, stored[latin_1.key])
        assert [] == await there.rows(PARTIAL)


async def test_nine_of_ten_is_not_complete_whatever_the_page_says(database_url):
    """R3: the league says how many matches a round has; the nine are stored, and the gate stays shut."""
    async with house(database_url) as there:
        missing = there.truth()[4]
        there.site.world.make_odd(LEAGUE, missing.key, Odd.UNLISTED)
        run = await there.scraped()

        assert ("FAILED", False, 9, 10) == await gate(there, run)
        told = await there.seen(run)
        assert ("ROUND_SHORT", "matches", 9) == (
            told["error_code"],
            told["error"]["path"],
            told["listed"],
        )
        assert await there.app.evidence.read(told["snapshot"])
        assert [] == await there.rows("SELECT 1 FROM jobs WHERE kind = 'matches.complete'")
        alerts = await (await there.app.database()).read(store.runs.watch)
        assert [f"RoundShort {LEAGUE} matches"] == list(alerts)
        [reread] = await there.replayed("ROUND_SHORT", apply=True)
        assert ("refused", False) == (reread.change, reread.promoted)

        assert 1 == await failed_again(there, run)
        assert ("FAILED", False, 9, 10) == await gate(there, run)
        there.site.world.make_odd(LEAGUE, missing.key, None)
        assert 1 == await failed_again(there, run)
        assert ("DONE", True, 10, 10) == await gate(there, run)
        assert {} == await (await there.app.database()).read(store.runs.watch)


async def test_what_earlier_looks_have_found_counts_where_a_page_is_short(database_url):
    """R3: nine on this page and the tenth on another before it are the ten."""
    async with house(database_url) as there:
        missing = there.truth()[4]
        run, _ = await there.start()
        await found(there, run, [each for each in refs(there) if each.key == missing.key])
        there.site.world.make_odd(LEAGUE, missing.key, Odd.UNLISTED)
        await there.drained()

        assert ("DONE", True, 10, 10) == await gate(there, run)


async def test_a_team_plays_once_in_a_round_also_by_what_was_found_before(database_url):
    async with house(database_url) as there:
        run, _ = await there.start()
        first, second, *rest = refs(there)
        await found(there, run, [first])
        wrong = second.model_copy(
            update={"home": first.home, "key": f"{first.home}-x-{second.away}"}
        )
        with pytest.raises(SchemaInvalid, match="of this round already") as refused:
            await found(there, run, [wrong, *rest])

        assert "matches[0].home" == refused.value.path
        assert {first.key} == set(await there.tasks(run))


async def test_nobody_stores_another_match_in_the_name_of_a_task(database_url):
    """R3: whoever stores is refused, not only whoever reads."""
    async with house(database_url) as there:
        run, _ = await there.start()
        await found(there, run, refs(there))
        first, second, *_ = there.truth()
        [task] = [
            each["id"]
            for each in (await there.tasks(run)).values()
            if each["match_key"] == first.key
        ]
        page = page_of(first)
        for other in (
            page_of(second),
            page.model_copy(update={"round": 2}),
            page.model_copy(update={"season": 2025}),
        ):

            def keep(tx: Any, other: Any = other) -> None:
                wanted = store.tasks.task_of(tx, task)
                store.tasks.keep(tx, [Keeping(wanted, other, WHO)])

            with pytest.raises(IllegalMove):
                await there.app.write(keep)
        assert {} == await there.matches()


async def test_alerts_of_one_flaw_are_one_wherever_it_stands_on_the_pages(database_url):
    """`events[3].player` and `events[11].player` are one alert, with both pages."""
    async with house(database_url) as there:
        for match in there.truth()[:3]:
            there.site.world.make_odd(LEAGUE, match.key, Odd.STRANGER)
        run = await there.scraped()

        paths = {
            each["error"]["path"] for each in (await there.tasks(run)).values() if each["error"]
        }
        alerts = await (await there.app.database()).read(store.runs.watch)
        assert len(paths) > 1
        assert [f"SchemaInvalid {LEAGUE} events[].player"] == list(alerts)
        assert [3] == [each["pages"] for each in alerts.values()]


async def test_a_scrape_in_which_something_failed_says_so_while_others_wait(database_url):
    """FAILED, not NOT_YET: a person has something to do."""
    async with house(database_url, unfinished=1.0, clock=Clock()) as there:
        there.site.world.make_odd(LEAGUE, there.truth()[0].key, Odd.ALIEN)
        there.ill(there.truth()[0].path, 403)
        run, _ = await there.start()

        async def settled() -> bool:
            return await there.statuses(run) == {"FAILED": 1, "NOT_YET": 9}

        async with running(there.app):
            await eventually(settled)
        assert "FAILED" == (await there.seen(run))["status"]


async def test_an_outage_is_waited_out_for_as_long_as_the_setting_says(database_url):
    """The two waits between three attempts make up the patience, the second twice the first."""
    async with house(database_url) as there:
        await there.app.knobs.set("matches.patience", "30m", actor=WHO)
        there.ill(there.truth()[0].path, 503)
        run = await there.scraped()

        assert {"FAILED": 1, "DONE": 9} == await there.statuses(run)
        rows = await there.rows("SELECT details FROM events WHERE type = 'failed' ORDER BY seq")
        first, second = [read_json(told)["after"] for (told,) in rows]
        assert 450 <= first <= 600
        assert 900 <= second <= 1200
