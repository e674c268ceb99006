"""Bad input at every door: a clear error, nothing changed. A result nobody can store ends the job (E22)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retoma import BadInput, Context, NotFound, Park, Retoma, Retry, Skip, Snooze, State
from retoma.codec import Misfit, Unstorable, encode
from retoma.db import adhoc
from retoma.engine.query import Event
from retoma.engine.rules.errors import Refused, UnknownKind
from retoma.engine.rules.events import EventType
from retoma.engine.run.submission import SubmitOptions

COUNTS = adhoc(
    "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM events),"
    " (SELECT count(*) FROM batches), (SELECT count(*) FROM steps),"
    " (SELECT count(*) FROM tallies), (SELECT count(*) FROM audit)"
)
EVIDENCE = adhoc(
    "SELECT e.name, b.bytes FROM job_evidence e JOIN evidence b ON b.sha256 = e.sha256"
    " WHERE e.job = :job"
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
A_HUNDRED_MEGABYTES = 100 * 1024 * 1024


@dataclass(frozen=True)
class Request:
    product: str
    amount: int


def new_app(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def quote(ctx: Context, request: Request) -> None: ...

    @app.job
    async def anything(ctx: Context, payload: Any) -> Any:
        return payload

    @app.job
    async def nothing(ctx: Context) -> None: ...

    return app


async def counts(app: Retoma) -> Any:
    return await (await app.database()).read(lambda tx: tx.one(COUNTS))


@asynccontextmanager
async def unchanged(app: Retoma) -> AsyncIterator[None]:
    before = await counts(app)
    yield
    assert before == await counts(app), "something was written all the same"


async def refuses(app: Retoma, ask: Any, error: type[Exception], gist: str) -> None:
    async with unchanged(app):
        with pytest.raises(error, match=gist):
            await ask


# — submitting —

PAYLOADS: list[tuple[Any, str]] = [
    (object(), "JSON has no form for object"),
    ({1, 2}, "JSON has no form for set"),
    (b"bytes", "a bytes comes back only where an annotation says so"),
    (float("nan"), "NaN|not a number|nan"),
    ({"deep": [1, float("inf")]}, r"\$\.deep\[1\]"),
    ("a\0b", "NUL"),
    ({"a\0": 1}, "NUL"),
    ("\ud800", "surrogate"),
    ({1: "one"}, "a key must be text"),
    ({("a", "b"): 1}, "a key must be text"),
    (Request, "it is a class, not a value"),
    (10**4400, "number|digits"),
    (json.loads("[" * 200 + "]" * 200), "nested deeper"),
    ("x" * A_HUNDRED_MEGABYTES, "over 16,777,216 bytes; attach it as evidence"),
]


@pytest.mark.parametrize(("payload", "gist"), PAYLOADS, ids=[gist for _, gist in PAYLOADS])
async def test_a_payload_that_cannot_be_stored_is_refused_where_it_is_given(
    database_url, payload, gist
):
    async with new_app(database_url) as app:
        await refuses(app, app.submit("anything", payload), Unstorable, gist)
        await refuses(app, app.submit_many("anything", [1, payload]), Unstorable, gist)


async def test_a_payload_that_contains_itself_is_refused(database_url):
    loop: list[Any] = []
    loop.append(loop)
    async with new_app(database_url) as app:
        await refuses(app, app.submit("anything", loop), Unstorable, "nested deeper")


@pytest.mark.parametrize(
    "payload", [{"product": "chair"}, {"product": 1, "amount": 2}, "chair", None, [1]]
)
async def test_a_payload_of_another_shape_than_the_story_takes_is_refused(
    database_url, payload
):
    async with new_app(database_url) as app:
        await refuses(app, app.submit("quote", payload), Misfit, r"at \$")
        await refuses(app, app.submit_many("quote", [payload]), Misfit, r"at \$")


def test_doors() -> None:
    """Every submit option has a line below, so that a new one gets one too."""

    tried = {
        *("key", "priority", "run_at", "delay", "deadline"),
        *("correlation", "traceparent", "actor"),
    }
    assert tried == set(SubmitOptions.__annotations__)


PARAMETERS: list[tuple[dict[str, Any], str]] = [
    ({"key": ""}, "a key has 1 to 500 printable characters"),
    ({"key": "x" * 501}, "a key has 1 to 500"),
    ({"key": "a\nb"}, "printable"),
    ({"key": "a\0b"}, "printable"),
    ({"key": "\ud800"}, "printable"),
    ({"key": 7}, "a key has"),
    ({"key": b"bytes"}, "a key has"),
    ({"priority": 1001}, "a priority is from -1000 to 1000, not 1001"),
    ({"priority": -1001}, "a priority is from"),
    ({"priority": 10**30}, "a priority is from"),
    ({"priority": 1.5}, "a priority is from"),
    ({"priority": "high"}, "a priority is from"),
    ({"run_at": NOW.replace(tzinfo=None)}, "run_at needs a time zone"),
    ({"run_at": "tomorrow"}, "run_at"),
    (
        {"run_at": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))},
        "no instant of ours",
    ),
    ({"run_at": NOW, "delay": 1}, "give one of them"),
    ({"delay": -1}, "negative|longer|at least|not -1"),
    ({"delay": timedelta(seconds=-1)}, "negative|longer|at least|-1"),
    ({"delay": float("nan")}, "nan"),
    ({"delay": float("inf")}, "inf"),
    ({"delay": "soon"}, "soon"),
    ({"deadline": 0}, "no length"),
    ({"deadline": -1}, "negative"),
    ({"deadline": 10, "delay": 10}, "leaves nothing of a deadline of 10 s"),
    ({"correlation": "a\0b"}, "correlation"),
    ({"traceparent": "a\0b"}, "traceparent"),
    ({"traceparent": 7}, "traceparent"),
    ({"correlation": "\ud800"}, "correlation"),
    ({"correlation": 7}, "correlation"),
    ({"correlation": "x" * 10_000}, "correlation"),
]


@pytest.mark.parametrize(("how", "gist"), PARAMETERS, ids=str)
async def test_a_parameter_of_submit_that_no_rule_allows_is_refused(database_url, how, gist):
    async with new_app(database_url) as app:
        await refuses(app, app.submit("anything", 1, **how), BadInput, gist)
        await refuses(app, app.submit_many("anything", [1], **how), BadInput, gist)


async def test_a_submission_of_many_is_refused_as_a_whole(database_url):
    async with new_app(database_url) as app:
        many: Callable[..., Any] = app.submit_many
        await refuses(app, many("anything", [1, 2], keys=["a"]), BadInput, "one key for each")
        await refuses(app, many("anything", [1, 2], keys=["a", ""]), BadInput, "a key has")
        await refuses(
            app, many("anything", [1, 2], keys=["a", "a"]), Refused, "stands for two payloads"
        )
        await refuses(app, many("anything", [1], name="a\0b"), BadInput, "name")
        await refuses(app, many("anything", [1], name="\ud800"), BadInput, "name")
        await refuses(app, many("anything", [1], name="x" * 10_000), BadInput, "name")
        await refuses(app, many("nothing", [None, 1]), BadInput, "takes no payload")
        for payloads in ("abc", b"abc", {"a": 1}):
            await refuses(app, many("anything", payloads), BadInput, "a list with one for each")


async def test_a_job_nobody_knows_is_refused_with_those_that_are_known(database_url):
    async def stranger(ctx: Context) -> None: ...

    async with new_app(database_url) as app:
        for kind in ("dance", stranger, 7, None):
            asked: Any = kind
            await refuses(
                app, app.submit(asked, 1), UnknownKind, "known: anything, nothing, quote"
            )


async def test_a_payload_for_a_story_that_takes_none_is_refused(database_url):
    async with new_app(database_url) as app:
        await refuses(app, app.submit("nothing", 1), BadInput, "nothing takes no payload")


# — asking and steering —


@pytest.mark.parametrize("verb", ["get", "explain", "cancel", "retry", "resume", "batches.get"])
async def test_an_id_that_is_none_is_not_found_on_either_database(database_url, verb):
    async with new_app(database_url) as app:
        for id_ in (0, -1, 99, 2**63, 10**30, None, "7", "abc", "a\0", 1.5, b"1"):
            await refuses(app, attrgetter(verb)(app)(id_), NotFound, "there is no (job|batch)")


@pytest.mark.parametrize(
    ("how", "gist"),
    [
        ({"limit": 0}, "a page has 1 to 200"),
        ({"limit": 10**9}, "a page has 1 to 200"),
        ({"limit": -1}, "a page has 1 to 200"),
        ({"state": "asleep"}, "no state is called 'asleep'"),
    ],
    ids=str,
)
async def test_a_list_nobody_could_read_is_refused(database_url, how, gist):
    async with new_app(database_url) as app:
        await refuses(app, app.jobs(**how), BadInput, gist)
        if "limit" in how:
            await refuses(app, app.batches.list(**how), BadInput, gist)


# — registering —


async def two_payloads(ctx: Context, one: int, two: int) -> None: ...


REGISTERED: list[tuple[dict[str, Any], Any, str]] = [
    ({}, two_payloads, "a story takes one payload, not 2"),
    ({}, lambda payload: payload, "is sync and not at the top of a module"),
    ({"name": ""}, None, "printable name"),
    ({"name": "x" * 101}, None, "printable name"),
    ({"name": "a\nb"}, None, "printable name"),
    ({"queue": "a\0b"}, None, "printable name"),
    ({"version": 0}, None, "a version is at least 1"),
    ({"priority": 2000}, None, "a priority is from"),
    ({"timeout": 0}, None, "longer than nothing"),
    ({"timeout": -1}, None, "longer than nothing|negative|-1"),
    ({"timeout": "soon"}, None, "soon"),
]


@pytest.mark.parametrize(
    ("how", "story", "gist"), REGISTERED, ids=[f"{how} {gist}" for how, _, gist in REGISTERED]
)
def test_a_job_that_could_never_run_is_refused_where_it_is_written(how, story, gist):
    app = Retoma("sqlite:///nowhere.db")

    async def plain(ctx: Context, payload: Any) -> None: ...

    if how.get("name") == "":
        plain.__name__ = ""
    with pytest.raises(BadInput, match=gist):
        app.job(**how)(story or plain)

    assert [] == list(app.kinds)


def test_the_same_job_twice_is_refused():
    app = Retoma("sqlite:///nowhere.db")
    app.job(name="quote")(two_payloads_in_one())

    with pytest.raises(BadInput, match="there is already a job quote of version 1"):
        app.job(name="quote")(two_payloads_in_one())

    app.job(name="quote", version=2)(two_payloads_in_one())


def two_payloads_in_one() -> Any:
    async def story(ctx: Context, both: tuple[int, int]) -> None: ...

    return story


# — in a story —


async def run_alone(url: str, story: Any, *, attempts: int = 2) -> tuple[Any, list[Event], Any]:
    """The job as it ended, its events, its evidence."""
    app = Retoma(url)
    app.job(name="story", retry=Retry(attempts=attempts, base=0, cap=0))(story)
    async with app:
        job = await app.submit("story")
        await asyncio.wait_for(app.run(until_idle=True, tick=0.2), 30)
        database = await app.database()
        evidence = await database.read(lambda tx: tx.all(EVIDENCE, job=job.id))
        return await app.get(job.id), await app.events(job.id), dict(evidence)


async def work(*_: Any) -> int:
    return 1


async def lambda_step(ctx: Context) -> Any:
    return await ctx.step("name", lambda: 1)


async def closure_step(ctx: Context) -> Any:
    def inside() -> int:
        return 1

    return await ctx.step("name", inside)


async def unnamed_step(ctx: Context) -> Any:
    return await ctx.step("", work)


async def long_step(ctx: Context) -> Any:
    return await ctx.step("x" * 201, work)


async def numbered_step(ctx: Context) -> Any:
    name: Any = 7
    return await ctx.step(name, work)


async def torn_step(ctx: Context) -> Any:
    return await ctx.step("\ud800", work)


async def nul_key(ctx: Context) -> Any:
    return await ctx.step("name", work, key="a\0b")


async def torn_key(ctx: Context) -> Any:
    return await ctx.step("name", work, key="\ud800")


async def long_key(ctx: Context) -> Any:
    return await ctx.step("name", work, key="ä" * 5_000)


async def numbered_key(ctx: Context) -> Any:
    key: Any = 7
    return await ctx.step("name", work, key=key)


async def step_elsewhere(ctx: Context) -> Any:
    return await ctx.step("name", work, where="cloud")


async def too_far(ctx: Context) -> None:
    await ctx.progress(1.5)


async def backwards(ctx: Context) -> None:
    await ctx.progress(-0.1)


async def no_number(ctx: Context) -> None:
    await ctx.progress(float("nan"))


async def nul_note(ctx: Context) -> None:
    await ctx.progress(0.5, "a\0b")


async def torn_note(ctx: Context) -> None:
    await ctx.progress(0.5, "\ud800")


async def same_key_twice(ctx: Context) -> Any:
    return await ctx.each("name", [1, 2], work, key=lambda _: "same")


async def no_concurrency(ctx: Context) -> Any:
    return await ctx.each("name", [1], work, concurrency=-1)


async def unnamed_evidence(ctx: Context) -> None:
    await ctx.attach("", b"content")


async def torn_evidence(ctx: Context) -> None:
    await ctx.attach("\ud800", b"content")


async def nul_media(ctx: Context) -> None:
    await ctx.attach("page", b"content", media="a\0b")


MISUSES: list[tuple[Any, str]] = [
    (lambda_step, 'is sync and not at the top of a module.*where="thread"'),
    (closure_step, "is sync and not at the top of a module"),
    (unnamed_step, "a name of 1 to 200 characters"),
    (long_step, "a name of 1 to 200 characters"),
    (numbered_step, "a name of 1 to 200 characters"),
    (torn_step, "a name of 1 to 200 characters"),
    (nul_key, "key"),
    (torn_key, "key"),
    (long_key, "key"),
    (numbered_key, "key"),
    (step_elsewhere, "where='cloud'"),
    (too_far, "progress is from 0 to 1, not 1.5"),
    (backwards, "progress is from 0 to 1, not -0.1"),
    (no_number, "progress is from 0 to 1, not nan"),
    (nul_note, "note"),
    (torn_note, "note"),
    (same_key_twice, "two items of this loop have the key 'same'"),
    (no_concurrency, "concurrency is at least 1, not -1"),
    (unnamed_evidence, "a name of 1 to 200 characters"),
    (torn_evidence, "a name of 1 to 200 characters"),
    (nul_media, "media"),
]


@pytest.mark.parametrize(("story", "gist"), MISUSES, ids=[each.__name__ for each, _ in MISUSES])
async def test_a_misuse_in_a_story_is_told_clearly_and_leaves_nothing(
    database_url, story, gist
):
    job, events, evidence = await run_alone(database_url, story, attempts=1)

    assert State.DEAD is job.state
    assert "BadInput" == events[-1].details["type"]
    assert re.search(gist, events[-1].details["message"])
    assert [EventType.SUBMITTED, EventType.CLAIMED, EventType.BURIED] == [
        event.type for event in events
    ]
    assert (None, {}) == (job.progress, evidence)


# — results nobody can store (E22) —


async def bring_object(ctx: Context) -> Any:
    return object()


async def bring_class(ctx: Context) -> Any:
    return Snooze


async def bring_generator(ctx: Context) -> Any:
    return (n for n in range(3))


async def bring_coroutine(ctx: Context) -> Any:
    return work()


async def bring_nan(ctx: Context) -> Any:
    return {"price": float("nan")}


async def bring_nul(ctx: Context) -> Any:
    return "a\0b"


async def bring_torn(ctx: Context) -> Any:
    return ["\ud800"]


async def bring_bytes(ctx: Context) -> Any:
    return b"\xff\x00"


async def bring_too_much(ctx: Context) -> Any:
    return "x" * A_HUNDRED_MEGABYTES


async def bring_torn_skip(ctx: Context) -> Any:
    return Skip("a\0b")


async def bring_torn_park(ctx: Context) -> Any:
    return Park("\ud800")


async def keep_object(ctx: Context) -> Any:
    return await ctx.step("paid", object_maker)


async def keep_nan(ctx: Context) -> Any:
    return await ctx.step("paid", nan_maker)


async def keep_many(ctx: Context) -> Any:
    return await ctx.each("paid", [1], object_maker)


async def object_maker(*_: Any) -> Any:
    return {"answer": object()}


async def nan_maker() -> float:
    return float("nan")


GARBAGE = [
    *(bring_object, bring_class, bring_generator, bring_coroutine, bring_nan, bring_nul),
    *(bring_torn, bring_bytes, bring_too_much, bring_torn_skip, bring_torn_park),
    *(keep_object, keep_nan, keep_many),
]


@pytest.mark.filterwarnings("ignore:coroutine 'work' was never awaited")
@pytest.mark.parametrize("story", GARBAGE)
async def test_a_result_that_cannot_be_stored_parks_the_job_with_its_bytes_kept(
    database_url, story
):
    """E22: after one attempt; trying again would pay again."""
    job, events, evidence = await run_alone(database_url, story)

    assert (State.PARKED, "unstorable", "unstorable_result") == (
        job.state, job.reason, job.code,
    )  # fmt: skip
    assert 1 == sum(event.type is EventType.CLAIMED for event in events)
    assert "cannot store" in events[-1].details["why"]
    assert ["result"] == list(evidence)


REFUSE = {
    "steps": adhoc(
        "CREATE TRIGGER no BEFORE INSERT ON steps BEGIN SELECT RAISE(ABORT, 'no such row'); END",
        """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
