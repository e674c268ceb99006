"""A question that costs money: its intent first, within the budget, told of, and paid once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from retoma import Retoma
from retoma.apps.embeddings import APP, store
from retoma.apps.embeddings.model import PROVIDER
from retoma.apps.embeddings.questions import KIND
from retoma.apps.embeddings.sandbox import (
    DIMS,
    KEY,
    MODEL,
    build_service,
    embedded_twice,
    fingerprint,
)
from retoma.apps.embeddings.vectors import Found, Question, Searcher
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput, IllegalMove, Permanent, Transient
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools
from tests.apps.embeddings.aids import WHO, Counting, House, house
from tests.apps.embeddings.test_api import documents
from tests.apps.people import people
from tests.apps.quotes.aids import serving
from tests.engine.aids import eventually, rows, running

TEXTS = (
    ("mar.txt", "O mar batia nas pedras da praia."),
    ("pão.txt", "O padeiro amassa o pão de madrugada."),
)
JOBS = f"SELECT state FROM jobs WHERE kind = '{KIND}' ORDER BY id"  # noqa: S608 — a name of ours


def paid_provider(**how: Any) -> Counting:
    return Counting(paid=True, tokens=40, usd=0.25, **how)


async def filled(there: House) -> None:
    """Its texts are embedded, and what that cost is not what is counted."""
    await there.add(*TEXTS)
    await there.drained()
    there.provider.calls.clear()


async def find(searcher: Searcher, text: str) -> Found:
    return await searcher.find(Question(collection="livros", text=text), actor=WHO)


async def spent(there: House) -> tuple[Decimal, int]:
    seen = await there.app.costs.by_kind(KIND)
    dollars = sum((each.spent.usd for each in seen), Decimal(0))
    return dollars, sum(each.spent.units.get("input_tokens", 0) for each in seen)


async def states(there: House) -> list[str]:
    return [state for (state,) in await there.rows(JOBS)]


async def test_a_question_is_paid_for_once_whoever_asks_it_again(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        found = await find(there.searcher(), "pedras da praia")
        again = await find(there.searcher(), "pedras da praia")

        assert "mar.txt" == found.hits[0].name
        assert found == again
        assert [["pedras da praia"]] == there.provider.calls
        assert (Decimal("0.25"), 40) == await spent(there)
        assert ["done"] == await states(there)


async def test_a_question_that_a_chunk_says_costs_nothing(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        found = await find(there.searcher(), TEXTS[0][1])

        assert 1.0 == found.hits[0].score
        assert [] == there.provider.calls
        assert [] == await states(there)


async def test_its_intent_is_committed_before_anybody_is_asked(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        gate = there.provider.gate = asyncio.Event()
        asking = asyncio.create_task(find(there.searcher(), "pedras"))

        async def asked() -> bool:
            return len(there.provider.calls) > 0

        await eventually(asked)
        begun = """SELECT s.state, j.kind FROM steps s JOIN jobs j ON j.id = s.job
                   WHERE s.name = 'pedir' AND s.state = 'begun'"""
        assert [("begun", KIND)] == [tuple(row) for row in await there.rows(begun)]
        gate.set()
        await asking
        assert [] == await there.rows(begun)


async def test_of_many_who_ask_the_same_at_once_one_pays(database_url):
    """Two processes, with a runner beside them that may be quicker than either."""
    provider = paid_provider()
    async with (
        house(database_url, provider, clock=Clock()) as there,
        house(database_url, provider, clock=Clock()) as other,
    ):
        await filled(there)
        async with running(there.app):
            searchers = [there.searcher(), other.searcher()]
            found = await asyncio.gather(
                *(find(each, "pedras") for each in searchers for _ in range(3))
            )
        assert all(each == found[0] for each in found)
        assert [["pedras"]] == provider.calls
        assert (Decimal("0.25"), 40) == await spent(there)
        assert {"done"} == {*await states(there)}


async def test_a_budget_that_is_spent_refuses_and_nothing_is_left_waiting(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        await there.app.budgets.set("0.10 USD", application="embeddings", per="day")
        with pytest.raises(IllegalMove, match="budget:application:embeddings"):
            await find(there.searcher(), "pedras")
        assert [] == there.provider.calls
        assert ["canceled"] == await states(there)

        await there.app.budgets.remove(application="embeddings", per="day")
        assert (await find(there.searcher(), "pedras")).hits


@pytest.mark.parametrize(
    ("error", "state"),
    [(Transient("503"), "canceled"), (Permanent("401", code="config"), "done")],
)
async def test_a_question_that_comes_to_nothing_is_no_dead_job_and_may_be_asked_again(
    database_url, error, state
):
    async with house(database_url, paid_provider(fails=[])) as there:
        await filled(there)
        there.provider.fails = [error]
        with pytest.raises(Transient, match=str(error)):
            await find(there.searcher(), "pedras")
        assert [state] == await states(there)
        assert [] == await there.app.dead.list()

        assert (await find(there.searcher(), "pedras")).hits
        assert 2 == len(there.provider.calls)


async def test_while_the_provider_is_down_nobody_is_asked(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        await there.app.breakers.declare(PROVIDER, threshold=2, rest="1d")
        there.provider.fails = [Transient("503"), Transient("503")]
        for n in range(2):
            with pytest.raises(Transient):
                await find(there.searcher(), f"pedras {n}")
        with pytest.raises(IllegalMove, match=PROVIDER):
            await find(there.searcher(), "pedras")
        assert 2 == len(there.provider.calls)
        assert "canceled" == (await states(there))[-1]


async def test_what_the_provider_does_not_take_is_told_to_who_asked(database_url):
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        there.provider.refuses = {"mal": "refused"}
        with pytest.raises(BadInput, match="does not take"):
            await find(there.searcher(), "mal")
        with pytest.raises(BadInput):
            await find(there.searcher(), "meia \ud800 letra")
        assert [["mal"]] == there.provider.calls
        assert (Decimal("0.25"), 40) == await spent(there), "it was paid for all the same"


async def test_its_vector_is_kept_for_a_week(database_url, test_clock):
    day = 24 * 3600
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        await find(there.searcher(), "pedras")
        test_clock.jump(6 * day)
        assert 0 == await there.app.write(store.chunks.tidy)
        await find(there.searcher(), "pedras")
        assert 1 == len(there.provider.calls)

        test_clock.jump(2 * day)
        assert 1 == await there.app.write(store.chunks.tidy)
        await find(there.searcher(), "pedras")
        assert 2 == len(there.provider.calls)


async def test_what_is_left_by_a_process_that_died_is_asked_by_nobody(database_url):
    """Its intent may have been paid for; a second time it is not, for nobody waits."""
    async with house(database_url, paid_provider()) as there:
        await filled(there)
        there.provider.gate = asyncio.Event()
        asking = asyncio.create_task(find(there.searcher(), "pedras"))

        async def asked() -> bool:
            return len(there.provider.calls) > 0

        await eventually(asked)
        asking.cancel()
        await asyncio.wait([asking])
        for runner in there.app._hinted:
            await runner.end()
        there.provider.gate = None
        await there.drained()
        assert 1 == len(there.provider.calls)
        assert ["skipped"] == await states(there)


async def test_over_the_api_a_paid_endpoint_is_asked_once_and_when_it_is_away_that_is_said(
    database_url, tmp_path
):
    """By the endpoint's own log, which knows who was paid for twice."""
    log = tmp_path / "log.jsonl"
    service = build_service(log=log)
    async with serving(service) as port, site(database_url, port) as (app, those):
        await app.rates.set(
            PROVIDER, 10_000
        )  # by this clock nobody waits for one that is looked for
        olga, vera = those["operator"], those["viewer"]
        texts = {"mar.txt": "O mar batia nas pedras.", "pão.txt": "O padeiro amassa o pão."}
        await olga.post("/api/embeddings/documents", json=documents(texts))
        await drain(app)
        asked = {"collection": "livros", "text": "pedras"}
        for _ in range(2):
            answer = await vera.post("/api/embeddings/search", json=asked)
            assert (200, "mar.txt") == (answer.status_code, answer.json()["hits"][0]["name"])
        keyed = await vera.post(
            "/api/embeddings/search", json=asked, headers={"Idempotency-Key": "k"}
        )
        assert 200 == keyed.status_code
        database = await app.database()
        # A viewer writes nothing: neither the answer nor the key.
        assert [] == await rows(database, "SELECT key FROM answers WHERE key = 'k'")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert {} == embedded_twice(lines)
        assert 1 == sum(fingerprint("pedras") in line["inputs"] for line in lines)
        [cost] = await app.costs.by_kind(KIND)
        assert cost.spent.usd > 0

        await trouble(port, "status", status=503, times=None)
        away = await vera.post("/api/embeddings/search", json={**asked, "text": "nova"})
        assert (503, "provider_away") == (away.status_code, away.json()["code"])
        await app.budgets.set("0.000000001 USD", provider="openai", per="day")
        refused = await vera.post("/api/embeddings/search", json={**asked, "text": "outra"})
        assert (409, "illegal_move") == (refused.status_code, refused.json()["code"])
        assert 200 == (await vera.post("/api/embeddings/search", json=asked)).status_code


@asynccontextmanager
async def site(
    url: str, port: int
) -> AsyncIterator[tuple[Retoma, dict[str, httpx2.AsyncClient]]]:
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url, clock=FakeClock()) as app, out:
        settings = Settings(
            database_url=url,
            embeddings_provider="openai",
            embeddings_url=f"http://127.0.0.1:{port}/v1",
            embeddings_key=KEY,
            embeddings_model=MODEL,
            embeddings_dims=DIMS,
        )
        app.install(APP, Tools(app, out, settings=settings))
        async with people(app, APP, url) as those:
            yield app, those


async def trouble(port: int, trouble: str, **how: Any) -> None:
    there = f"http://127.0.0.1:{port}/_sandbox/faults"
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        (await client.post(there, json={"trouble": trouble, **how})).raise_for_status()
