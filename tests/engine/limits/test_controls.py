"""Show 5: what reach cannot do is said clearly, and changes nothing."""

from typing import Any

import pytest

from retoma import BadInput, Context, Happened, Retoma, State
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually, running
from tests.engine.handlers.test_remote import Service


async def told_of(app: Retoma, job: int, event: str) -> list[dict[str, Any]]:
    return [e.details for e in await app.events(job) if e.type == event and e.details]


async def test_an_unknown_pool_is_named_in_the_timeline_and_nothing_is_held(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> None:
            await ctx.use("proxys")

        job = await app.submit(scrape)
        await drain(app)

        assert State.DEAD is (await app.get(job.id)).state
        [buried] = await told_of(app, job.id, "buried")
        assert "there is no pool 'proxys'" == buried["message"]
        assert {None} == {item.job for item in await app.pools.items("proxies")}


@pytest.mark.parametrize("n", [-1, 0])
async def test_negative_tokens_are_refused_and_none_is_spent(database_url, n):
    async with Retoma(database_url) as app:
        await app.rates.set("site", 5, burst=5)

        @app.job(retry=AT_ONCE)
        async def call(ctx: Context) -> None:
            await ctx.rate("site", n)

        job = await app.submit(call)
        await drain(app)

        [buried] = await told_of(app, job.id, "buried")
        assert f"site: a call costs at least one token, not {n}" == buried["message"]
        assert 5 == (await app.rates.list())[0].tokens
        with pytest.raises(BadInput):
            await app.rates.set("site", n)


async def test_a_reconcile_that_raises_is_a_failure_and_the_step_is_not_repeated(database_url):
    async with Retoma(database_url) as app:
        paid: list[int] = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> Any:
            async def pay() -> None:
                paid.append(ctx.attempt)
                raise ConnectionError("hung up")

            async def reconcile() -> Happened | None:
                raise ZeroDivisionError("the ledger is empty")

            await ctx.step("pay", pay, once=True, reconcile=reconcile)

        job = await app.submit(story)
        await drain(app)

        assert [1] == paid, "whoever does not know must not pay again"
        [buried] = await told_of(app, job.id, "buried")
        assert ("ZeroDivisionError", "the ledger is empty") == (
            buried["type"],
            buried["message"],
        )
        assert ["begun"] == [step.state for step in await app.steps(job.id)]


async def test_a_find_that_raises_is_a_failure_and_nothing_is_sent_again(database_url):
    service = Service("completed", lose_first_reply=True)

    async def find(key: str) -> str:
        raise ZeroDivisionError("the list is empty")

    async with Retoma(database_url) as app:
        job = await mission(app, service.remote(find=find))
        await drain(app)

        found = await app.get(job)
        assert (State.PARKED, "unknown_remote", 1) == (
            found.state,
            found.reason,
            len(service.sent),
        )
        assert "the list is empty" in await app.explain(job)


async def test_a_status_outside_the_table_ends_nothing_and_is_told(database_url):
    service = Service("exploded")
    async with Retoma(database_url) as app:
        job = await mission(app, service.remote(interval=0.05))
        async with running(app):
            note = await eventually(lambda: noted(app, job))
        found = await app.get(job)

        assert "its status 'exploded' is in no table" == note
        assert (False, 0, 1) == (found.ended, found.failures, len(service.sent))


@pytest.mark.parametrize("status", [None, "completed", {"status": "completed"}])
async def test_an_ask_that_gives_no_status_never_counts_as_done(database_url, status):
    service = Service("running")

    async def ask(handle: str) -> Any:
        return status

    service.ask = ask  # type: ignore[method-assign]
    async with Retoma(database_url) as app:
        job = await mission(app, service.remote())
        await drain(app)

        found = await app.get(job)
        assert (State.PARKED, "bad_input") == (found.state, found.code)
        assert "ask must return a Status" in await app.explain(job)


async def test_a_handle_of_10_kb_is_left_to_a_person_who_may_give_a_shorter_one(database_url):
    service = Service("completed")

    async def send(key: str, payload: Any) -> str:
        service.sent[key] = payload
        return "x" * 10_000

    service.send = send  # type: ignore[method-assign]
    async with Retoma(database_url) as app:
        job = await mission(app, service.remote(find=None))
        await drain(app)
        with pytest.raises(BadInput, match="at most 8192 characters"):
            await app.remote.adopt(job, "x" * 10_000)
        with pytest.raises(BadInput, match="cannot be kept"):
            await app.remote.adopt(job, float("nan"))
        before = await app.get(job)
        await app.remote.adopt(job, "a shorter one")
        await drain(app)

        assert (State.PARKED, "bad_handle") == (before.state, before.code)
        assert (State.DONE, 1) == ((await app.get(job)).state, len(service.sent))


async def mission(app: Retoma, remote: Any) -> int:
    @app.job(name="mission", retry=AT_ONCE)
    async def story(ctx: Context) -> Any:
        return await ctx.remote("scrape", remote)

    return (await app.submit(story)).id


async def noted(app: Retoma, job: int) -> str | None:
    return (await app.get(job)).note
