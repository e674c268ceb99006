"""Sync steps run elsewhere, and what happens to them there stays there."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from retoma import BadInput, Context, Permanent, Retoma, Retry, State, Transient
from retoma.engine.isolate import Isolate, check_can_travel
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually


@dataclass(frozen=True)
class Page:
    """A value with a shape."""

    number: int
    words: tuple[str, ...] = ()


def read(page: Page, times: int = 1) -> Page:
    assert isinstance(page, Page)
    return Page(page.number * times, (*page.words, "read"))


def crash(_: int) -> None:
    ctypes.string_at(0)


def leave(_: int) -> None:
    os._exit(7)


def refuse(n: int) -> None:
    raise Permanent(f"page {n} is encrypted", code="ENCRYPTED")


def misunderstood(n: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821
    return int(n) + 1


class Stubborn(Exception):
    """Cannot be rebuilt from its message alone."""

    def __init__(self, page: int, line: int) -> None:
        super().__init__(f"page {page}, line {line}")


def raise_stubborn(n: int) -> None:
    raise Stubborn(n, 3)


def unstorable(_: int) -> Any:
    return {1, 2}


def write_down_and_hang(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(os.getpid()))
    threading.Event().wait(60)


def double(n: int) -> int:
    return 2 * n


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture(scope="module")
def isolate() -> Iterator[Isolate]:
    """Children take a second to start: these tests share theirs."""
    isolate = Isolate()
    yield isolate
    isolate.close()


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
    async with asyncio.timeout(20):
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


def read_twice(page: Page) -> Page:
    return read(page, 2)


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


async def test_what_a_child_returns_must_be_storable(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.step("set", unstorable, 1)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "unstorable_result", 1) == (found.state, found.code, found.epoch)
