"""What work costs, and how much of it may be spent, over the API."""

from typing import Any

from retoma import Context
from tests.web.aids import World, code_of, world


async def paying(house: World) -> None:
    """Two jobs of a batch that cost a dollar and a half each, and one that nobody can price."""

    @house.app.job(application="documents")
    async def label(ctx: Context, text: str) -> str:
        async def ask() -> str:
            if text == "strange":
                ctx.cost(provider="somebody", calls=1)
            else:
                ctx.cost(provider="shop", model="big", tokens=100, usd="1.50")
            return text

        return await ctx.step("ask", ask, pays="shop")

    await house.app.submit_many(label, ["a", "b", "strange"], name="three")
    await house.app.run(until_idle=True)


async def get(house: World, path: str, **params: Any) -> Any:
    answer = await house.viewer.get(path, params=params)
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def test_totals_are_told_for_a_job_a_batch_a_kind_and_a_provider(database_url):
    async with world(database_url) as house:
        await paying(house)

        [job] = await get(house, "/api/jobs/1/costs")
        batch = await get(house, "/api/batches/1/costs")
        kinds = (await get(house, "/api/costs", by="kind"))["items"]
        applications = (await get(house, "/api/costs", by="application"))["items"]
        providers = (await get(house, "/api/costs"))["items"]
        [day, _] = (await get(house, "/api/costs", by="day", days=2))["items"]
        nobody = await house.viewer.get("/api/jobs/99/costs")

        assert ("1.50", "0.00", {"tokens": 100}, 0) == tuple(job["spent"].values())
        assert [("shop", "3.00", 0), ("somebody", "0.00", 1)] == [
            (each["provider"], each["spent"]["usd"], each["spent"]["unpriced"])
            for each in batch
        ]
        assert {"label"} == {each["name"] for each in kinds}
        assert {"documents"} == {each["name"] for each in applications}
        assert ["shop", "somebody"] == [each["name"] for each in providers]
        assert ("shop", "3.00") == (day["provider"], day["spent"]["usd"])
        assert 10 == len(day["period"])
        assert (404, "not_found") == code_of(nobody)


async def test_costs_come_in_pages(database_url):
    async with world(database_url) as house:
        await paying(house)

        first = await get(house, "/api/costs", limit=1)
        second = await get(house, "/api/costs", limit=1, cursor=first["next"])

        assert (["shop"], ["somebody"]) == tuple(
            [each["name"] for each in page["items"]] for page in (first, second)
        )
        assert second["next"] is None
        other = await house.viewer.get(
            "/api/costs", params={"by": "kind", "cursor": first["next"]}
        )
        assert (422, "bad_cursor") == code_of(other)


async def test_a_budget_is_set_listed_and_removed_and_who_did_it_is_kept(database_url):
    async with world(database_url) as house:
        await paying(house)

        batch = await house.operator.put("/api/budgets", json={"amount": "2 USD", "batch": 1})
        shop = {"provider": "shop", "per": "month"}
        month = await house.operator.put("/api/budgets", json={"amount": "20.50 BRL", **shop})
        first = await get(house, "/api/budgets", limit=1)
        rest = await get(house, "/api/budgets", cursor=first["next"])
        gone = await house.operator.post("/api/budgets/remove", json=shop)
        again = await house.operator.post("/api/budgets/remove", json=shop)

        assert ("2.00 USD", "3.00 USD", True, 1) == tuple(
            batch.json()[name] for name in ("budget", "spent", "exhausted", "unpriced")
        )
        assert ("20.50 BRL", "0.00 BRL", "3.00 USD") == tuple(
            month.json()[name] for name in ("budget", "spent", "unconverted")
        )
        assert ["budget:batch:1", "budget:provider:shop:month"] == [
            each["gate"] for each in first["items"] + rest["items"]
        ]
        assert 204 == gone.status_code
        assert (404, "not_found") == code_of(again)
        told = (await house.admin.get("/api/events?actor=Olga")).json()["items"]
        assert ["budget.removed", "budget.set", "budget.set"] == [
            each["verb"] for each in told if each["verb"] in ("budget.set", "budget.removed")
        ]


NO_BUDGETS: tuple[dict[str, Any], ...] = (
    {},
    {"amount": "2 USD"},
    {"amount": "2 USD", "batch": 1, "provider": "shop", "per": "day"},
    {"amount": "2 USD", "batch": 1, "per": "day"},
    {"amount": "2 USD", "provider": "shop"},
    {"amount": "2 USD", "provider": "shop", "per": "year"},
    {"amount": "-2 USD", "batch": 1},
    {"amount": "2 EUR", "batch": 1},
    {"amount": "lots", "batch": 1},
    {"amount": 2, "batch": 1},
    {"amount": "2 USD", "batch": 0},
    {"amount": "2 USD", "provider": "a\nb", "per": "day"},
    {"amount": "2 USD", "batch": 1, "surprise": 1},
)


async def test_row_9_a_budget_that_is_none_is_refused(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("count", [1])

        for body in NO_BUDGETS:
            refused = await house.operator.put("/api/budgets", json=body)
            assert 422 == code_of(refused)[0], body
        assert [] == await house.app.budgets.list()


async def test_a_budget_of_a_batch_that_is_not_there_is_refused(database_url):
    async with world(database_url) as house:
        answer = await house.operator.put("/api/budgets", json={"amount": "2 USD", "batch": 9})

        assert (404, "not_found") == code_of(answer)


async def test_prices_and_the_exchange_rate_are_listed_and_set_by_admins(database_url):
    async with world(database_url) as house:
        price = {"provider": "shop", "unit": "tokens", "price": "0.25", "per": 1000}
        assert {"brl_per_usd": None, "since": None, "by": None} == await get(
            house, "/api/exchange"
        )

        done = await house.admin.put("/api/prices", json=price)
        rate = await house.admin.put("/api/exchange", json={"brl_per_usd": "5.40"})
        [seen] = (await get(house, "/api/prices", provider="shop"))["items"]
        shipped = await get(house, "/api/prices", limit=1)
        more = await get(house, "/api/prices", limit=1, cursor=shipped["next"])

        assert (200, 200) == (done.status_code, rate.status_code)
        assert ("0.25", "USD", 1000, "") == tuple(
            seen[name] for name in ("price", "currency", "per", "model")
        )
        assert ("5.40", rate.json()["by"]) == (rate.json()["brl_per_usd"], seen["by"])
        assert shipped["items"] != more["items"]
        for path, body in (
            ("/api/prices", price),
            ("/api/exchange", {"brl_per_usd": "5.40"}),
        ):
            assert (403, "not_allowed") == code_of(await house.operator.put(path, json=body))
        for bad in ({"price": "-1"}, {"unit": "two words"}, {"per": 0}, {"currency": "EUR"}):
            answer = await house.admin.put("/api/prices", json={**price, **bad})
            assert 422 == code_of(answer)[0], bad
        zero = await house.admin.put("/api/exchange", json={"brl_per_usd": "0"})
        assert (422, "bad_input") == code_of(zero)


async def test_a_viewer_sets_no_budget(database_url):
    async with world(database_url) as house:
        for path, body in (
            ("/api/budgets/remove", {"batch": 1}),
            ("/api/runners/x/drain", None),
        ):
            answer = await house.viewer.post(path, json=body)
            assert (403, "not_allowed") == code_of(answer), path
        assert (403, "not_allowed") == code_of(
            await house.operator.post("/api/runners/x/drain")
        )
        assert (404, "not_found") == code_of(await house.admin.post("/api/runners/x/drain"))
