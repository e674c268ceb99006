"""What pages ask: seasons with all their rounds, in one statement that reads their own tasks and no others."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Odd
from retoma.apps.matches.store import boards
from retoma.apps.matches.store.rows import SQL, Round
from retoma.db import Transaction, adhoc
from tests.apps.matches.aids import LEAGUE, WHO, House, house
from tests.apps.matches.test_rounds import refs


async def varied(there: House) -> None:
    """A round that ended with a failure, and one whose tasks stand in every way that there is."""
    there.site.world.make_odd(LEAGUE, there.truth()[0].key, Odd.SCORE_100)
    await there.scraped()
    await there.scraped()  # the next of the same round: what is stored is skipped
    run, _ = await there.start(2)
    await there.app.write(lambda tx: store.runs.discovered(tx, run, refs(there, 2)))
    later, left, gone, *_ = (await there.tasks(run)).values()
    await there.app.write(lambda tx: store.tasks.note(tx, later["id"], "live", None, None))
    await there.app.skip(left["job"], "x", actor=WHO)
    await there.app.cancel(gone["job"], actor=WHO)


async def test_a_scrape_counts_its_tasks_as_their_own_table_tells_them(database_url):
    async with house(database_url) as there:
        await varied(there)
        for run in (1, 2, 3):
            told, seen = await there.tasks(run), await there.seen(run)
            stored = sum(each["partida_id"] is not None for each in told.values())
            missing = Counter(
                each["status"] for each in told.values() if each["partida_id"] is None
            )
            names = ("stored", "pending", "running", "not_yet", "failed", "left_out")
            wanted = ("PENDING", "RUNNING", "NOT_YET", "FAILED", "SKIPPED")
            assert (stored, *(missing[each] for each in wanted)) == tuple(
                seen[name] for name in names
            )
        assert {"PENDING": 7, "NOT_YET": 1, "SKIPPED": 2} == await there.statuses(3)

        database = await there.app.database()
        season = await database.read(lambda tx: boards.rounds_of(tx, LEAGUE, 2026))
        assert {1: await there.seen(2), 2: await there.seen(3)} == {
            number: asdict(scrape) for number, scrape in season.items()
        }
        near = await database.read(lambda tx: boards.runs_near(tx, Round(LEAGUE, 2026, 2)))
        assert {1: 2, 2: 3} == near
        assert [(LEAGUE, 2026)] == await database.read(boards.seasons)


async def test_no_history_is_read_for_it(sqlite_url):
    """SQLite makes a view inside of a view of all rows there are, unless it is written otherwise."""
    async with house(sqlite_url) as there:
        of: dict[str, Any] = {"league": LEAGUE, "season": 2026}

        def plans(tx: Transaction) -> list[str]:
            asked = (
                (SQL.show_job, {"run": 1}),
                (SQL.last_run, {**of, "round": 1}),
                (SQL.season_jobs, of),
                (SQL.list_cells, {"run": 1, "n": 1}),
            )
            return [
                str(row[-1])
                for statement, params in asked
                for row in tx.all(
                    adhoc(f"EXPLAIN QUERY PLAN {statement.sqlite[0].sql}"), **params
                )
            ]

        read = await (await there.app.database()).read(plans)
        assert any("match_tasks_key" in each for each in read)
        assert [] == [each for each in read if "MATERIALIZE" in each or "SCAN t" in each]
