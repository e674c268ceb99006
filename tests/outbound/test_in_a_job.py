"""A call in a story: its failures are ones the engine understands (E6, E15, E27)."""

import asyncio

import httpx2
import pytest

from retoma import Context, Happened, Permanent, Retoma, Retry, State, Transient
from retoma.engine.rules.events import EventType
from retoma.outbound import Outbound, Policy, client
from retoma.testing import FakeClock, drain
from tests.outbound.fakes import OK, Names, answer, serving

CANARY = "canary-2Hx"


async def broken():
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of"


@pytest.mark.parametrize("happened", [True, False])
async def test_e6_a_deed_whose_reply_was_lost_is_looked_after_before_it_is_done_again(
    database_url, happened
):
    paid: list[str] = []

    def says(asked):
        paid.append(asked.target)
        return broken() if len(paid) == 1 else OK

    async with (
        serving(says) as server,
        Outbound() as out,
        Retoma(database_url, clock=FakeClock()) as app,
    ):
        bank = Policy.toward("bank", server.url, private=True)
        looked: list[int] = []

        async def pay(invoice: str) -> str:
            return (await out.post(bank, f"{server.url}/{invoice}")).text()

        async def look(invoice: str) -> Happened | None:
            looked.append(len(paid))
            return Happened("found") if happened else None

        @app.job(retry=Retry(attempts=3))
        async def settle(ctx: Context, invoice: str) -> str:
            return await ctx.step("pay", pay, invoice, once=True, reconcile=look)

        job = await app.submit(settle, "may")
        await drain(app)

        ended = await app.get(job.id)

    assert (State.DONE, [1]) == (ended.state, looked)
    assert (1, '"found"') == (len(paid), ended.result) if happened else 2 == len(paid)


async def test_e15_a_service_that_is_throttling_us_is_not_asked_before_its_time(database_url):
    clock = FakeClock()
    asked_at: list[float] = []

    def says(_):
        asked_at.append(clock.now())
        return answer(429, retry_after="600") if len(asked_at) == 1 else OK

    async with (
        serving(says) as server,
        Outbound() as out,
        Retoma(database_url, clock=clock) as app,
    ):
        policy = Policy.toward("shop", server.url, private=True)

        async def ask() -> str:
            return (await out.get(policy, server.url)).text()

        @app.job
        async def quote(ctx: Context) -> str:
            return await ctx.step("ask", ask)

        job = await app.submit(quote)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        failed = [e for e in await app.events(job.id) if e.type == EventType.FAILED]

    assert asked_at[1] - asked_at[0] > 590  # our own backoff would be a second
    assert "throttled" in str(failed[0])


async def test_e27_an_address_that_is_blocked_buries_the_job_and_tells_no_secret(database_url):
    async with (
        Outbound(resolver=Names(shop_example=[["10.0.0.7"]])) as out,
        Retoma(database_url, clock=FakeClock()) as app,
    ):
        policy = Policy(purpose="shop", hosts={"shop.example"})

        async def ask() -> str:
            url = f"https://shop.example/{CANARY}?key={CANARY}"
            return (await out.get(policy, url, headers={"x-key": CANARY})).text()

        @app.job
        async def quote(ctx: Context) -> str:
            return await ctx.step("ask", ask)

        job = await app.submit(quote)
        await drain(app)
        ended = await app.get(job.id)
        told = f"{ended!r} {await app.events(job.id)!r} {await app.attempts(job.id)!r}"

    assert State.DEAD is ended.state
    assert "ssrf_blocked" in told
    assert CANARY not in told


async def test_a_test_may_answer_in_the_place_of_the_network():
    def answers(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/gone":
            raise httpx2.ConnectError("no", request=request)
        return httpx2.Response(200, json={"asked": request.headers["x-key"]})

    policy = Policy(purpose="shop", hosts={"shop.example"})
    async with Outbound(transport=httpx2.MockTransport(answers)) as out:
        got = await out.get(policy, "https://shop.example/", headers={"x-key": "mine"})
        with pytest.raises(Transient, match="cannot connect"):
            await out.get(policy, "https://shop.example/gone")
        with pytest.raises(Permanent, match="not on its list"):
            await out.get(policy, "https://evil.example/")

    assert {"asked": "mine"} == await got.json()


async def test_connections_are_kept_for_few_policies_and_closed_for_the_rest(monkeypatch):
    monkeypatch.setattr(client, "MOST_WIRES", 3)
    async with serving() as server, Outbound() as out:
        policies = [Policy.toward(f"purpose {n}", server.url, private=True) for n in range(4)]

        for policy in (*policies[:2], *policies[:2]):
            await out.get(policy, server.url)
        few = server.connections
        for policy in (*policies, policies[0]):
            await out.get(policy, server.url)

        assert (2, 5) == (few, server.connections)
        assert ["purpose 2", "purpose 3", "purpose 0"] == [each.purpose for each in out._wires]


def test_an_outbound_may_live_longer_than_a_loop():
    out = Outbound()

    async def once():
        async with serving() as server:
            policy = Policy(
                purpose="x",
                hosts={"127.0.0.1"},
                private={"127.0.0.1"},
                schemes={"http"},
                ports=set(range(1, 65536)),
            )
            got = await out.get(policy, server.url)
            await out.close()
            return got.status

    assert [200, 200] == [asyncio.run(once()), asyncio.run(once())]
