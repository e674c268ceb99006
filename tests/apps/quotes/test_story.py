"""A quote from its words to its price: by the shops, or by the table; what was paid is paid once."""

from decimal import Decimal
from itertools import pairwise

import httpx2
import pytest

from retoma.apps.quotes import store
from retoma.apps.quotes.model import NEXT, ProcessingCheckpoint
from retoma.apps.quotes.sandbox import paid_twice
from retoma.db import adhoc
from retoma.engine.rules.states import State
from tests.apps.quotes.aids import World, world

C = ProcessingCheckpoint


def number(there: World, *, vehicle: bool) -> int:
    return next(n for n in range(100) if there.catalogue.is_vehicle(n) is vehicle)


async def path(there: World, quote: int) -> list[str]:
    """The checkpoints it came by, in order."""
    job = (await there.seen(quote))["job"]
    told = [each for each in await there.app.events(job) if "step" in (each.details or {})]
    names = [str(each.details["step"]) for each in told if each.type != "step_begun"]
    seen: list[str] = []
    for name in names:
        if not seen or seen[-1] != name:
            seen.append(name)
    return ["INIT", *seen, "COMPLETED"]


def assert_by_the_diagram(names: list[str]) -> None:
    """Q2: each follows from the one before it."""
    for before, after in pairwise(names):
        assert C(after) in NEXT[C(before)], (before, after)


async def test_q2_a_product_goes_by_the_shops(database_url, tmp_path):
    async with world(database_url, tmp_path) as there:
        n = number(there, vehicle=False)
        quote = await there.quote(n)
        await there.drained()
        seen = await there.seen(quote)
        expected = there.catalogue.expected(n)

        assert ("DONE", "COMPLETED", None) == (
            seen["status"],
            seen["processing_checkpoint"],
            seen["error_code"],
        )
        assert float(seen["result"]["price"]) == pytest.approx(
            float(expected.price or 0), rel=0.05
        )
        assert ("BRL", "product") == (seen["result"]["currency"], seen["result"]["branch"])
        tested = seen["resume_data"]["tested_products"]
        assert len(seen["result"]["sources"]) <= len(tested)
        assert seen["claude_payload_json"]["tool"] == "search_plan"
        assert seen["google_shopping_response_json"]["shopping_results"]
        names = await path(there, quote)
        assert_by_the_diagram(names)
        assert C.SHOPPING_SEARCH_DONE in names
        assert C.FIPE_SEARCH not in names
        assert (1, 1, 0) == (
            there.calls("anthropic"),
            there.calls("serpapi"),
            there.calls("fipe"),
        )
        assert await there.app.evidence.list(seen["job"])


@pytest.mark.parametrize(
    ("wanted", "kind", "table"),
    [
        ("Moto Honda CG 160 Titan 2020 flex", "motorcycle", "motos"),
        ("Caminhão Scania R-450 6x2 2019 diesel", "truck", "caminhoes"),
    ],
)
async def test_motorcycles_and_trucks_have_tables_of_their_own(
    database_url, tmp_path, wanted, kind, table
):
    async with world(database_url, tmp_path) as there:
        quote = await there.app.write(
            lambda tx: store.add_quote(tx, store.NewQuote(wanted), actor="Olga")
        )
        await there.drained()
        seen = await there.seen(quote)

        assert "DONE" == seen["status"]
        assert kind == seen["claude_payload_json"]["said"]["kind"]
        assert Decimal(seen["result"]["price"]) > 0
        asked = {line["input"] for line in there.services.log("fipe")}
        assert 4 == len(asked)
        assert all(f"/{table}/marcas" in each for each in asked), asked


async def test_q2_a_vehicle_goes_by_the_table(database_url, tmp_path):
    async with world(database_url, tmp_path) as there:
        n = number(there, vehicle=True)
        quote = await there.quote(n)
        await there.drained()
        seen = await there.seen(quote)

        assert "DONE" == seen["status"]
        assert seen["result"]["price"] == str(there.catalogue.expected(n).price)
        assert ("fipe", "vehicle") == (seen["result"]["method"], seen["result"]["branch"])
        names = await path(there, quote)
        assert_by_the_diagram(names)
        assert C.FIPE_SEARCH in names
        assert 0 == there.calls("serpapi")


