"""What a story may use, and what it may rely on after a crash."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import pytest

from retoma import Context, Edge, Remote, Retoma, State, Status, Transient
from retoma.engine.rules.errors import DuplicateStep
from retoma.engine.testing import crash_at, drain
from tests.engine.aids import AT_ONCE, eventually, running


class Colour(StrEnum):
    """A value with a name."""

    RED = "red"


@dataclass(frozen=True)
class Offer:
    """A value with a shape."""

    shop: str
    prices: tuple[int, ...]
    colour: Colour = Colour.RED
    better: "Offer | None" = None


class Gauge:
    """How many are inside at once, and how many ever were."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    async def __aenter__(self) -> "Gauge":
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.now -= 1


# --- steps


async def test_e5_a_committed_step_is_read_back_after_a_retry(database_url):
    async with Retoma(database_url) as app:
        calls: list[str] = []

        async def pay(what: str) -> str:
            calls.append(what)
            return f"receipt for {what}"

        @app.job(retry=AT_ONCE)
        async def buy(ctx: Context, what: str) -> str:
            receipt = await ctx.step("pay", pay, what)
            if ctx.attempt == 1:
                raise Transient("the parcel service is closed")
            return receipt

        job = await app.submit(buy, "a chair")
        await drain(app)

        job = await app.get(job.id)
        assert (State.DONE, '"receipt for a chair"') == (job.state, job.result)
        assert ["a chair"] == calls
        assert ["failed", "done"] == [each.ended for each in await app.attempts(job.id)]


@pytest.mark.parametrize("point", ["attempt.before_settle", "step.before_function"])
async def test_e5_a_committed_step_is_read_back_after_a_crash(database_url, point):
    async with Retoma(database_url) as app:
        calls: list[str] = []

        async def note(what: str) -> str:
            calls.append(what)
            return what

        @app.job(retry=AT_ONCE)
        async def two(ctx: Context) -> list[str]:
            return [await ctx.step(name, note, name) for name in ("first", "second")]

        job = await app.submit(two)
        with crash_at(point, on_pass=1 if "settle" in point else 2):
            await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert ["first", "second"] == calls


OFFER = Offer("ana", (1, 2), better=Offer("rui", (3,)))


async def no_annotation():
    return {"pair": (1, 2), "colour": Colour.RED, "offer": OFFER}


async def an_offer() -> Offer:
    return OFFER


async def offers() -> list[Offer]:
    return [OFFER]


async def a_pair() -> tuple[int, str]:
    return (1, "a")


async def a_list_of_pairs() -> list[tuple[int, ...]]:
    return [(1, 2), (3,)]


async def a_colour() -> Colour:
    return Colour.RED


async def by_name() -> dict[str, Offer | None]:
    return {"a": OFFER, "b": None}


async def nothing() -> None:
    return None


async def twice(n: int) -> int:
    return 2 * n


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (an_offer, OFFER),
        (offers, [OFFER]),
        (a_pair, (1, "a")),
        (a_list_of_pairs, [(1, 2), (3,)]),
        (a_colour, Colour.RED),
        (by_name, {"a": OFFER, "b": None}),
        (nothing, None),
        (no_annotation, None),
    ],
)
async def test_a_step_returns_the_same_the_first_time_and_after_a_crash(
    database_url, fn, expected
):
    """MECHANICS 14: a story that works live must not break only when it is resumed."""
    async with Retoma(database_url) as app:
        seen: list[Any] = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            seen.append(await ctx.step("value", fn))
            if ctx.attempt == 1:
                raise Transient("once more")

        await app.submit(story)
        await drain(app)

        first, second = seen
        assert first == second
        assert type(first) is type(second)
        assert repr(first) == repr(second)
        if fn is not no_annotation:
            assert expected == first


Note = Callable[[str], Awaitable[str]]


@dataclass
class Shop:
    """Something that is called; a dataclass like this one has no hash."""

    name: str

    async def __call__(self, price: int) -> Offer:
        return Offer(self.name, (price,))

    async def ask(self, price: int) -> Offer:
        return Offer(self.name, (price,))


