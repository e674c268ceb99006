"""A kind of job: its story, its payload, and how it is tried."""

import gc
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from retoma import BadInput, Context, Retry
from retoma.codec import Undecodable, Unstorable
from retoma.engine.handlers.kinds import Kind, Kinds, job
from retoma.engine.rules.errors import UnknownKind


@dataclass(frozen=True)
class Request:
    """A payload with a shape."""

    product: str
    n: int = 1


async def story(ctx: Context, payload: Any) -> Any:
    return payload


def kind_of(fn: Any, **how: Any) -> Kind:
    kind = (job(**how)(fn) if how else job(fn)).kind
    assert isinstance(kind, Kind)
    return kind


def test_a_kind_is_called_like_its_function_and_waits_in_a_queue_of_that_name():
    kind = kind_of(story)

    assert ("story", "story", 1, "story@1") == (kind.name, kind.queue, kind.version, kind.tag)
    assert Retry() == kind.retry


def test_another_version_waits_in_a_queue_of_its_own():
    kind = kind_of(story, name="quote", version=2)

    assert ("quote@2", "quote@2") == (kind.tag, kind.queue)


def test_the_function_stays_what_it_was():
    async def mine(ctx: Context) -> int:
        return 1

    assert mine is job(mine)


@pytest.mark.parametrize(("timeout", "length"), [("5m", 300.0), (2, 2.0), (None, None)])
def test_a_timeout_is_told_in_seconds(timeout, length):
    assert length == kind_of(story, timeout=timeout).timeout


@pytest.mark.parametrize(
    "how",
    [
        {"timeout": 0},
        {"timeout": "soon"},
        {"version": 0},
        {"priority": 1001},
        {"name": "a\nb"},
        {"name": "x" * 101},
        {"queue": "a\0b"},
    ],
    ids=str,
)
def test_what_no_rule_allows_is_refused(how):
    with pytest.raises(BadInput):
        kind_of(story, **how)


class Object:
    async def method(self, ctx: Context) -> None: ...

    async def __call__(self, ctx: Context) -> None: ...


async def generate(ctx: Context) -> AsyncIterator[int]:
    yield 1


def generate_here() -> Iterator[int]:
    yield 1


NO_JOBS: list[tuple[Any, str]] = [
    (Object().method, "it is a bound method: a job is a function"),
    (Object(), "it is no function: write one with def that calls it"),
    (Object, "it is no function"),
    (partial(story, payload=1), "it is no function"),
    (generate, "it is a generator function: return one value"),
    (generate_here, "it is a generator function"),
    (3, "it is no function"),
]


@pytest.mark.parametrize(("fn", "why"), NO_JOBS, ids=lambda each: type(each).__name__)
def test_what_is_no_function_of_its_own_cannot_be_a_job(fn, why):
    with pytest.raises(BadInput, match=f"cannot be a job, {why}"):
        job(fn)


def test_a_coroutine_cannot_be_a_job_and_is_not_left_unawaited(recwarn):
    asked: Any = Object().method(None)  # type: ignore[arg-type]

    with pytest.raises(BadInput, match="a coroutine: give the function itself"):
        job(asked)
    del asked
    gc.collect()
    assert [] == list(recwarn)


def test_a_retry_that_is_a_number_is_refused_with_how_to_say_it():
    attempts: Any = 3

    with pytest.raises(BadInput, match=r"story: retry is a Retry, such as Retry\(attempts=3\)"):
        job(retry=attempts)(story)


def test_a_story_takes_one_payload():
    async def many(ctx: Context, a: int, b: int) -> None: ...

    with pytest.raises(BadInput, match="takes one payload, not 2; put them together"):
        job(many)


async def test_a_story_may_take_nothing():
    @job
    async def alone(ctx: Context) -> str:
        return "done"

    kind = alone.kind  # type: ignore[attr-defined]
    nobody: Any = None
    assert kind.takes_nothing
    assert "done" == await kind.story(nobody, None)


def test_a_payload_is_stored_as_json_and_comes_back_in_its_type():
    async def typed(ctx: Context, request: Request) -> None: ...

    kind = kind_of(typed)
    text = kind.encoded(Request("chair"))

    assert '{"product":"chair","n":1}' == text
    assert Request("chair") == kind.payload(text)
    assert Request("desk") == kind.payload(kind.encoded({"product": "desk"}))


def test_a_payload_that_does_not_fit_is_refused_at_the_door():
    async def typed(ctx: Context, request: Request) -> None: ...

    with pytest.raises(Undecodable):
        kind_of(typed).encoded({"price": 3})
    with pytest.raises(Unstorable):
        kind_of(story).encoded({"when": object()})


def test_a_sync_function_is_a_job_of_one_step_if_it_can_travel():
    assert not kind_of(at_the_top).takes_nothing
    with pytest.raises(BadInput, match="not at the top of a module"):
        job(name="nameless")(lambda n: n)


def at_the_top(n: int) -> int:
    return n


def test_an_annotation_only_a_type_checker_knows_leaves_the_payload_plain():
    async def typed(ctx: Context, request: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert {"a": 1} == kind_of(typed).payload('{"a":1}')


# --- the kinds a process knows


def test_a_kind_is_found_by_its_function_by_itself_and_by_name_the_newest():
    kinds = Kinds()
    old, new = kind_of(story, name="quote"), kind_of(partial_story(), name="quote", version=2)
    kinds.add(old)
    kinds.add(new)

    assert new is kinds.of("quote")
    assert old is kinds.of(old)
    assert old is kinds.tagged("quote", 1)
    assert ["quote@1", "quote@2"] == kinds.tags()
    assert ["quote", "quote@2"] == kinds.queues()


def partial_story() -> Any:
    async def newer(ctx: Context, payload: Any) -> Any:
        return payload

    return newer


@pytest.mark.parametrize("unknown", ["invoice", at_the_top, partial(at_the_top), 3])
def test_what_was_not_registered_is_unknown_here(unknown):
    kinds = Kinds()
    kinds.add(kind_of(story, name="quote"))

    with pytest.raises(UnknownKind, match="known: quote"):
        kinds.of(unknown)


def test_a_name_and_version_are_registered_once():
    kinds = Kinds()
    kinds.add(kind_of(story, name="quote"))

    with pytest.raises(BadInput, match="already a job quote of version 1"):
        kinds.add(kind_of(partial_story(), name="quote"))