async def test_q4_a_lote_adds_up_and_nothing_is_paid_twice(database_url, tmp_path):
    """Q1 Q4: with faults by chance in every service."""
    async with world(database_url, tmp_path, faults=0.1) as there:
        added = await there.lote(range(20))
        assert added.lote is not None
        await there.drained()
        batch = await there.app.batches.get(added.lote)
        counts = await batch.counts()

        assert 20 == sum(counts.values()) == counts[State.DONE] + counts.get(State.DEAD, 0)
        assert not paid_twice(there.services.log("serpapi"))
        assert not paid_twice(there.services.log("anthropic"))
        [(n,)] = await there.rows(
            "SELECT count(*) FROM quote_requests WHERE batch_request_id = :lote AND status = 'DONE'",
            lote=added.lote,
        )
        assert n == counts[State.DONE]


async def test_shops_that_are_away_end_no_quote(database_url, tmp_path):
    """A network that was down: asked again later, and after that by a person; paid for once (Q1, Q3)."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(number(there, vehicle=False))
        faults = f"{there.settings.fipe_url}/shops/_sandbox/faults"
        away = {"trouble": "status", "status": 503, "times": None}
        async with httpx2.AsyncClient(timeout=60) as client:
            (await client.post(faults, json=away)).raise_for_status()
            await there.drained()
            seen = await there.seen(quote)
            assert ("ERROR", "shops_away") == (seen["status"], seen["error_code"])
            assert 4 == seen["attempt_number"]
            asked = len(seen["resume_data"]["tested_products"])
            (await client.delete(faults)).raise_for_status()
        await there.app.retry(seen["job"])
        await there.drained()
        seen = await there.seen(quote)
        assert "DONE" == seen["status"]
        pages = {each["url"] for each in seen["resume_data"]["tested_products"]}
        assert asked == 4 * len(pages), "each page once in each attempt"
        assert len(seen["resume_data"]["tested_products"]) == 5 * len(pages)
        assert (1, 1) == (there.calls("anthropic"), there.calls("serpapi"))


async def test_q1_a_search_that_broke_off_is_unknown_and_not_told_as_failed(
    database_url, tmp_path
):
    """It was sent and may be paid for: it is done again as what nobody knows, not as what never was."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(number(there, vehicle=False))
        faults = f"{there.settings.fipe_url}/serpapi/_sandbox/faults"
        async with httpx2.AsyncClient(timeout=60) as client:
            (await client.post(faults, json={"trouble": "cut"})).raise_for_status()
        await there.drained()
        seen = await there.seen(quote)
        events = await there.app.events(seen["job"])
        told = [
            each.type
            for each in events
            if (each.details or {}).get("step") == C.SHOPPING_SEARCH_START
        ]

        assert "DONE" == seen["status"]
        assert ["step_begun", "step_begun", "step_saved"] == told
        assert 2 == there.calls("serpapi")


@pytest.mark.parametrize(
    ("setting", "vehicle"),
    [("anthropic_url", False), ("serpapi_url", False), ("fipe_url", True)],
)
async def test_a_wrong_address_buries_nothing(database_url, tmp_path, setting, vehicle):
    """Ten thousand quotes wait for whoever sets it right, and none of them is paid for again."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(number(there, vehicle=vehicle))
        nowhere = {setting: f"{there.settings.fipe_url}/nowhere"}
        tools = there.app.tools["quotes"]
        tools.settings = there.settings.model_copy(update=nowhere)
        await there.drained()
        job = await there.app.get((await there.seen(quote))["job"])
        assert (State.PARKED, "wrong_address") == (job.state, job.code)
    async with world(database_url, tmp_path) as there:
        await there.app.resume(job.id)
        await there.drained()
        assert "DONE" == (await there.seen(quote))["status"]
        assert there.calls("anthropic") == (1 if setting == "anthropic_url" else 0)


async def test_the_documents_table_refuses_to_be_written(database_url, tmp_path):
    async with world(database_url, tmp_path) as there:
        await there.quote(1)

        database = await there.app.database()
        change = adhoc("UPDATE quote_requests SET status = 'DONE'")

        with pytest.raises(Exception, match="/api/quotes"):
            await database.write(lambda tx: tx.run(change), verb="test")
