"""Sync steps run elsewhere, and what happens to them there stays there."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retoma import BadInput, Context, Permanent, Retoma, Retry, State, Transient
from retoma.engine.isolation.children import Children, Judge
from retoma.engine.isolation.isolate import (
    AHEAD,
    CHILDREN,
    THREADS,
    ChildDied,
    Isolate,
    Limits,
    check_can_travel,
)
from retoma.engine.rules.job import Held
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually
from tests.engine.calls import (
    MEGABYTE,
    Page,
    crash,
    double,
    eat,
    hold_the_interpreter,
    leave,
    leave_silently,
    misunderstood,
    pause_for,
    raise_stubborn,
    read,
    read_twice,
    refuse,
    spin,
    unstorable,
    who,
    write_and_wait,
    write_down_and_hang,
)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture(scope="module")
def shared() -> Iterator[Isolate]:
    """Children take a second to start: these tests share theirs."""
    isolate = Isolate()
    yield isolate
    isolate.close()


@pytest.fixture
def isolate(shared: Isolate) -> Isolate:
    """A life has one loop; here each test brings its own."""
    shared._room = asyncio.Semaphore(CHILDREN + AHEAD)
    shared._free_threads = asyncio.Semaphore(THREADS)
    return shared


async def test_a_child_gets_its_arguments_in_their_types_and_answers_in_json(isolate):
    text = await isolate.in_child(read, (Page(3, ("a",)), 2))
    answers = await asyncio.gather(*(isolate.in_child(double, (n,)) for n in range(9)))

    assert '{"number":6,"words":["a","read"]}' == text
    assert [str(2 * n) for n in range(9)] == answers


async def test_a_dead_child_is_known_by_its_exit_code_and_hurts_no_neighbour(isolate):
    outcomes = await asyncio.gather(
        isolate.in_child(crash, (1,)),
        *(isolate.in_child(double, (n,)) for n in range(4)),
        isolate.in_child(leave, (1,)),
        return_exceptions=True,
    )

    segfault, *fine, left = outcomes
    assert isinstance(segfault, Transient)
    assert "child_died" == segfault.code
    assert "crash: its process ended with exit code -11" in str(segfault)
    assert "leave: its process ended with exit code 7" in str(left)
    assert ["0", "2", "4", "6"] == fine


async def test_an_error_of_a_child_comes_home_as_it_was_raised(isolate):
    with pytest.raises(Permanent, match="page 3 is encrypted") as refused:
        await isolate.in_child(refuse, (3,))

    assert "ENCRYPTED" == refused.value.code


async def test_an_error_that_cannot_travel_is_still_an_error_and_the_next_child_works(isolate):
    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError, match="Stubborn: page 1, line 3"):
            await isolate.in_child(raise_stubborn, (1,))
        assert "4" == await isolate.in_child(double, (2,))


async def test_an_annotation_nobody_knows_leaves_the_argument_plain(isolate):
    assert "2" == await isolate.in_child(misunderstood, (1,))


async def test_a_child_whose_step_is_stopped_is_killed(isolate, tmp_path):
    note = tmp_path / "pid"
    task = asyncio.create_task(isolate.in_child(write_down_and_hang, (str(note),)))

    async def written() -> str:
        return note.read_text() if note.exists() else ""

    pid = int(await eventually(written))
    task.cancel()

    async def gone() -> bool:
        return not alive(pid)

    assert await eventually(gone)


@pytest.mark.parametrize("fn", [lambda n: n, Page.__init__, Isolate().close])
def test_what_has_no_name_of_its_own_cannot_travel(fn):
    with pytest.raises(BadInput, match='make it async, or ask for where="thread"'):
        check_can_travel(fn)


async def test_a_thread_takes_anything_and_does_not_hold_up_the_loop(isolate):
    release = threading.Event()
    task = asyncio.create_task(isolate.in_thread(lambda: release.wait(20), ()))
    await asyncio.sleep(0.01)
    held = task.done()
    release.set()

    assert (False, True) == (held, await task)


def test_nothing_is_started_before_it_is_needed():
    isolate = Isolate()
    before = threading.active_count()

    isolate.close()

    assert before == threading.active_count()


# --- whose death it was


class LateJudge(Judge):
    """Hears nothing from now on, until a dead child was seen by who looks for them, twice."""

    deaf = False
    looks = 0  # since the first death

    def process_next_message(self, timeout: float) -> None:
        while self.deaf and self.looks < 2:
            threading.Event().wait(0.01)
        super().process_next_message(timeout)

    def update_workers(self) -> None:
        super().update_workers()
        self.looks += bool(self.looks or self._dead)


class LateChildren(Children):
    judge = LateJudge


async def begun(isolate: Isolate, calls: int) -> bool:
    return calls == sum(each.pid is not None for each in isolate._calls)


@pytest.mark.parametrize("neighbours", [0, 1])
async def test_a_child_that_dies_before_it_was_heard_answers_for_itself_alone(
    tmp_path, neighbours
):
    """Without a neighbour at work its pool was said to be broken; beside one it was forgotten."""
    isolate = Isolate(LateChildren)
    try:
        gate = tmp_path / "gate"
        await isolate.in_child(double, (1,))  # children are there
        beside = [
            asyncio.create_task(isolate.in_child(write_and_wait, (str(gate),)))
            for _ in range(neighbours)
        ]
        await eventually(lambda: begun(isolate, neighbours))
        pool, judge = isolate._pool(False), isolate._pool(False)._pool_manager
        assert isinstance(judge, LateJudge)
        judge.deaf = True

        with pytest.raises(ChildDied, match="SIGSEGV") as died:
            await isolate.in_child(crash, (1,))

        gate.touch()
        assert -11 == died.value.exit_code
        assert ["1"] * neighbours == [await each for each in beside]
        assert ["begun"] * neighbours == [
            line for log in tmp_path.glob("gate.log") for line in log.read_text().splitlines()
        ]
        assert pool is isolate._pool(False)  # nothing broke
    finally:
        isolate.close()


async def test_a_child_that_leaves_with_no_error_in_the_middle_of_its_call_is_dead_too(isolate):
    with pytest.raises(ChildDied, match="exit code 0"):
        await isolate.in_child(leave_silently, (1,))

    assert "4" == await isolate.in_child(double, (2,))


async def test_a_child_that_is_killed_at_rest_is_replaced_and_harms_nobody(isolate, tmp_path):
    await isolate.in_child(double, (1,))
    gate = tmp_path / "gate"
    busy = asyncio.create_task(isolate.in_child(write_and_wait, (str(gate),)))
    await eventually(lambda: begun(isolate, 1))
    pool = isolate._pool(False)
    at_work = next(each.pid for each in isolate._calls)
    workers = pool._pool_manager.worker_manager.workers
    [idle] = [pid for pid in tuple(workers) if pid != at_work][:1]

    os.kill(idle, signal.SIGKILL)
    await eventually(lambda: gone(idle))
    answers = await asyncio.gather(*(isolate.in_child(double, (n,)) for n in range(5)))
    gate.touch()

    assert ["0", "2", "4", "6", "8"] == answers
    assert "1" == await busy
    assert pool is isolate._pool(False)


async def gone(pid: int) -> bool:
    return not alive(pid)


class Stillborn(Children):
    """Its children never get so far as to be given anything."""

    def __init__(self, *size: Any, **how: Any) -> None:
        super().__init__(*size, **{**how, "initializer": os._exit, "initargs": [3]})


async def test_where_no_child_lives_a_call_says_so():
    isolate = Isolate(Stillborn)
    try:
        with pytest.raises(Transient, match="no child process can be started"):
            await isolate.in_child(double, (1,))
    finally:
        isolate.close()


# --- as steps of a story


async def test_a_segfault_costs_its_own_attempt_and_no_neighbour(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, n: int) -> Any:
            if n == 0 and ctx.attempt == 1:
                return await ctx.step("crash", crash, n)
            doubled = await ctx.step("double", double, n)
            page = await ctx.step("read", read, Page(doubled))
            return [page.number, isinstance(page, Page)]

        batch = await app.submit_many(story, range(3))
        await drain(app)

        jobs = await app.jobs(batch=batch.id)
        assert ["[4,true]", "[2,true]", "[0,true]"] == [job.result for job in jobs]
        assert ["failed", "done"] == [a.ended for a in await app.attempts(jobs[-1].id)]
        failed = next(e for e in await app.events(jobs[-1].id) if e.type == "failed")
        assert "child_died" == failed.details["code"]
        assert "exit code -11" in failed.details["message"]


async def test_a_lambda_is_refused_with_a_sentence_unless_it_asks_for_a_thread(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, where: str | None) -> Any:
            return await ctx.step("add", lambda a, b: a + b, 1, 2, where=where)

        refused, fine = await app.submit(story, None), await app.submit(story, "thread")
        await drain(app)

        found = await app.get(refused.id)
        message = (await app.events(refused.id))[-1].details["message"]
        assert State.DEAD is found.state
        assert "is sync and not at the top of a module" in message
        assert "3" == (await app.get(fine.id)).result


async def test_a_sync_function_is_a_job_of_one_step(database_url):
    async with Retoma(database_url) as app:
        app.job(retry=AT_ONCE)(read_twice)

        job = await app.submit(read_twice, Page(2))
        await drain(app)

        assert '{"number":4,"words":["read"]}' == (await app.get(job.id)).result
        assert ["read_twice"] == [step.name for step in await app.steps(job.id)]


async def test_a_child_whose_attempt_takes_too_long_is_killed(database_url, tmp_path):
    async with Retoma(database_url) as app:
        note = tmp_path / "pid"

        @app.job(timeout=1.5, retry=Retry(attempts=9, base=0, cap=0))
        async def story(ctx: Context) -> Any:
            if not note.exists():  # a child may take longer than that to start
                await ctx.step("hang", write_down_and_hang, str(note))
            return "the next one did not hang"

        job = await app.submit(story)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert "failed" == (await app.attempts(job.id))[0].ended
        assert not alive(int(note.read_text()))
        stacks = [
            e.details.get("child_stack", "") for e in await app.events(job.id) if e.details
        ]
        assert any("in write_down_and_hang" in stack for stack in stacks)


async def test_what_a_child_returns_must_be_storable(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.step("set", unstorable, 1)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.PARKED, "unstorable_result", 1) == (found.state, found.code, found.epoch)


# --- limits


async def test_e30_a_child_that_eats_too_much_is_known_and_the_next_call_is_not_hungry(isolate):
    limits = Limits(memory=200 * MEGABYTE)

    with pytest.raises(
        ChildDied, match=r"eat ran out of memory: it may use 200,000,000"
    ) as eaten:
        await isolate.in_child(eat, (1_000,), limits=limits)
    fine = await isolate.in_child(eat, (50,), limits=limits)

    assert "out_of_memory" == eaten.value.code
    assert "in eat" in eaten.value.stack
    assert "50" == fine
    assert "300" == await isolate.in_child(eat, (300,)), "the limit was for that call alone"


@pytest.mark.parametrize("fn", [spin, hold_the_interpreter])
async def test_e30_a_child_past_its_time_is_killed_and_says_where_it_was(isolate, fn):
    with pytest.raises(TimeoutError, match=f"{fn.__name__} took longer than 0.3 s") as late:
        await isolate.in_child(fn, (1,), limits=Limits(timeout=0.3))

    assert f"in {fn.__name__}" in late.value.__notes__[0]
    assert "4" == await isolate.in_child(double, (2,))


async def test_e30_a_child_past_its_time_is_gone(isolate, tmp_path):
    note = tmp_path / "pid"
    with pytest.raises(TimeoutError):
        await isolate.in_child(write_down_and_hang, (str(note),), limits=Limits(timeout=2.0))

    async def gone() -> bool:
        return not alive(int(note.read_text()))

    assert await eventually(gone)


async def test_a_call_let_go_before_it_began_never_begins_and_costs_no_child(tmp_path):
    isolate, notes = Isolate(), [tmp_path / str(n) for n in range(4)]
    try:
        for note in notes:  # each of them given up at once: before a child can have started
            call = asyncio.create_task(isolate.in_child(write_down_and_hang, (str(note),)))
            while not isolate._calls:  # noqa: ASYNC110 — it has no event for this
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        before = children()
        await isolate.in_child(who, (1,))
        await asyncio.sleep(0.3)  # a pool needs a tenth of it to kill

        assert [False] * 4 == [note.exists() for note in notes]
        assert before <= children()
    finally:
        isolate.close()


def children() -> set[str]:
    """The pids of this process's children, without asking how any of them fares."""
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


