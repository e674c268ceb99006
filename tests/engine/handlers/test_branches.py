"""Several pieces of remote work in one story, failures that it catches, and what it leaves behind."""

import asyncio
from typing import Any

import pytest

from retoma import (
    Context,
    Edge,
    Park,
    Permanent,
    Remote,
    Retoma,
    Skip,
    State,
    Status,
    Transient,
)
from retoma.engine.handlers.branches import first_due
from retoma.engine.rules.events import EventType
from retoma.engine.rules.outcome import Snooze
from retoma.engine.rules.states import ParkReason
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually, running

STATUSES = {
    "running": Edge.GOING,
    "completed": Edge.DONE,
    "failed": Edge.FAILED,
    "canceled": Edge.STOPPED,
}


class Service:
    """Does several things at once; of each it was told beforehand what to answer when."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers = answers
        self.log: list[str] = []
        self.stopped: set[str] = set()
        self.stopping = 0  # asks that a stop takes

    @property
    def sent(self) -> list[str]:
        return [line.removeprefix("sent ") for line in self.log if line.startswith("sent")]

    async def send(self, key: str, payload: Any) -> str:
        self.log.append(f"sent {payload}")
        return str(payload)

    async def ask(self, handle: str) -> Status:
        self.log.append(f"asked {handle}")
        if handle in self.stopped and self.stopping <= 0:
            return Status("canceled")
        self.stopping -= handle in self.stopped
        answers = self.answers[handle]
        return Status(answers.pop(0) if len(answers) > 1 else answers[0], value=f"{handle}!")

    async def stop(self, handle: str) -> None:
        self.stopped.add(handle)

    def remote(self, **how: Any) -> Remote:
        given: dict[str, Any] = {"stop": self.stop, "interval": 0.01, **how}
        return Remote(send=self.send, ask=self.ask, statuses=STATUSES, **given)


def one_after_another(log: list[str]) -> bool:
    """Whether a was over before b was sent."""
    return "asked a" in log[: log.index("sent b")]


# --- at once


async def by_gather(ctx: Context, remote: Remote) -> list[str]:
    return list(await asyncio.gather(*(ctx.remote(name, remote, name) for name in "ab")))


async def by_group(ctx: Context, remote: Remote) -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ctx.remote(name, remote, name)) for name in "ab"]
    return [task.result() for task in tasks]


async def by_each(ctx: Context, remote: Remote) -> list[str]:
    async def one(name: str) -> str:
        return str(await ctx.remote(name, remote, name))

    return await ctx.each("all", "ab", one, key=str)


async def beside(ctx: Context, remote: Remote) -> list[str]:
    first = asyncio.create_task(ctx.remote("a", remote, "a"))
    await asyncio.sleep(0)
    second = await ctx.remote("b", remote, "b")
    return [await first, second]


@pytest.mark.parametrize("at_once", [by_gather, by_group, by_each, beside])
async def test_two_go_on_at_once_and_each_is_sent_once(database_url, at_once):
    service = Service(a=["running"] * 4 + ["completed"], b=["running", "completed"])
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def mission(ctx: Context) -> list[str]:
            return list(await at_once(ctx, service.remote()))

        job = await app.submit(mission)
        await drain(app)

        found = await app.get(job.id)
        events = [event.type for event in await app.events(job.id)]
        assert (State.DONE, '["a!","b!"]') == (found.state, found.result)
        assert ["a", "b"] == sorted(service.sent)
        assert not one_after_another(service.log)
        assert 2 <= service.log.count("asked b") <= 3, (
            "done is done: it is not asked after again"
        )
        assert 5 == service.log.count("asked a")
        assert events.count(EventType.SNOOZED) >= 4, "between two polls the job holds nothing"


async def test_a_branch_at_work_is_not_torn_down_by_one_that_waits(database_url):
    service = Service(a=["running", "completed"])
    async with Retoma(database_url) as app:
        began: list[int] = []

        async def slow() -> str:
            began.append(1)
            await asyncio.sleep(0.4)
            return "slow"

        @app.job
        async def mission(ctx: Context) -> list[str]:
            work = ctx.remote("a", service.remote(interval=0.001), "a")
            return list(await asyncio.gather(work, ctx.step("slow", slow)))

        job = await app.submit(mission)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert [1] == began, "the story was left only once its step was saved"


async def test_two_of_one_name_at_once_are_refused_before_anything_is_sent(database_url):
    service = Service(a=["completed"])
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> Any:
            remote = service.remote(find=nobody, absent_after=0)
            return await asyncio.gather(*(ctx.remote("a", remote, "a") for _ in range(2)))

        job = await app.submit(mission)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "duplicate_step", []) == (found.state, found.code, service.sent)


async def nobody(key: str) -> None:
    return None


def test_a_person_is_waited_for_when_nothing_else_is():
    person = Park("who knows", ParkReason.UNKNOWN_REMOTE)

    assert Snooze(1) == first_due([Snooze(2), person, Snooze(1), None])
    assert person == first_due([None, person])
    assert ParkReason.UNKNOWN_REMOTE is first_due([None]).kind  # type: ignore[union-attr]


# --- failures that a story catches


async def test_a_failure_that_was_caught_is_found_again_and_not_sent_again(database_url):
    service = Service(a=["failed"], b=["running", "running", "completed"])
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> str:
            try:
                return str(await ctx.remote("a", service.remote(), "a"))
            except Transient as error:
                return f"{error.code}, {await ctx.remote('b', service.remote(), 'b')}"

        job = await app.submit(mission)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DONE, '"remote_failed, b!"') == (found.state, found.result)
        assert ["a", "b"] == service.sent


async def test_asking_again_in_one_attempt_gives_the_same_answer(database_url):
    service = Service(a=["failed", "completed"], b=["completed"])
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def mission(ctx: Context) -> list[Any]:
            other = await ctx.remote("b", service.remote(), "b")
            for last in (False, True):
                try:
                    return [other, await ctx.remote("a", service.remote(), "a")]
                except Transient:
                    if last:
                        raise
            raise AssertionError

        job = await app.submit(mission)
        await drain(app)

        assert '["b!","a!"]' == (await app.get(job.id)).result
        assert ["b", "a", "a"] == service.sent, "once in each attempt"


async def test_the_next_attempt_sends_again_what_failed(database_url):
    service = Service(a=["failed", "completed"], b=["completed"])
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def mission(ctx: Context) -> list[Any]:
            both = (ctx.remote(name, service.remote(), name) for name in "ab")
            first, second = await asyncio.gather(*both, return_exceptions=True)
            if isinstance(first, Exception):
                raise first
            return [first, second]

        job = await app.submit(mission)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert ["a", "a", "b"] == sorted(service.sent)


async def test_a_send_that_was_refused_stays_refused_for_the_attempt(database_url):
    service = Service(b=["running", "completed"])
    refused: list[str] = []

    async def send(key: str, payload: Any) -> str:
        if payload == "a":
            refused.append(key)
            raise Permanent("no such ad", code="ERROR404")
        return await Service.send(service, key, payload)

    service.send = send  # type: ignore[method-assign]
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> str:
            try:
                return str(await ctx.remote("a", service.remote(), "a"))
            except Permanent as error:
                return f"{error.code} {error}, {await ctx.remote('b', service.remote(), 'b')}"

        job = await app.submit(mission)
        await drain(app)

        assert '"ERROR404 no such ad, b!"' == (await app.get(job.id)).result
        assert 1 == len(refused)


async def test_after_a_person_was_asked_what_failed_is_sent_again(database_url):
    service = Service(a=["failed", "completed"])
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> Any:
            try:
                return await ctx.remote("a", service.remote(), "a")
            except Transient:
                return Park("its account is locked")

        job = await app.submit(mission)
        await drain(app)
        assert State.PARKED is (await app.get(job.id)).state

        await app.resume(job.id)
        await drain(app)

        assert (State.DONE, 2) == ((await app.get(job.id)).state, len(service.sent))


# --- what a story leaves behind


@pytest.mark.parametrize("asks", [0, 1, 9])
@pytest.mark.parametrize("end", ["done", "skipped", "dead"])
async def test_e6_an_end_has_what_it_abandoned_stopped_first(database_url, end, asks):
    service = Service(a=["running"])
    service.stopping = asks
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> Any:
            forgotten = asyncio.create_task(ctx.remote("a", service.remote(), "a"))
            await eventually(lambda: was_sent(service))
            if end == "dead":
                raise Permanent("no use", code="ERROR7")
            assert not forgotten.done()
            return Skip("not needed") if end == "skipped" else "done without it"

        job = await app.submit(mission)
        await drain(app)

        found, events = await app.get(job.id), await app.events(job.id)
        told = [str(event.type) for event in events]
        assert (end, ["a"], {"a"}) == (found.state, service.sent, service.stopped)
        assert ("ERROR7" if end == "dead" else None) == found.code
        assert told.index("step_ended") == len(told) - 2, "seen to be over, and then settled"
        [step] = [step for step in await app.steps(job.id) if step.state == "ended"]
        assert '{"status":"canceled","abandoned":true}' == step.value


async def test_e6_what_cannot_be_stopped_is_waited_for(database_url):
    service = Service(a=["running"] * 5 + ["completed"])
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> str:
            asyncio.create_task(ctx.remote("a", service.remote(stop=None), "a"))  # noqa: RUF006
            await eventually(lambda: was_sent(service))
            return "done"

        job = await app.submit(mission)
        await drain(app)

        assert (State.DONE, ["a"]) == ((await app.get(job.id)).state, service.sent)
        assert service.log.count("asked a") >= 6


async def test_e6_no_answer_to_what_became_of_it_is_no_news(database_url):
    service = Service(a=["running"])
    looked: list[str] = []

    async def find(key: str) -> str:
        looked.append(key)
        if len(looked) < 3:
            raise ConnectionError("no answer")
        return "a"

    async def send(key: str, payload: Any) -> str:
        service.log.append("sent a")
        raise ConnectionError("hung up")

    service.send = send  # type: ignore[method-assign]
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> str:
            remote = service.remote(find=find)
            asyncio.create_task(ctx.remote("a", remote, "a"))  # noqa: RUF006
            await eventually(lambda: was_sent(service))
            return "done"

        job = await app.submit(mission)
        await drain(app)

        assert (State.DONE, {"a"}) == ((await app.get(job.id)).state, service.stopped)
        assert ["a"] == service.sent


async def test_e6_what_the_story_asks_after_no_more_is_a_persons(database_url):
    service = Service(a=["running"])
    async with Retoma(database_url) as app:
        told: list[int] = []

        @app.job
        async def mission(ctx: Context) -> str:
            told.append(1)
            if len(told) == 1:
                await ctx.remote("a", service.remote(), "a")
            return "the code was changed meanwhile"

        job = await app.submit(mission)
        await drain(app)
        found = await app.get(job.id)
        assert (State.PARKED, "unknown_remote") == (found.state, found.reason)

        await app.remote.send_again(job.id)  # it is gone
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state


@pytest.mark.parametrize("at_once", [by_gather, by_group])
async def test_e13_a_cancel_stops_every_piece_of_remote_work(database_url, at_once):
    service = Service(a=["running"], b=["running"])
    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> Any:
            return await at_once(ctx, service.remote())

        job = await app.submit(mission)
        async with running(app):
            await eventually(lambda: was_asked(service, "ab"))
            await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))

        assert State.CANCELED is (await app.get(job.id)).state
        assert {"a", "b"} == service.stopped
        assert 2 == len([s for s in await app.steps(job.id) if s.state == "ended"])


async def was_sent(service: Service) -> bool:
    return bool(service.sent)


async def was_asked(service: Service, names: str) -> bool:
    return {f"asked {name}" for name in names} <= set(service.log)


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def test_e6_who_is_stopped_while_the_intent_is_written_leaves_none_that_nobody_ends(
    database_url,
):
    service = Service(a=["running"])

    async def find(_key: str) -> None:
        return None

    async with Retoma(database_url) as app:

        @app.job
        async def mission(ctx: Context) -> str:
            remote = service.remote(find=find, absent_after=0)
            forgotten = asyncio.create_task(ctx.remote("a", remote, "a"))
            await asyncio.sleep(
                0
            )  # it has asked for its intent to be written, and waits for that
            assert not forgotten.done()
            return "done"

        job = await app.submit(mission)
        await drain(app)

        assert (State.DONE, []) == ((await app.get(job.id)).state, service.sent)
        assert [] == [step for step in await app.steps(job.id) if step.state == "begun"]
