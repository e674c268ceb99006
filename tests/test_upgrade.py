"""`retoma upgrade --check`: what is in flight is read as the installed code would read it."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from retoma import Context, Park, Retoma, db, upgrade
from retoma.db import migrations
from retoma.db.migrations import ENGINE
from retoma.engine.handlers.kinds import Kinds, job
from retoma.upgrade import What, step_types


@dataclass(frozen=True, slots=True)
class Price:
    """As it is in the new code: it had no currency before."""

    cents: int
    currency: str


def look_up_before(n: int) -> dict[str, int]:
    return {"cents": n}


async def before(ctx: Context, n: int) -> Any:
    """Saves a step, and waits for a person."""
    await ctx.step("look up", look_up_async, n)
    for item in range(2):
        await ctx.step("item", item_of, item, key=str(item))
    return Park("is it right?")


async def look_up_async(n: int) -> dict[str, int]:
    return look_up_before(n)


async def item_of(n: int) -> str:
    return str(n)


async def note(ctx: Context, text: str) -> str:
    return text


async def gone(ctx: Context, n: int) -> int:
    return n


def build_before(url: str) -> Retoma:
    app = Retoma(url)
    app.job(name="quote")(before)
    app.job(name="note")(note)
    app.job(name="gone")(gone)
    app.job(name="moved", version=1)(gone)
    return app


# — and the code that is installed now —


async def look_up_now(n: int) -> Price:
    return Price(n, "BRL")


async def item_now(n: int) -> int:
    return n


async def quote_now(ctx: Context, n: int) -> int:
    price = await ctx.step("look up", look_up_now, n)
    items = await ctx.each("item", range(2), item_now)
    return price.cents + len(items)


async def note_now(ctx: Context, text: dict[str, str]) -> str:
    return text["words"]


async def moved_now(ctx: Context, n: int) -> int:
    return n


def build_now(url: str) -> Retoma:
    app = Retoma(url)
    app.job(name="quote")(quote_now)
    app.job(name="note")(note_now)
    app.job(name="moved", version=2)(moved_now)
    return app


async def in_flight(url: str) -> None:
    async with build_before(url) as app:
        for kind, payload in (("quote", 1), ("quote", 2), ("moved", 1), ("gone", 1)):
            await app.submit(kind, payload)
        await app.run(until_idle=True)  # quotes are parked, the others done
        for kind in ("note", "moved", "gone"):
            await app.submit(kind, "words" if kind == "note" else 7)


async def looked_at(url: str, kinds: Kinds) -> upgrade.Report:
    with closing(db.open(url)) as database:
        return await upgrade.check(database, kinds, [ENGINE])


async def test_what_the_new_code_cannot_read_is_named_and_the_old_code_reads_all(database_url):
    await in_flight(database_url)

    before = await looked_at(database_url, build_before(database_url).kinds)
    now = await looked_at(database_url, build_now(database_url).kinds)

    assert ((), 5) == (before.findings, before.looked_at)
    assert [
        (What.KIND, "gone", None, (7,)),
        (What.VERSION, "moved", None, (6,)),
        (What.PAYLOAD, "note", None, (5,)),
        (What.STEP, "quote", "item", (1, 2)),
        (What.STEP, "quote", "look up", (1, 2)),
    ] == sorted(
        ((each.what, each.kind, each.step, each.examples) for each in now.findings),
        key=lambda told: (told[1], told[2] or ""),
    )
    by_step = {each.step: each for each in now.findings}
    assert (2, 2) == (by_step["look up"].jobs, by_step["item"].jobs)
    assert "currency" in by_step["look up"].why


async def test_pending_migrations_are_told_and_nothing_is_changed(database_url):
    with closing(db.open(database_url)) as database:
        newest = (await migrations.status(database)).known[-1]
        await migrations.downgrade(database, to=newest - 1)

    report = await looked_at(database_url, build_now(database_url).kinds)

    assert [("engine", (newest,))] == [(each.room, each.numbers) for each in report.pending]
    with closing(db.open(database_url)) as database:
        assert (newest,) == (await migrations.status(database)).pending


def test_only_what_the_text_of_a_story_says_is_claimed():
    @job
    async def many_ways(ctx: Context, n: int) -> None:
        called = f"step {n}"
        await ctx.step(called, look_up_now, n)
        await ctx.step("twice", look_up_now, n)
        await ctx.step("twice", item_now, n)
        await ctx.step("local", lambda: n)
        await ctx.step("second", item_now, n, version=2)
        await ctx.step("unsaid", unsaid, n)

    assert {("second", 2): int} == step_types(many_ways.kind)  # type: ignore[attr-defined]


async def unsaid(n):
    return n


def look_up(n: int) -> int:
    return n


def test_a_job_that_is_one_function_is_one_step():
    kind = job(look_up).kind  # type: ignore[attr-defined]

    assert {("look_up", 1): int} == step_types(kind)