@pytest.mark.parametrize(
    "fn", [Shop("ana"), Shop("ana").ask, partial(Shop("ana")), partial(Shop("ana").ask)]
)
async def test_a_step_may_be_a_method_or_an_object_that_is_called(database_url, fn):
    async with Retoma(database_url) as app:
        seen: list[Any] = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            seen.append(await ctx.step("ask", fn, 3))
            if ctx.attempt == 1:
                raise Transient("once more")

        job = await app.submit(story)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert [Offer("ana", (3,))] * 2 == seen


async def asked_twice_in_turn(ctx: Context, note: Note) -> None:
    for n in range(3):
        await ctx.step("fetch", note, str(n))


async def asked_twice_at_once(ctx: Context, note: Note) -> None:
    await asyncio.gather(*(ctx.step("fetch", note, str(n)) for n in range(3)))


async def asked_twice_after_a_crash(ctx: Context, note: Note) -> None:
    await ctx.step("fetch", note, "0")
    if ctx.attempt == 1:
        raise Transient("once more")
    await ctx.step("fetch", note, "1")


async def asked_by_two_loops(ctx: Context, note: Note) -> None:
    await ctx.each("fetch", ["0"], note)
    await ctx.each("fetch", ["1"], note)


async def asked_by_a_loop_and_a_call(ctx: Context, note: Note) -> None:
    await ctx.each("fetch", ["0"], note)
    await ctx.step("fetch", note, "1", key="0")


async def written_twice(ctx: Context, note: Note) -> None:
    await ctx.step("fetch", note, "0")
    await ctx.write("fetch", lambda _: "1")


async def asked_by_itself(ctx: Context, note: Note) -> None:
    async def fetch() -> None:
        await note("0")
        await ctx.step("fetch", fetch)

    await ctx.step("fetch", fetch)


async def asked_by_what_it_calls(ctx: Context, note: Note) -> None:
    async def outer() -> None:
        await note("0")
        await ctx.step("inner", inner)

    async def inner() -> None:
        await ctx.step("outer", outer)

    await ctx.step("outer", outer)


TWICE = [
    *(asked_twice_in_turn, asked_twice_at_once, asked_twice_after_a_crash, asked_by_two_loops),
    *(asked_by_a_loop_and_a_call, written_twice, asked_by_itself, asked_by_what_it_calls),
]


@pytest.mark.parametrize("handler", TWICE, ids=lambda each: each.__name__)
async def test_a_step_asked_for_twice_in_one_attempt_is_refused_and_never_bought_again(
    database_url, handler
):
    """The second call would return the first one's value: a wrong result, silently."""
    async with Retoma(database_url) as app:
        calls: list[str] = []

        async def note(what: str) -> str:
            calls.append(what)
            return what

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await handler(ctx, note)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "permanent", "duplicate_step") == (
            found.state, found.reason, found.code,
        )  # fmt: skip
        assert ["0"] == calls
        [*_, last] = await app.events(job.id)
        assert "step " in last.details["message"]
        assert "DuplicateStep" == last.details["type"]


async def test_the_refusal_of_a_second_call_names_the_step_and_what_to_do(database_url):
    async with Retoma(database_url) as app:
        said: list[str] = []

        @app.job
        async def story(ctx: Context) -> None:
            await ctx.step("double", twice, 1, key="a")
            with pytest.raises(DuplicateStep, match="key") as refused:
                await ctx.step("double", twice, 2, key="a")
            said.append(str(refused.value))

        await app.submit(story)
        await drain(app)

        [message] = said
        assert message.startswith("step double with the key 'a':")
        assert "key=" in message
        assert "ctx.each" in message


