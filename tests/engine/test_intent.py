"""Steps declared once: committed before they happen, and never repeated without anybody knowing."""

import pytest

from retoma import Context, Happened, IllegalMove, Permanent, Retoma, Retry, State, Transient
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually, running


async def test_e6_the_intent_is_committed_before_the_call(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> str:
            async def pay() -> str:
                [step] = await app.steps(ctx.job)
                return str(step.state)

            return await ctx.step("pay", pay, once=True)

        job = await app.submit(story)
        await drain(app)

        assert '"begun"' == (await app.get(job.id)).result
        assert ["submitted", "claimed", "step_begun", "step_saved", "done"] == [
            event.type for event in await app.events(job.id)
        ]


async def test_what_is_known_not_to_have_happened_is_tried_again(database_url):
    async with Retoma(database_url) as app:
        calls = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            async def pay() -> int:
                calls.append(1)
                if len(calls) < 3:
                    raise Transient("the bank is closed")
                return len(calls)

            return await ctx.step("pay", pay, once=True)

        job = await app.submit(story)
        await drain(app)

        assert (State.DONE, "3") == (
            (await app.get(job.id)).state,
            (await app.get(job.id)).result,
        )


class Wire:
    """A payment that goes through, and whose answer is lost the first time."""

    def __init__(self) -> None:
        self.paid = 0

    async def pay(self) -> int:
        self.paid += 1
        if self.paid == 1:
            raise ConnectionError("hung up")
        return self.paid


async def test_e6_where_nobody_knows_it_waits_for_a_person(database_url):
    async with Retoma(database_url) as app:
        wire = Wire()

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.PARKED, "unknown_remote") == (found.state, found.reason)
        assert 1 == wire.paid
        assert "nobody knows" in (await app.events(job.id))[-1].details["why"]


async def test_e6_a_waiting_job_whose_payment_may_have_gone_through_is_not_skipped(
    database_url,
):
    """Found by the simulation: it was skipped between two attempts, and the payment was forgotten."""
    async with Retoma(database_url) as app:
        wire = Wire()

        @app.job(retry=Retry(base=3600.0, cap=3600.0))
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True)

        batch = await app.submit_many(story, [None], name="monday")
        [job] = await app.jobs()
        async with running(app):
            await eventually(lambda: failed_once(app, job.id))

        with pytest.raises(IllegalMove, match="nobody has seen step pay end"):
            await app.skip(job.id, "sold")
        assert 0 == await batch.skip("sold", codes="exception")
        assert State.WAITING is (await app.get(job.id)).state

        await app.cancel(job.id)
        assert State.CANCELED is (await app.get(job.id)).state


async def failed_once(app: Retoma, job: int) -> bool:
    return "failed" in {event.type for event in await app.events(job)}


@pytest.mark.parametrize(("said", "paid", "result"), [("gone", 2, "2"), ("this", 1, "7")])
async def test_e6_a_person_says_whether_it_happened(database_url, said, paid, result):
    async with Retoma(database_url) as app:
        wire = Wire()

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True)

        job = await app.submit(story)
        await drain(app)

        await (app.remote.send_again(job.id) if said == "gone" else app.remote.adopt(job.id, 7))
        await drain(app)

        assert (paid, result) == (wire.paid, (await app.get(job.id)).result)
        with pytest.raises(IllegalMove):
            await app.remote.send_again(job.id)


async def test_it_is_repeated_where_that_does_no_harm(database_url):
    async with Retoma(database_url) as app:
        wire = Wire()

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True, unknown="repeat")

        job = await app.submit(story)
        await drain(app)

        assert "2" == (await app.get(job.id)).result


@pytest.mark.parametrize(("found", "paid"), [(Happened(7), 1), (None, 2)])
async def test_e6_reconcile_tells_whether_it_happened(
    database_url, found: Happened | None, paid
):
    async with Retoma(database_url) as app:
        wire = Wire()

        async def look() -> Happened | None:
            return found

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True, reconcile=look)

        job = await app.submit(story)
        await drain(app)

        assert paid == wire.paid
        assert ("7" if found else "2") == (await app.get(job.id)).result


async def test_a_reconcile_that_raises_fails_the_attempt_and_nothing_is_paid(database_url):
    async with Retoma(database_url) as app:
        wire = Wire()

        async def look() -> Happened | None:
            raise Permanent("the bank does not tell", code="BANK")

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            return await ctx.step("pay", wire.pay, once=True, reconcile=look)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "BANK", 1) == (found.state, found.code, wire.paid)
