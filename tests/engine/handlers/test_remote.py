"""Work on somebody else's machine, asked after from claim to claim."""

import asyncio
import dataclasses
import threading
from functools import partial
from typing import Any

import pytest

from retoma import (
    BadInput,
    Context,
    Edge,
    IllegalMove,
    Permanent,
    Remote,
    Retoma,
    State,
    Status,
    Transient,
)
from retoma.db import Database
from retoma.engine import store
from retoma.engine.checker import check
from retoma.engine.ports import Clock
from retoma.engine.run.runner import Runner, RunnerParts
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.run.stop_request import Why
from retoma.engine.store import Spot
from retoma.engine.testing import FakeClock, drain
from tests.engine.aids import AT_ONCE, boot, change, eventually, running

STATUSES = {
    "queued": Edge.GOING,
    "running": Edge.GOING,
    "completed": Edge.DONE,
    "empty": Edge.DONE,
    "failed": Edge.FAILED,
    "canceled": Edge.STOPPED,
    "unheard of": Edge.GONE,
}


class Service:
    """Somebody else's machine; what it answers is told beforehand."""

    def __init__(self, *answers: str, lose_first_reply: bool = False) -> None:
        self.answers = list(answers)
        self.sent: dict[str, Any] = {}
        self.stopped: list[Any] = []
        self.lose_reply = lose_first_reply
        self.asked = 0

    async def send(self, key: str, payload: Any) -> str:
        self.sent[key] = payload
        if self.lose_reply:
            self.lose_reply = False
            raise ConnectionError("hung up after accepting")
        return f"handle of {key}"

    async def ask(self, handle: str) -> Status:
        self.asked += 1
        if handle in self.stopped:
            return Status("canceled")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "hang up":
            raise ConnectionError("no answer")
        return Status(answer, value={"ads": 3}, progress=0.5)

    async def find(self, key: str) -> str | None:
        return f"handle of {key}" if key in self.sent else None

    async def stop(self, handle: str) -> None:
        self.stopped.append(handle)

    def remote(self, **how: Any) -> Remote:
        given = {
            "find": self.find,
            "stop": self.stop,
            "absent_after": 0,
            "interval": 0.01,
            **how,
        }
        return Remote(send=self.send, ask=self.ask, statuses=STATUSES, **given)


async def told(
    url: str, service: Service, clock: Clock | None = None, **how: Any
) -> tuple[Any, list[str]]:
    async with Retoma(url, clock=clock) as app:
        remote = service.remote(**how)

        @app.job(retry=AT_ONCE)
        async def mission(ctx: Context, payload: dict[str, int]) -> Any:
            return await ctx.remote("scrape", remote, payload)

        job = await app.submit(mission, {"day": 1})
        await drain(app)
        return await app.get(job.id), [str(e.type) for e in await app.events(job.id)]


async def test_its_value_comes_back_when_the_work_is_done(database_url):
    service = Service("queued", "running", "never heard this one", "hang up", "completed")

    job, events = await told(database_url, service)

    assert (State.DONE, '{"ads":3}') == (job.state, job.result)
    assert 1 == len(service.sent)
    assert 5 == service.asked
    assert 5 == events.count("snoozed"), "between two polls the job holds nothing"
    assert ["step_begun", "step_saved"] == [e for e in events if e.startswith("step")][:2]
    assert 0 == job.failures, "a poll spends no attempt, not even one without an answer"


async def test_e6_a_lost_reply_is_looked_up_by_our_own_key(database_url):
    service = Service("completed", lose_first_reply=True)

    job, _ = await told(database_url, service)

    assert State.DONE is job.state
    assert 1 == len(service.sent), "it was found again, and not sent twice"


async def test_e6_what_cannot_be_looked_up_waits_for_a_person(database_url):
    service = Service("completed", lose_first_reply=True)

    job, _ = await told(database_url, service, find=None)

    assert (State.PARKED, "unknown_remote") == (job.state, job.reason)
    assert 1 == len(service.sent)