async def test_a_call_that_raised_may_be_made_again_in_the_same_attempt(database_url):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def ask(n: int) -> int:
            calls.append(n)
            if len(calls) in (1, 3):
                raise Transient("busy")
            return n

        @app.job
        async def story(ctx: Context) -> list[Any]:
            with pytest.raises(Transient):
                await ctx.step("ask", ask, 1)
            first = await ctx.step("ask", ask, 2)
            with pytest.raises(Transient):
                await ctx.each("loop", [3, 4], ask, concurrency=1)
            return [first, await ctx.each("loop", [5, 6], ask, concurrency=1)]

        job = await app.submit(story)
        await drain(app)

        assert "[2,[5,6]]" == (await app.get(job.id)).result
        assert [1, 2, 3, 5, 6] == calls


async def test_a_loop_that_raised_may_be_run_again_and_reads_back_what_is_done(database_url):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def ask(n: int) -> int:
            calls.append(n)
            if calls == [1, 2]:
                raise Transient("busy")
            return n

        @app.job
        async def story(ctx: Context) -> list[int]:
            with pytest.raises(Transient):
                await ctx.each("loop", [1, 2, 3], ask, concurrency=1)
            return await ctx.each("loop", [1, 2, 3], ask, concurrency=1)

        job = await app.submit(story)
        await drain(app)

        assert "[1,2,3]" == (await app.get(job.id)).result
        assert [1, 2, 2, 3] == calls


async def test_remote_work_asked_for_twice_in_one_attempt_is_refused(database_url):
    async with Retoma(database_url) as app:
        sent: list[str] = []

        async def send(key: str, payload: str) -> str:
            sent.append(payload)
            return "handle"

        async def ask(handle: str) -> Status:
            return Status("done", "0")

        remote = Remote(send=send, ask=ask, statuses={"done": Edge.DONE}, interval=0.001)

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.remote("fetch", remote, "0")
            await ctx.remote("fetch", remote, "1")

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "duplicate_step") == (found.state, found.code)
        assert ["0"] == sent


async def test_name_version_and_key_make_a_step_itself(database_url):
    async with Retoma(database_url) as app:
        calls: list[str] = []

        async def note(what: str) -> str:
            calls.append(what)
            return what

        @app.job
        async def story(ctx: Context) -> list[str]:
            return [
                await ctx.step("a", note, "first"),
                await ctx.step("a", note, "newer", version=2),
                await ctx.step("a", note, "keyed", key="k"),
            ]

        job = await app.submit(story)
        await drain(app)

        assert '["first","newer","keyed"]' == (await app.get(job.id)).result
        assert ["first", "newer", "keyed"] == calls


async def test_every_saved_step_has_its_event_and_moves_the_checkpoint(database_url):
    async with Retoma(database_url) as app:

        async def nothing_much() -> None: ...

        @app.job
        async def story(ctx: Context) -> None:
            await ctx.step("read", nothing_much)
            await ctx.step("label", nothing_much)

        job = await app.submit(story)
        await drain(app)

        events = await app.events(job.id)
        assert ["submitted", "claimed", "step_saved", "step_saved", "done"] == [
            event.type for event in events
        ]
        assert "label" == (await app.get(job.id)).checkpoint


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b", None])
async def test_a_step_without_a_proper_name_is_refused(database_url, name):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.step(name, an_offer)

        job = await app.submit(story)
        await drain(app)

        assert (
            "name of 1 to 200 characters" in (await app.events(job.id))[-1].details["message"]
        )
        assert [] == await app.steps(job.id)


@pytest.mark.parametrize(
    "how",
    [{"key": 3}, {"key": None}, {"key": "a\0b"}, {"key": "\ud800"}, {"version": "2"},
     {"version": 0}, {"version": True}],
    ids=repr,
)  # fmt: skip
async def test_e5_a_step_that_would_not_be_found_again_is_refused(database_url, how):
    """Stored as text, the key 3 would be another one after a crash, and the step run twice."""
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def pay() -> None:
            calls.append(1)

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.step("pay", pay, **how)

        job = await app.submit(story)
        await drain(app)

        assert "a step's" in (await app.events(job.id))[-1].details["message"]
        assert [] == calls


