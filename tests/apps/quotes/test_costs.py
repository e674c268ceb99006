"""What quotes and lotes cost: by the price list, call by call; a budget stops a lote where everybody sees it."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from retoma.apps.quotes import APP, store
from retoma.apps.quotes.model import KIND
from retoma.apps.quotes.sandbox import Odd
from retoma.engine.rules.price import in_force, shipped
from retoma.sandbox.faults import Fault, FaultKind
from retoma.testing import FakeClock, drain
from tests.apps.people import people
from tests.apps.quotes.aids import world
from tests.db.test_plans import ANALYZE, Explaining
from tests.engine.aids import change, submit
from tests.engine.test_meter import as_any

SEARCH = Decimal("0.015")


def usd(amounts: Iterable[str]) -> Decimal:
    return sum(map(Decimal, amounts), Decimal(0))


def analysis(units: dict[str, int]) -> Decimal:
    """What so many tokens cost, by the list that is shipped."""
    prices = in_force(shipped())
    each = {unit: prices["anthropic", "claude-haiku-5-5", unit] for unit in units}
    return sum(
        (each[unit].amount * n / each[unit].per for unit, n in units.items()), Decimal(0)
    )


def lasted(seen: dict[str, Any]) -> float:
    """Seconds from the first start of a quote to its end."""
    began: datetime = seen["started_at"]
    ended: datetime = seen["completed_at"]
    return (ended - began).total_seconds()


async def test_a_quote_costs_its_calls_and_a_lote_its_quotes(database_url, tmp_path):
    """An answer that is of no use is paid for too, and told; nobody pays for FIPE."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        added = await there.lote(range(8))
        alone = await there.quote(7, Odd.NOT_JSON)
        await there.drained()
        quotes = [
            (await who["viewer"].get(f"/api/quotes/{quote}")).json() for quote in added.quotes
        ]
        lote = (await who["viewer"].get(f"/api/lotes/{added.lote}")).json()
        bad = (await who["viewer"].get(f"/api/quotes/{alone}")).json()

        for quote in quotes:
            by = quote["cost"]["by_provider"]
            shopped = quote["result"]["branch"] == "product"
            assert shopped == ("serpapi" in by)
            assert usd(each["usd"] for each in by.values()) == Decimal(
                quote["cost"]["spent"]["usd"]
            )
            assert Decimal(by["anthropic"]["usd"]) == analysis(by["anthropic"]["units"])
            assert not shopped or (SEARCH, {"searches": 1}) == (
                Decimal(by["serpapi"]["usd"]),
                by["serpapi"]["units"],
            )
            assert 0 == quote["cost"]["spent"]["unpriced"]
        assert Decimal(lote["cost"]["spent"]["usd"]) == usd(
            quote["cost"]["spent"]["usd"] for quote in quotes
        )
        assert lote["orcamento"] is None
        assert ("bad_plan", 3) == (bad["error_code"], bad["attempt_number"])
        asked = there.calls("anthropic") - len(quotes)
        assert 1 < asked
        assert Decimal(bad["cost"]["spent"]["usd"]) > 2 * Decimal(
            quotes[0]["cost"]["by_provider"]["anthropic"]["usd"]
        )


async def test_a_lote_stops_where_its_budget_is_spent_and_goes_on_with_more(
    database_url, tmp_path
):
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        numbers = [n for n in range(40) if not there.catalogue.is_vehicle(n)][:4]
        wanted = {
            "orcamento": "0.02 USD",
            "quotes": [{"descricao": there.catalogue.describe(n)} for n in numbers],
        }
        made = (await who["operator"].post("/api/lotes", json=wanted)).json()
        await drain(there.app, slots=1)
        stopped = (await who["viewer"].get(f"/api/lotes/{made['id']}")).json()

        assert ("0.02 USD", "0.00 USD", False) == tuple(
            made["orcamento"][name] for name in ("budget", "spent", "exhausted")
        )
        assert (True, True) == tuple(
            stopped["orcamento"][name] for name in ("exhausted", "shut")
        )
        assert 2 == there.calls("serpapi")  # the second went beyond it
        assert (2, False) == (stopped["by_status"]["DONE"], stopped["finished"])

        await there.app.budgets.set("1 USD", batch=made["id"])
        await drain(there.app, slots=1)
        done = (await who["viewer"].get(f"/api/lotes/{made['id']}")).json()
        assert (4, True, False) == (
            done["by_status"]["DONE"],
            done["finished"],
            done["orcamento"]["shut"],
        )
        assert 4 == there.calls("serpapi") == there.calls("anthropic")


async def test_a_budget_that_is_none_is_refused_and_makes_no_lote(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        for amount in ("0 USD", "-1 USD", "25 EUR", "muito"):
            body = {"orcamento": amount, "quotes": [{"descricao": "geladeira"}]}
            assert 422 == (await who["operator"].post("/api/lotes", json=body)).status_code
            table = await who["operator"].post(
                "/api/lotes/import",
                params={"orcamento": amount},
                content="descricao\ngeladeira\n",
                headers={"content-type": "text/csv"},
            )
            assert 422 == table.status_code

        assert [(0,)] == await there.rows("SELECT count(*) FROM quotes")


async def test_the_average_is_of_whole_quotes_with_their_waits(database_url, tmp_path):
    """From the first start to the end: an attempt that parked it and the wait after that belong to it."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        faults = there.services.boxes["anthropic"]._faults
        faults.arm(Fault(trouble=FaultKind.STATUS, status=404))
        quotes = [await there.quote(1)]
        await there.drained()
        clock = there.app.clock
        assert isinstance(clock, FakeClock)
        clock.advance(600)  # it is parked, until somebody resumes it
        await there.app.resume((await there.seen(quotes[0]))["job"])
        quotes.append(await there.quote(2))
        await there.drained()
        seen = [await there.seen(quote) for quote in quotes]
        took = [lasted(each) for each in seen]
        told = (await who["viewer"].get("/api/system/processing-stats")).json()

        assert took[0] >= 600 > took[1]
        expected = sum(took) / len(took)
        assert expected == pytest.approx(told["avg_processing_time_seconds"], abs=0.02)


async def test_the_average_walks_the_index_of_the_day(database_url, tmp_path):
    async with world(database_url, tmp_path) as there:
        database = await there.app.database()
        await submit(database, 4_000, kind=KIND)
        await change(
            database,
            "UPDATE jobs SET state = 'done', turn = NULL, epoch = 1, started_at = clock_in(-172801),"
            " ended_at = clock_in(CASE WHEN id % 100 = 0 THEN -10 ELSE -172800 END)",
        )
        await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        plans: dict[str, list[str]] = defaultdict(list)
        took = await database.read(
            lambda tx: store.average_duration(as_any(Explaining(tx, plans)), "24h")
        )

        assert 172_791 == pytest.approx(took, abs=1)
        assert "quotes_ended" in str(plans["average_duration"])


async def test_averages_are_of_the_last_24_hours(database_url, tmp_path, test_clock):
    """Null where none was finished, and null again when the last is a day ago."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        told = []
        for seconds in (0, 0, 24 * 3600 + 120):
            test_clock.jump(seconds)
            stats = (await who["viewer"].get("/api/system/processing-stats")).json()
            told.append(stats["avg_processing_time_seconds"])
            if len(told) == 1:
                await there.quote(1)
                await there.drained()

        assert [None, None] == [told[0], told[2]]
        assert told[1] is not None