@pytest.mark.parametrize("end", ["skip", "cancel"])
async def test_a_person_may_end_what_waits_for_one_and_the_checker_says_nothing(
    database_url, end
):
    """It called a job that a person had skipped one whose remote work nobody had seen end."""
    service = Service("completed", lose_first_reply=True)
    job, _ = await told(database_url, service, find=None)

    async with Retoma(database_url) as app:
        await (app.skip(job.id, "it is gone") if end == "skip" else app.cancel(job.id))
        database = await app.database()
        ended, found = await app.get(job.id), await database.read(check)

    assert ended.ended
    assert [] == [each for each in found if each.rule == "intents"]


async def test_what_is_known_to_be_absent_is_sent_again_under_another_key(database_url):
    service = Service("completed", lose_first_reply=True)

    async def absent(key: str) -> None:
        service.sent.pop(key)

    job, _ = await told(database_url, service, find=absent)

    assert State.DONE is job.state
    [key] = service.sent
    assert key.endswith("-scrape-1-2")


async def test_absence_is_not_believed_while_a_request_may_be_on_its_way(database_url):
    service = Service("completed", lose_first_reply=True)
    looked = []

    async def late(key: str) -> str | None:
        looked.append(key)
        return None if len(looked) == 1 else f"handle of {key}"

    job, _ = await told(database_url, service, clock=FakeClock(), find=late, absent_after=20)

    assert (State.DONE, 1, 2) == (job.state, len(service.sent), len(looked))


async def test_work_that_failed_is_sent_again_as_the_next(database_url):
    service = Service("failed", "completed")

    job, _ = await told(database_url, service)

    assert (State.DONE, 2) == (job.state, len(service.sent))


async def test_a_failure_has_the_code_its_remote_gives_it(database_url):
    service = Service("failed")

    def failure(status: Status) -> Exception:
        return Permanent("captcha", code="ERROR104")

    job, _ = await told(database_url, service, failure=failure)

    assert (State.DEAD, "ERROR104", 1) == (job.state, job.code, len(service.sent))


async def test_a_send_that_is_known_to_have_failed_is_tried_again(database_url):
    service = Service("completed")
    refused = iter([True, False])

    async def send(key: str, payload: Any) -> str:
        if next(refused):
            raise Transient("503")
        return await Service.send(service, key, payload)

    service.send = send  # type: ignore[method-assign]
    job, _ = await told(database_url, service)

    assert (State.DONE, 1) == (job.state, len(service.sent))


@pytest.mark.parametrize("handle", ["x" * 10_000, None, float("nan"), object()])
async def test_a_handle_that_cannot_be_kept_leaves_the_work_to_a_person(database_url, handle):
    service = Service("completed")

    async def send(key: str, payload: Any) -> Any:
        return handle

    service.send = send  # type: ignore[method-assign]
    job, _ = await told(database_url, service, find=None)

    assert (State.PARKED, "bad_handle") == (job.state, job.code)


async def test_work_whose_handle_cannot_be_kept_is_found_by_its_key_and_stopped(database_url):
    service = Service("running")

    async def send(key: str, payload: Any) -> Any:
        await Service.send(service, key, payload)
        return "x" * 10_000

    service.send = send  # type: ignore[method-assign]
    job, events = await told(database_url, service)

    [key] = service.sent
    assert (State.DEAD, "bad_handle") == (job.state, job.code)
    assert [f"handle of {key}"] == service.stopped
    assert events.index("step_ended") < events.index("buried"), "seen to end, then buried"


async def test_e13_cancel_is_forwarded_and_confirmed(database_url):
    service = Service("running")
    async with Retoma(database_url) as app:
        remote = service.remote()

        @app.job
        async def mission(ctx: Context) -> Any:
            return await ctx.remote("scrape", remote)

        job = await app.submit(mission)
        async with running(app):
            await eventually(lambda: polled(service))
            await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))

        assert State.CANCELED is (await app.get(job.id)).state
        assert 1 == len(set(service.stopped))
        [step] = [step for step in await app.steps(job.id) if step.state == "ended"]
        assert "canceled" in str(step.value)