async def test_an_async_function_is_not_for_a_thread(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.step("offer", an_offer, where="thread")

        job = await app.submit(story)
        await drain(app)

        assert "is async" in (await app.events(job.id))[-1].details["message"]


async def endless() -> AsyncIterator[int]:
    yield 1


def endless_here() -> Iterator[int]:
    yield 1


NO_STEPS: list[tuple[Any, str]] = [
    (lambda: twice(1), "is a coroutine: give the function itself, not what calling it returns"),
    (lambda: endless, "is a generator function: return one value"),
    (lambda: endless_here, "is a generator function: return one value"),
    (lambda: 3, "3 is no function"),
    (lambda: None, "None is no function"),
]


@pytest.mark.parametrize(
    ("given", "why"),
    NO_STEPS,
    ids=["coroutine", "async generator", "generator", "number", "none"],
)
@pytest.mark.parametrize("verb", ["step", "write"])
async def test_what_is_no_function_that_returns_one_value_cannot_be_a_step(
    database_url, given, why, verb, recwarn
):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await getattr(ctx, verb)("odd", given())

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "bad_input") == (found.state, found.code)
        assert why in (await app.events(job.id))[-1].details["message"]
        gc.collect()
        assert [] == [each for each in recwarn if "never awaited" in str(each.message)]


# --- the durable loop


async def test_a_loop_gives_its_results_in_the_order_of_its_items(database_url):
    async with Retoma(database_url) as app:

        async def double(n: int) -> int:
            await asyncio.sleep(0.02 / n)
            return 2 * n

        @app.job
        async def story(ctx: Context) -> list[int]:
            return await ctx.each("double", range(1, 21), double, key=lambda n: f"n{n}")

        job = await app.submit(story)
        await drain(app)

        assert str(list(range(2, 41, 2))).replace(" ", "") == (await app.get(job.id)).result
        assert {f"n{n}" for n in range(1, 21)} == {s.key for s in await app.steps(job.id)}


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_loop_does_no_more_at_once_than_it_may(database_url, concurrency):
    async with Retoma(database_url) as app:
        gauge = Gauge()

        async def visit(_: int) -> None:
            async with gauge:
                await asyncio.sleep(0.005)

        @app.job
        async def story(ctx: Context) -> None:
            await ctx.each("visit", range(12), visit, concurrency=concurrency)

        await app.submit(story)
        await drain(app)

        assert (12, concurrency) == (gauge.total, gauge.most)


async def test_a_resumed_loop_skips_what_is_done(database_url):
    async with Retoma(database_url) as app:
        visited: list[str] = []

        async def visit(page: str) -> str:
            visited.append(page)
            if page == "c" and visited.count("c") == 1:
                raise Transient("the site is down")
            return page.upper()

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> list[str]:
            return await ctx.each("visit", "abcd", visit, key=str, concurrency=1)

        job = await app.submit(story)
        await drain(app)

        assert '["A","B","C","D"]' == (await app.get(job.id)).result
        assert ["a", "b", "c", "c", "d"] == visited


