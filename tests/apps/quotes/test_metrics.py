"""The document's three numbers and three alerts: the same in the API, in the metrics and in what wakes somebody."""

import re
from typing import Any

from retoma.apps.quotes import APP
from retoma.engine.ops.alerts import KNOBS, find
from retoma.engine.rules.live_settings import Declared
from retoma.engine.store import knobs
from tests.apps.people import people
from tests.apps.quotes.aids import World, world
from tests.apps.quotes.test_lists import BOOT
from tests.deploy.test_rules import firing
from tests.engine.aids import change
from tests.house.files import ROOT
from tests.house.tables import rows_of
from tests.scrape import of, scraped, value

KIND = "quotes.quote"
HELD = (
    "UPDATE jobs SET state = 'running', runner = 'b', epoch = 1, turn = NULL, run_at = NULL,"
    " started_at = (SELECT clock()), progress_at = (SELECT clock()), checkpoint = CASE"
    " WHEN id <= 5 THEN 'AI_ANALYSIS_DONE' WHEN id <= 30 THEN 'SHOPPING_SEARCH_DONE'"
    " ELSE 'PRICE_EXTRACTION_PROGRESS' END WHERE kind = 'quotes.quote' AND id <= {n}"
)


async def alerts(there: World) -> set[str]:
    """What the product itself would tell of."""
    database = await there.app.database()

    def look(tx: Any) -> set[str]:
        values = knobs.values(tx, Declared(KNOBS))
        return {f"{each.rule} {each.subject}" for each in find(tx, "UTC", values)}

    return await database.read(look)


async def test_stuck_quotes_are_counted_alike_everywhere_and_more_than_ten_wake_somebody(
    database_url, tmp_path, test_clock
):
    """Q7: also where there are more of them than one page names."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        first, second = await there.lote(range(10)), await there.lote(range(240))
        database = await there.app.database()
        await change(database, BOOT.replace("clock_in(60)", "clock_in(86400)"))
        told: list[tuple[Any, ...]] = []
        for n in (10, 250):
            await change(database, HELD.format(n=n))
            test_clock.jump(601)
            stats = (await who["viewer"].get("/api/system/processing-stats")).json()
            lotes = [
                (await who["viewer"].get(f"/api/system/batch-status/{each.lote}")).json()
                for each in (first, second)
            ]
            now = await scraped(there.app)
            told.append(
                (
                    stats["stuck_count"],
                    sum(each["stuck_count"] for each in lotes),
                    value(now, "retoma_jobs_stuck", kind=KIND),
                    {each for each in await firing(there.app) if "Stuck" in each},
                    {each for each in await alerts(there) if "Stuck" in each},
                )
            )
            for checkpoint, number in stats["by_checkpoint"].items():
                assert number == value(
                    now, "retoma_jobs_at_checkpoint", kind=KIND, checkpoint=checkpoint
                )

        assert (10, 10, 10.0, set(), set()) == told[0]
        high = {"HighStuckQuotes"}, {f"HighStuckQuotes {KIND}"}
        assert (250, 250, 250.0, *high) == told[1]
        assert {
            "AI_ANALYSIS_DONE": 5,
            "SHOPPING_SEARCH_DONE": 25,
            "PRICE_EXTRACTION_PROGRESS": 220,
        } == stats["by_checkpoint"]
        assert 250 == stats["total_processing"]


async def test_h19_nobody_is_woken_where_nothing_waits(database_url, tmp_path, test_clock):
    """An idle house is silent for as long as it likes; quotes that nobody takes up are told of."""
    async with world(database_url, tmp_path) as there:
        await there.app.jobs()  # it brings a clock of its own; then comes that of the tests
        test_clock.jump(86_400)
        idle = await firing(there.app) | await alerts(there)
        await there.quote(2)
        test_clock.jump(901)

        assert set() == idle
        assert "WorkerHealthCheck" in await firing(there.app)
        assert f"WorkerHealthCheck {KIND}" in await alerts(there)


async def test_the_how_to_names_the_documents_numbers_as_they_are_told(database_url, tmp_path):
    told = rows_of(ROOT / "docs" / "howto" / "observe.md", "in the document")
    async with world(database_url, tmp_path) as there:
        await there.quote(2)
        await there.drained()
        await change(await there.app.database(), BOOT)
        await there.quote(3)
        await change(await there.app.database(), f"{HELD.format(n=2)} AND state = 'waiting'")
        now = await scraped(there.app)

        assert [
            "`stuck_count`",
            "`by_checkpoint`",
            "`avg_processing_time`",
            "cost of a day",
        ] == [row[0] for row in told]
        for name, expression in told:
            for series in re.findall(r"(retoma_\w+){", expression):
                assert of(now, series, kind=KIND), (name, series)