async def test_e13_stopping_may_take_its_time(database_url):
    service, began = Service("running"), []

    async def stop(handle: str) -> None:
        began.append(handle)
        await asyncio.sleep(0.5)
        service.stopped.append(handle)

    async with Retoma(database_url) as app:
        job = await mission_on(app, service, stop=stop, interval=0.01)
        async with running(app, tick=0.1):
            await eventually(lambda: polled(service))
            await app.cancel(job)
            await eventually(lambda: ended(app, job))

        assert State.CANCELED is (await app.get(job)).state
        assert 1 == len(began), "its runner did not stop the stopping"


async def test_e13_a_cancel_that_comes_while_the_end_is_written_takes_nothing_up_again(
    database_url,
):
    service = Service("canceled")  # by somebody on the other side
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> Any:
            async def ask(handle: str) -> Status:
                # In the next turn of the loop: by then the end is being written.
                asyncio.get_running_loop().call_soon(ctx._services.cancel_wanted)
                return await service.ask(handle)

            return await ctx.remote("scrape", dataclasses.replace(service.remote(), ask=ask))

        job = await app.submit(mission)
        await drain(app)

        events = [event.type for event in await app.events(job.id)]
        assert ["claimed", "step_ended", "canceled"] == events[-3:]


class CanceledOnceClaimed:
    """A database in which a job is canceled between its second claim and the read of its steps."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._canceled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, fn: Any, *, verb: str, **how: Any) -> Any:
        answer = await self._database.write(fn, verb=verb, **how)
        for claim in getattr(answer, "claims", ()):
            if claim.checkpoint is not None and not self._canceled:
                self._canceled = True
                cancel = partial(store.cancel_job, job=claim.job, actor="ana")
                await self._database.write(cancel, verb="cancel")
        return answer


async def test_a_cancel_that_its_attempt_has_read_does_not_cut_off_the_stopping(database_url):
    """Claimed before the cancel and read after it, an attempt was stopped while it had its work stopped."""
    service, began = Service("running"), []

    async def stop(handle: str) -> None:
        began.append(handle)
        await asyncio.sleep(0.5)
        service.stopped.append(handle)

    async with Retoma(database_url) as app:
        job = await mission_on(app, service, stop=stop, interval=0.01)
        database: Any = CanceledOnceClaimed(await app.database())
        options = RunnerOptions(tick=0.1)
        runner = Runner(RunnerParts(database=database, kinds=app.kinds, options=options))
        task = asyncio.create_task(runner.run())
        await eventually(lambda: ended(app, job))
        runner.stop()
        await task

        assert State.CANCELED is (await app.get(job)).state
        assert 1 == len(began)


async def test_e6_an_intent_still_being_written_is_looked_for_once_its_attempt_is_abandoned(
    database_url,
):
    """Canceled meanwhile, the job ended with an intent of which nobody saw the end."""
    service = Service("running")
    attempts: list[Any] = []
    holds, free = threading.Event(), threading.Event()
    async with Retoma(database_url) as app:
        database = await app.database()

        @app.job
        async def mission(ctx: Context) -> Any:
            def cancel_and_hold(tx: Any) -> None:
                store.cancel_job(tx, ctx.job, actor="ana")
                holds.set()
                free.wait(60)

            if not attempts:
                holding.append(
                    asyncio.create_task(database.write(cancel_and_hold, verb="test"))
                )
                await eventually(lambda: _is_set(holds))
                services: Any = ctx._services
                attempt = services._runner.owner._attempts[services.held]
                attempts.append(attempt)
                # In the next turn of the loop: by then the intent is being written.
                asyncio.get_running_loop().call_soon(attempt.stop, Why.CANCEL)
            return await ctx.remote("scrape", service.remote())

        holding: list[asyncio.Task[None]] = []
        job = await app.submit(mission)
        async with running(app, let_go=0.05, tick=0.1):
            try:
                await eventually(lambda: _is_over(attempts))
            finally:
                free.set()
            await asyncio.gather(*holding)
            await eventually(lambda: ended(app, job.id))

        assert State.CANCELED is (await app.get(job.id)).state
        assert {} == service.sent
        assert ["failed"] == [step.state for step in await app.steps(job.id)], "never sent"


async def test_work_that_takes_too_long_is_stopped_before_it_is_sent_again(database_url):
    service = Service("running")

    job, _ = await told(database_url, service, timeout=0.05)

    assert State.DEAD is job.state
    assert "remote_timeout" == job.code
    assert 3 == len(service.sent), "one for each attempt"
    assert len(service.stopped) >= 3


async def test_work_that_cannot_be_stopped_is_not_sent_beside_itself(database_url):
    service = Service("running")

    job, _ = await told(database_url, service, timeout=0.05, stop=None)

    assert (State.PARKED, "unknown_remote") == (job.state, job.reason)
    assert 1 == len(service.sent)


async def test_e6_a_handle_given_twice_is_found_out_by_its_key(database_url):
    """Their ids are doubled: ours stands for somebody else's work, whose key is not ours."""
    service = Service("completed")
    asked: list[str] = []

    async def ask(handle: str) -> Status:
        asked.append(handle)
        key = "another's" if handle == "doubled" else handle.removeprefix("handle of ")
        return Status("completed", value=handle, key=key)

    async def send(key: str, payload: Any) -> str:
        await Service.send(service, key, payload)
        return "doubled"

    service.ask, service.send = ask, send  # type: ignore[method-assign]
    job, _ = await told(database_url, service)

    [key] = service.sent
    assert (State.DONE, f'"handle of {key}"') == (job.state, job.result)
    assert ["doubled", f"handle of {key}"] == asked
    assert [] == service.stopped, "nobody else's work was touched"