async def test_the_first_error_of_a_loop_stops_and_joins_the_others(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge()
        inside_when_it_failed: list[int] = []

        async def visit(n: int) -> None:
            async with gauge:
                if n == 3:
                    raise Transient("three is broken")
                await asyncio.sleep(60)

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> str:
            try:
                await ctx.each("visit", range(10), visit, concurrency=4)
            except Transient as error:
                inside_when_it_failed.append(gauge.now)
                return str(error)
            return "?"

        job = await app.submit(story)
        await drain(app)

        assert '"three is broken"' == (await app.get(job.id)).result
        assert [0] == inside_when_it_failed
        assert 4 == gauge.total


async def test_two_items_of_a_loop_may_not_have_the_same_key(database_url):
    async with Retoma(database_url) as app:
        calls: list[str] = []

        async def note(what: str) -> None:
            calls.append(what)

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.each("note", ["a", "b", "a"], note, key=str)

        job = await app.submit(story)
        await drain(app)

        assert "have the key 'a'" in (await app.events(job.id))[-1].details["message"]
        assert [] == calls


async def test_an_empty_loop_is_done_at_once_and_none_at_a_time_is_refused(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> list[Any]:
            none: list[int] = []
            empty = await ctx.each("none", none, twice)
            await ctx.each("none", [1], twice, concurrency=0)
            return empty

        job = await app.submit(story)
        await drain(app)

        assert "concurrency is at least 1" in (await app.events(job.id))[-1].details["message"]


# --- nothing outlives its attempt


async def test_nothing_of_an_attempt_still_runs_when_it_is_settled(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge()

        all_begun = asyncio.Event()

        async def long() -> None:
            async with gauge:
                if gauge.now == 3:
                    all_begun.set()
                await asyncio.sleep(60)

        @app.job
        async def story(ctx: Context) -> str:
            beside = [asyncio.create_task(ctx.step(f"long{n}", long)) for n in range(3)]
            await all_begun.wait()
            return f"through, beside {len(beside)}"

        job = await app.submit(story)
        async with running(app):
            await eventually(lambda: ended(app, job.id))

            assert (3, 0) == (gauge.total, gauge.now)
        assert '"through, beside 3"' == (await app.get(job.id)).result


async def test_a_step_does_not_begin_after_its_attempt_was_settled(database_url):
    """A task the story forgot wakes up late: nothing outside may be touched then."""
    async with Retoma(database_url) as app:
        calls: list[str] = []
        settled = asyncio.Event()
        tasks: list[asyncio.Task[Any]] = []

        async def pay() -> None:
            calls.append("paid")

        @app.job
        async def story(ctx: Context) -> None:
            async def forgotten() -> None:
                await settled.wait()
                await ctx.step("pay", pay)

            tasks.append(asyncio.create_task(forgotten()))

        job = await app.submit(story)
        async with running(app):
            await eventually(lambda: ended(app, job.id))
            settled.set()
            [outcome] = await asyncio.gather(*tasks, return_exceptions=True)

        assert [] == calls
        assert outcome is not None


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


# --- progress, evidence, what it knows


async def test_progress_is_seen_while_the_job_runs(database_url):
    async with Retoma(database_url) as app:
        seen = asyncio.Event()

        @app.job
        async def story(ctx: Context) -> None:
            await ctx.progress(0.25, "a quarter")
            await seen.wait()

        job = await app.submit(story)
        async with running(app):

            async def told() -> bool:
                return (await app.get(job.id)).progress is not None

            await eventually(told)
            found = await app.get(job.id)
            seen.set()

        assert (0.25, "a quarter", State.RUNNING) == (found.progress, found.note, found.state)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
async def test_a_progress_that_is_no_share_is_refused(database_url, share):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.progress(share)

        job = await app.submit(story)
        await drain(app)

        assert "from 0 to 1" in (await app.events(job.id))[-1].details["message"]


async def test_evidence_is_kept_with_the_job_and_told_in_its_timeline(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> None:
            await ctx.attach("page.html", "<p>olá</p>")
            await ctx.attach("shot.png", b"\x89PNG")

        job = await app.submit(story)
        await drain(app)

        told = [e.details["name"] for e in await app.events(job.id) if e.type == "evidence"]
        assert ["page.html", "shot.png"] == told


async def test_a_story_knows_its_job_its_epoch_its_attempt_and_its_generation(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> list[int]:
            if ctx.attempt == 1:
                raise Transient("once more")
            return [ctx.job, ctx.epoch, ctx.attempt, ctx.generation]

        job = await app.submit(story)
        await drain(app)
        first = (await app.get(job.id)).result
        await app.retry(job.id)
        await drain(app)

        assert f"[{job.id},2,2,1]" == first
        assert f"[{job.id},4,2,2]" == (await app.get(job.id)).result