async def test_a_step_in_time_is_not_disturbed_and_waiting_for_a_child_is_not_counted(isolate):
    limits = Limits(timeout=4.0)
    naps = [isolate.in_child(pause_for, (0.6,), limits=limits) for _ in range(8 * CHILDREN)]

    assert ['"rested"'] * 8 * CHILDREN == await asyncio.gather(*naps)


async def test_processor_time_is_limited_by_the_call_and_not_by_the_age_of_the_child(isolate):
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"spin used more than .* of processor time"):
            await isolate.in_child(spin, (1,), limits=Limits(cpu=0.5))

    assert "4" == await isolate.in_child(double, (2,), limits=Limits(cpu=0.5))


async def test_a_dead_child_tells_its_signal_and_where_it_was(isolate):
    with pytest.raises(ChildDied) as died:
        await isolate.in_child(crash, (1,))

    assert (-11, "SIGSEGV") == (died.value.details["exit_code"], died.value.details["signal"])
    assert "in crash" in str(died.value.details["child_stack"])


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_child_killed_while_it_had_nothing_to_do_costs_nobody_anything(isolate):
    pid = int(await isolate.in_child(who, (1,)))

    async def at_rest() -> bool:
        return _state_of(pid) == "S"

    # Its answer is here before it has let go of the pipe: only who sleeps has nothing to do.
    await eventually(at_rest)
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(isolate.in_child(double, (n,)) for n in range(6)))

    assert [str(2 * n) for n in range(6)] == answers