async def test_e6_a_handle_of_anothers_work_that_cannot_be_put_right_is_a_persons(database_url):
    service = Service("running")

    async def ask(handle: str) -> Status:
        return Status("completed", key="another's")

    service.ask = ask  # type: ignore[method-assign]
    job, _ = await told(database_url, service, find=None)

    assert (State.PARKED, "unknown_remote") == (job.state, job.reason)
    assert [] == service.stopped


async def test_the_same_words_again_are_no_progress(database_url):
    service = Service("running")

    job, _ = await told(database_url, service, clock=FakeClock(), interval=10, stall=60)

    assert (State.DEAD, "remote_stalled") == (job.state, job.code)


async def test_no_answer_at_all_is_no_progress(database_url):
    service = Service("hang up")

    how: dict[str, Any] = {"interval": 10, "stall": 60, "stop": None}
    job, _ = await told(database_url, service, clock=FakeClock(), **how)

    assert (State.PARKED, "unknown_remote") == (job.state, job.reason), "nobody saw it end"
    assert 1 == len(service.sent)


# --- nothing is left behind


async def test_e6_a_deadline_buries_nobody_whose_work_may_still_run(database_url):
    service = Service("running")
    async with Retoma(database_url, clock=FakeClock()) as app:
        job = await mission_on(app, service, deadline="1h")
        await drain(app)
        found = await app.get(job)
        assert (State.PARKED, "unknown_remote", "deadline") == (
            found.state,
            found.reason,
            found.code,
        )

        await app.remote.send_again(job)  # "it is gone": now there is nothing to leave behind
        await drain(app)

        assert (State.DEAD, 1) == ((await app.get(job)).state, len(service.sent))


async def test_e6_the_third_loss_buries_nobody_whose_work_may_still_run(database_url):
    async with Retoma(database_url) as app:
        job, database = await waiting_for_work(app), await app.database()
        await change(
            database, "UPDATE jobs SET state = 'running', runner = 'ana', lost = 2, turn = NULL"
        )
        await change(database, "UPDATE runners SET boot = 'ana', state = 'lost'")
        await database.write(lambda tx: store.take_back(tx, "t"), verb="t")

        found = await app.get(job)
        assert (State.PARKED, "unknown_remote", "poison", None) == (
            found.state,
            found.reason,
            found.code,
            found.ended_at,
        )
        assert 1 == (await app.insights.counts())[State.PARKED]