AS $$BEGIN RAISE SQLSTATE '22000' USING MESSAGE = 'no such row'; END$$;

CREATE TRIGGER no BEFORE INSERT ON steps FOR EACH ROW EXECUTE FUNCTION refuse()""",
    ),
    "result": adhoc(
        "CREATE TRIGGER no BEFORE UPDATE ON jobs WHEN NEW.result IS NOT NULL"
        " BEGIN SELECT RAISE(ABORT, 'no such row'); END",
        """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
AS $$BEGIN RAISE SQLSTATE '22000' USING MESSAGE = 'no such row'; END$$;

CREATE TRIGGER no BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.result IS NOT NULL)
EXECUTE FUNCTION refuse()""",
    ),
}


@pytest.mark.parametrize("where", list(REFUSE))
async def test_what_only_the_database_refuses_parks_the_job_too(database_url, where):
    """E22: a row the codec let pass and the database does not."""
    ran: list[int] = []

    async def story(ctx: Context) -> str:
        if where == "result":
            ran.append(1)
            return "precious"
        return await ctx.step("paid", pay)

    async def pay() -> str:
        ran.append(1)
        return "precious"

    async with Retoma(database_url) as app:
        await app.upgrade()
        refuse = REFUSE[where]
        await (await app.database()).write(lambda tx: tx.run(refuse), verb="test")

    job, events, evidence = await run_alone(database_url, story)

    assert (State.PARKED, "unstorable", "unstorable_result") == (
        job.state, job.reason, job.code,
    )  # fmt: skip
    assert [1] == ran
    assert ["result"] == list(evidence)
    assert "no such row" in events[-1].details["why"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise Unspeakable


async def test_an_error_that_cannot_even_be_told_ends_within_its_budget(database_url):
    async def story(ctx: Context) -> None:
        raise Unspeakable

    job, events, _ = await run_alone(database_url, story)

    assert (State.DEAD, "exhausted") == (job.state, job.reason)
    assert 2 == sum(event.type is EventType.CLAIMED for event in events)


async def test_an_error_full_of_what_no_database_takes_is_told_all_the_same(database_url):
    async def story(ctx: Context) -> None:
        raise ValueError("a\0b \ud800 " + "x" * 100_000)

    job, events, _ = await run_alone(database_url, story, attempts=1)

    assert (State.DEAD, "exception") == (job.state, job.code)
    assert len(events[-1].details["message"]) <= 2_000


# — what is accepted comes back (E22) —

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from([1e22, 1e308, 5e-324, -0.0, 2**63, -(2**63) - 1, "\x7f", "\u2028"])
)
VALUES = st.recursive(
    SCALARS, lambda inside: st.lists(inside) | st.dictionaries(TEXT, inside), max_leaves=15
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(values=st.lists(VALUES, min_size=1, max_size=20))
async def test_every_value_accepted_comes_back_equal_from_payload_step_and_result(
    database_url, values
):
    """E22: through submit, story, step and result of either database."""
    app = Retoma(database_url)
    seen: dict[int, tuple[Any, Any]] = {}

    @app.job
    async def echo(ctx: Context, value: Any) -> Any:
        seen[ctx.job] = (value, await ctx.step("same", same, value))
        return value

    async def same(value: Any) -> Any:
        return value

    async with app:
        alone = await app.submit(echo, values[0])
        batch = await app.submit_many(echo, values)
        await app.run(until_idle=True, tick=0.2)
        jobs = await app.jobs(batch=batch.id)

        assert encode(values[0]) == (await app.get(alone.id)).result
        for job, value in zip(reversed(jobs), values, strict=True):
            text = encode(value)
            [step] = await app.steps(job.id)
            assert (text, text, text) == (job.payload, job.result, step.value)
            assert (text, text) == tuple(encode(each) for each in seen[job.id])