async def test_a_child_asked_for_its_stack_goes_on(isolate):
    owner = Held(1, 1)
    call = asyncio.create_task(isolate.in_child(pause_for, (1.5,), owner=owner))

    async def told() -> Any:
        return await isolate.stacks(owner)

    [stack] = await eventually(told)

    assert "in pause_for" in stack
    assert [] == await isolate.stacks(Held(1, 2))
    assert '"rested"' == await call


async def test_a_thread_that_is_left_alone_keeps_its_seat_until_it_ends(isolate):
    release = threading.Event()
    isolate._free_threads = asyncio.Semaphore(1)
    left = asyncio.create_task(isolate.in_thread(lambda: release.wait(20), ()))
    await asyncio.sleep(0.01)
    left.cancel()
    next_one = asyncio.create_task(isolate.in_thread(lambda: "next", ()))
    await asyncio.sleep(0.05)
    deserted, waiting = isolate.deserted, not next_one.done()
    release.set()

    assert (1, True) == (deserted, waiting)
    assert "next" == await next_one
    assert 0 == isolate.deserted


async def test_a_thread_that_cannot_be_started_fails_its_step_and_keeps_no_seat(isolate):
    isolate._free_threads = asyncio.Semaphore(1)
    usual = threading.stack_size(1 << 46)  # bytes: no system has them
    try:
        with pytest.raises(Transient, match="can't start new thread"):
            await isolate.in_thread(lambda: "never", ())
    finally:
        threading.stack_size(usual)

    async with asyncio.timeout(10):
        assert "next" == await isolate.in_thread(lambda: "next", ())
    assert 0 == isolate.deserted


async def test_what_a_thread_raises_comes_home_even_if_no_future_takes_it(isolate):
    def stop() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await isolate.in_thread(stop, ())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": 0}, "a timeout is longer than nothing"),
        ({"timeout": "soon"}, "is no length of time"),
        ({"cpu": -1}, "is no length of time"),
        ({"cpu": 0}, "a cpu is longer than nothing"),
        ({"memory": "1KB"}, "a child needs some"),
        ({"memory": "lots"}, "is no size"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(given, said):
    with pytest.raises(BadInput, match=said):
        Limits.read("read", **{"timeout": None, "cpu": None, "memory": None, **given})


async def test_a_step_says_its_limits_and_those_of_its_kind_hold_where_it_does_not(
    database_url,
):
    async with Retoma(database_url) as app:

        @app.job(memory="200MB", retry=Retry(attempts=1))
        async def story(ctx: Context, own: str | None) -> Any:
            return await ctx.step("eat", eat, 300, memory=own)

        starved, fed = await app.submit(story, None), await app.submit(story, "1GB")
        await drain(app)

        found, event = await app.get(starved.id), (await app.events(starved.id))[-1]
        assert (State.DEAD, "out_of_memory") == (found.state, found.code)
        assert 83 == event.details["exit_code"]
        assert "in eat" in event.details["child_stack"]
        assert "300" == (await app.get(fed.id)).result


async def test_limits_of_a_child_are_refused_for_what_runs_in_none(database_url):
    async with Retoma(database_url) as app:

        async def nothing() -> None:
            pass

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.step("nothing", nothing, memory="1GB")

        job = await app.submit(story)
        await drain(app)

        event = (await app.events(job.id))[-1]
        assert ("buried", "bad_input") == (event.type, event.details["code"])
        assert "it does not run in one" in event.details["message"]