async def test_e6_what_waits_for_remote_work_is_canceled_not_skipped(database_url):
    async with Retoma(database_url) as app:
        job = await waiting_for_work(app)

        with pytest.raises(IllegalMove, match="nobody has seen step remote:scrape end"):
            await app.skip(job, "nobody wants it")

        assert State.WAITING is (await app.get(job)).state
        assert "skipped" not in {event.type for event in await app.events(job)}


async def test_e13_a_cancel_of_work_that_nobody_can_find_waits_for_a_person(database_url):
    service = Service("running", lose_first_reply=True)
    async with Retoma(database_url) as app:
        job = await mission_on(app, service, find=None)
        await drain(app)
        await app.resume(job)
        await app.cancel(job)
        await drain(app)
        assert State.PARKED is (await app.get(job)).state, "it may still run"

        await app.remote.send_again(job)  # it is gone; and nobody wants it any more
        await drain(app)

        assert (State.CANCELED, 1) == ((await app.get(job)).state, len(service.sent))


async def test_e28_polls_that_are_always_due_let_new_jobs_through(database_url):
    """One slot, and more polls than it can ask: whoever waits for his first turn has it."""
    service = Service("running")
    async with Retoma(database_url) as app:
        for _ in range(6):
            await mission_on(app, service, queue="work", interval=0.001)

        @app.job(queue="work")
        async def new(ctx: Context, n: int) -> int:
            return n

        async with running(app, slots=1):
            await eventually(lambda: asked_often(service))
            batch = await app.submit_many(new, range(5))
            async with asyncio.timeout(30):
                await batch.wait()

        assert {State.DONE: 5} == await batch.counts()


async def test_e28_a_poll_goes_after_one_new_job_and_before_a_crowd(database_url):
    async with Retoma(database_url) as app:
        polled = await waiting_for_work(app, interval=0.001)
        await app.submit_many("mission", [None] * 100)
        database = await app.database()
        await asyncio.sleep(0.01)

        claimed = [await claim_one(database) for _ in range(3)]

        assert polled == claimed[1], claimed


async def claim_one(database: Any) -> int:
    await boot(database, "me")
    found = await database.write(
        lambda tx: store.claim_jobs(
            tx, "me", [Spot("mission")], ["mission@1"], slots=1, suspects=0, promote=True
        ),
        verb="claim",
    )
    [claim] = found.claims
    return int(claim.job)


async def asked_often(service: Service) -> bool:
    return service.asked > 20


async def mission_on(
    app: Retoma,
    service: Service,
    deadline: Any = None,
    queue: str | None = None,
    **how: Any,
) -> int:
    remote = service.remote(**{"interval": 60, **how})
    if "mission" in {kind.name for kind in app.kinds}:
        return (await app.submit("mission", deadline=deadline)).id

    @app.job(name="mission", retry=AT_ONCE, queue=queue)
    async def mission(ctx: Context) -> Any:
        return await ctx.remote("scrape", remote)

    return (await app.submit(mission, deadline=deadline)).id


async def waiting_for_work(app: Retoma, **how: Any) -> int:
    job = await mission_on(app, Service("running"), **how)
    async with running(app):
        await eventually(lambda: snoozed(app, job))
    return job


async def snoozed(app: Retoma, job: int) -> bool:
    return "snoozed" in {event.type for event in await app.events(job)}


@pytest.mark.parametrize(
    "how", [{"interval": 0}, {"interval": -1}, {"timeout": "soon"}, {"stall": 0}]
)
def test_a_remote_that_cannot_work_is_refused(how):
    with pytest.raises(BadInput):
        Service("completed").remote(**how)


async def polled(service: Service) -> bool:
    return service.asked > 2


async def _is_set(event: threading.Event) -> bool:
    return event.is_set()


async def _is_over(attempts: list[Any]) -> bool:
    return bool(attempts) and attempts[0]._over


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended
