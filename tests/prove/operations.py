"""What operators and leader tasks ask of the engine: the other half of its statements.

Each scenario is as those of `scenarios`: whatever it asks for is asked again, and done once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import Any

from retoma import Context, IllegalMove, NotFound, Retry, State
from retoma.engine.handlers.kinds import Kind
from retoma.engine.run.submission import new_job, submission
from retoma.engine.store import filling
from retoma.engine.store.filling import Slice
from tests.prove.edges import EDGES
from tests.prove.play import KNOBS, Play, Scenario, until_claimed
from tests.prove.questions import QUESTIONS
from tests.prove.scenarios import STORIES, chain, child, dies, parks, pay, stays

LOOK = 31  # seconds: more than between two looks of the leader tasks, less than a lease
MUCH = 300_000  # characters: more than comes along with a claim
FEW = 3  # jobs in one transaction
KINDS = 12  # more than one claim reads the queues of
MONTHLY = "0 0 1 * *"
REST = 0.05  # seconds that a service that is down is left alone
SOON = {**KNOBS, "grace": 0.05, "let_go": 0.2}


# — handlers —


async def heavy(play: Play, ctx: Context, n: int) -> Any:
    """A large value, which is read back when it is asked for, a result used again, and evidence."""
    large = await ctx.step("large", play.work, ctx, "large", "x" * MUCH)
    bought = await ctx.step("bought", play.work, ctx, "bought", "goods", reuse="the same")
    await ctx.attach("page.html", f"<p>{n}</p>" * 100)
    if ctx.attempt == 1:
        raise OSError("not this time")
    return [len(large), bought]


class Shop:
    """Down for the first call of all."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> None:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("503")


async def buys(play: Play, ctx: Context, n: int) -> Any:
    """Pays, where there is money left."""
    return await ctx.step("paid", pay, play, ctx, pays="shop")


async def spoils(play: Play, ctx: Context, n: int) -> Any:
    """Borrows a thing that does not work."""
    async with ctx.use("things") as thing:
        await thing.release(worked=False)
    return n


# — scenarios —


async def fills(play: Play) -> None:
    """A batch that comes in by slices; one that a dead process left half of begins anew."""
    play.job(child)
    await begin(play, play.app.kinds.of("child"), "left")
    play.clock.later += 61
    with large_is(FEW):
        for key in ("left", "large", "large"):
            names = [f"{key} {n}" for n in range(2 * FEW)]
            await play.ask(partial(play.app.submit_many, "child", names, key=key))
    play.jobs += 4 * FEW
    await play.run()


async def keys(play: Play) -> None:
    """Keys that come again: of one job, of each job of a batch, of each job of a batch that comes in by slices."""
    play.job(child)
    few, many = [f"few {n}" for n in range(2)], [f"many {n}" for n in range(2 * FEW)]
    for n in range(2):
        await play.ask(
            lambda: play.app.write(lambda tx: tx.submit("child", "one", key="one").id)
        )
        await play.ask(partial(play.app.submit_many, "child", few, keys=few, key=f"few {n}"))
        with large_is(FEW):
            await play.ask(
                partial(play.app.submit_many, "child", many, keys=many, key=f"many {n}")
            )
    play.jobs += 1 + len(few) + len(many)
    await play.run()


@contextmanager
def large_is(jobs: int) -> Iterator[None]:
    """Inside, more jobs than this come in by slices."""
    library: Any = import_module("retoma.library.submissions")
    library.LARGE, before = jobs, library.LARGE
    try:
        yield
    finally:
        library.LARGE = before


async def begin(play: Play, kind: Kind, key: str) -> None:
    """As a process leaves it that dies in the middle."""
    database = await play.ask(play.app.database)
    text = filling.described(submission(kind, {}), name=key, key=key)

    def half(tx: Any) -> None:
        begun = filling.begin(tx, key=key, owner="dead", submission=text)
        part = Slice(0, 0, [new_job(kind, f"{key} {n}", None) for n in range(2)])
        filling.stage(tx, int(begun.filling or 0), "dead", "child", part)

    await play.ask(lambda: database.write(half, verb="test"))


async def keeps(play: Play) -> None:
    """Values that are large, used again, shown, and forgotten."""
    play.job(heavy)
    for n in range(2):
        job = await play.submit("heavy", n)
        play.failures += 1
    await play.run()
    shown = await play.ask(lambda: play.app.evidence.list(job))
    for each in shown:
        await play.ask(partial(play.app.evidence.read, each.sha256))
    await play.ask(play.app.reuse.list)
    await play.ask(lambda: play.app.reuse.forget(everything=True))


async def outages(play: Play) -> None:
    """A service that is down closes its breaker; a canary opens it again, and a person does."""
    shop = Shop()

    async def calls(play: Play, ctx: Context, n: int) -> Any:
        async with ctx.breaker("shop"):
            shop.call()
        return n

    play.job(calls)
    await play.ask(lambda: play.app.breakers.declare("shop", threshold=1, rest=REST))
    for n in range(3):
        await play.submit("calls", n)
    await play.run()
    await asyncio.sleep(
        2 * REST
    )  # all wait outside by now: one of them tries whether it is up again
    await play.run()
    await play.ask(lambda: play.app.breakers.open("shop", "they asked us to wait"))
    await play.submit("calls", "late")
    await play.ask(lambda: play.app.breakers.close("shop"))
    await play.run()


async def spends(play: Play) -> None:
    """A budget is spent, jobs wait for it, and go on when it is raised."""
    play.job(buys)
    await play.ask(lambda: play.app.prices.set("shop", "calls", "0.01"))
    await play.ask(lambda: play.app.budgets.set("0.25 USD", provider="shop", per="month"))
    play.knobs["slots"] = 1
    for n in range(3):
        await play.submit("buys", n)
    await play.run()
    await play.ask(lambda: play.app.budgets.set("100 USD", provider="shop", per="month"))
    await play.run()
    batch = await play.ask(
        lambda: play.app.submit_many("buys", [8, 9], key="batch", budget="9 USD")
    )
    play.jobs += 2
    await play.run()
    await play.ask(lambda: play.app.budgets.of_batch(batch.id))
    with suppress(NotFound):
        await play.ask(lambda: play.app.budgets.remove(provider="shop", per="month"))
    await play.ask(play.app.costs.total)


async def rules(play: Play) -> None:
    """A person changes limits, settings, pauses, rates and pools, and looks at all of it."""
    app = play.app
    play.job(child)
    await play.ask(lambda: app.pools.declare("things", {"a": 1, "b": 2}))
    await play.ask(lambda: app.pools.switch("things", ["a"], on=False, reason="broken"))
    await play.ask(lambda: app.pools.switch("things", ["a"], on=True, reason="repaired"))
    await play.ask(lambda: app.rates.set("site", 5, burst=5))
    await play.ask(lambda: app.limits.set("kind:child", 1))
    await play.ask(lambda: app.knobs.set("keep_done", "90d"))
    await play.ask(lambda: app.pauses.pause("kind", "child", "wait"))
    for n in range(3):
        await play.submit("child", n)
    await play.run()
    await play.ask(lambda: app.pauses.resume("kind", "child"))
    await play.ask(lambda: app.limits.set("kind:child", None))
    await play.ask(lambda: app.knobs.reset("keep_done"))
    await play.run()
    looks: tuple[Callable[[], Awaitable[Any]], ...] = (
        *(app.pools.list, app.rates.list, app.knobs.all, app.pauses.all, app.limits.list),
        *(
            app.ready,
            app.insights.metrics,
            app.insights.funnel,
            app.batches.list,
            app.runners.list,
            app.insights.disk,
        ),
        *(
            app.breakers.list,
            app.budgets.list,
            app.prices.list,
            app.schedules.list,
            app.alerts.list,
        ),
    )
    for look in looks:
        await play.ask(look)


async def buries(play: Play) -> None:
    """What has died is looked at, put away, tried anew, skipped; what is parked is skipped."""
    app = play.app
    for handler in (dies, parks, child, chain):
        play.job(handler, retry=Retry(attempts=1))
    play.failures = 4
    away, anew, skipped = [await play.submit("dies", n) for n in range(3)]
    parked = await play.submit("parks", 1)
    again = await play.submit("child", "again")
    await play.run()
    await play.ask(app.dead.list)
    await play.ask(app.insights.stuck)
    for verb in (
        partial(app.dead.discard, away, "seen"),
        partial(app.retry, anew),
        partial(app.skip, skipped, "enough"),
        partial(app.skip, parked, "enough"),
        partial(app.retry, again),
    ):
        with suppress(IllegalMove):
            await play.ask(verb)
    await play.run()
    for look in (app.explain, app.events, app.attempts, app.steps, app.costs.of_job):
        await play.ask(partial(look, anew))


async def crowds(play: Play) -> None:
    """Whole batches of many kinds: parked and resumed, stopped at work, run again; things that fail."""
    app = play.app
    for handler in (parks, stays, spoils, *(named(child, f"child {n}") for n in range(KINDS))):
        play.job(handler)
    await play.ask(
        lambda: app.pools.declare("things", {"a": 1, "b": 2}, off_after=1, healthy=1)
    )
    parked = await play.ask(lambda: app.submit_many("parks", [1, 2], key="parked"))
    held = await play.ask(lambda: app.submit_many("stays", [1, 2], key="held"))
    bad = await play.ask(lambda: app.submit_many("spoils", [1, 2, 3], key="bad"))
    play.jobs += 7
    for n in range(KINDS):
        await play.submit(f"child {n}", n)

    async def canceled() -> None:
        for each in await play.ask(lambda: app.jobs(batch=held.id)):
            await until_claimed(play, each.id)
        await play.ask(held.cancel)

    await asyncio.gather(play.run(), canceled())
    await play.ask(parked.resume)
    await play.run()
    await play.ask(bad.again)
    await play.run()
    await play.ask(partial(app.pools.items, "things"))


def named(handler: Any, name: str) -> Any:
    """The same handler as another kind."""

    async def run(play: Play, ctx: Context, payload: Any) -> Any:
        return await handler(play, ctx, payload)

    run.__name__ = name
    return run


async def drains(play: Play) -> None:
    """A runner is told from afar to leave; the next one goes on with what it gave back."""
    play.job(stays)
    held = await play.submit("stays", 1)
    play.knobs |= SOON

    async def drained() -> None:
        await until_claimed(play, held)
        for each in await play.ask(play.app.runners.list):
            if each.state == "alive":
                with suppress(IllegalMove, NotFound):
                    await play.ask(partial(play.app.runners.drain, each.boot))

    await asyncio.gather(play.run(), drained())
    with suppress(IllegalMove):
        await play.ask(lambda: play.app.cancel(held))
    await play.run()


async def ticks(play: Play) -> None:
    """A schedule makes its job when its time has come; it is paused, resumed and removed."""
    play.job(child)
    play.job(stays)
    play.app.schedule("monthly", "child", cron=MONTHLY, payload="monthly", timezone="UTC")
    await play.ask(lambda: play.app.schedules.pause("monthly"))
    await play.ask(lambda: play.app.schedules.unpause("monthly"))
    held = await play.submit("stays", 1)
    play.jobs += 1
    play.clock.later += seconds_to_next_month(play.clock.wall() + play.clock.later)

    async def ticked() -> None:
        while not await play.ask(lambda: play.app.jobs(kind="child")):  # noqa: ASYNC110 — a row
            await asyncio.sleep(0.02)
        with suppress(IllegalMove):
            await play.ask(lambda: play.app.cancel(held))

    await asyncio.gather(play.run(), ticked())
    await play.run()
    with suppress(NotFound):
        await play.ask(lambda: play.app.schedules.remove("monthly"))


async def alarms(play: Play) -> None:
    """The leader tasks look: an alert is raised, acknowledged and silenced."""
    play.job(dies, retry=Retry(attempts=1))
    play.job(stays)
    play.failures = 1
    await play.submit("dies", 1)
    held = await play.submit("stays", 1)

    async def looked_after() -> None:
        await until_claimed(play, held)
        while not (found := await play.ask(play.app.alerts.list)):
            play.clock.later += LOOK
            await asyncio.sleep(0.1)
        for verb in (
            partial(play.app.alerts.acknowledge, found[0].id),
            partial(play.app.alerts.silence, found[0].id, "1h"),
            partial(play.app.alerts.get, found[0].id),
        ):
            with suppress(IllegalMove):
                await play.ask(verb)
        with suppress(IllegalMove):
            await play.ask(lambda: play.app.cancel(held))

    await asyncio.gather(play.run(), looked_after())
    await play.run()


def seconds_to_next_month(now: float) -> int:
    """Until noon of its first day: one tick lies between, whatever time is lost on the way."""
    today = datetime.fromtimestamp(now, UTC).replace(day=1, hour=12)
    return int((today + timedelta(days=32)).replace(day=1).timestamp() - now)


async def retires(play: Play) -> None:
    """What ended long ago goes, with what it shows and what tells of it; other jobs stay."""
    play.job(chain)
    play.job(child)
    batch = await play.ask(lambda: play.app.submit_many("chain", [1, 2], key="old"))
    await play.run()
    counts = await play.ask(batch.counts)
    play.jobs += counts.get(State.PARKED, 0)  # what the database refused waits for a person
    play.clock.later += 7_200
    later = await play.submit("child", "later")
    await play.run()
    await play.ask(lambda: play.app.retention.run_once(done="1h", dead="1h", events="1h"))
    play.clock.later += 7_200
    await play.ask(lambda: play.app.retention.run_once(done="3h", dead="3h", events="3h"))
    await play.ask(lambda: play.app.get(later))


SCENARIOS = {
    each.name: each
    for each in (
        *STORIES,
        *EDGES,
        *QUESTIONS,
        Scenario("fills", fills),
        Scenario("keys", keys),
        Scenario("keeps", keeps),
        Scenario("outages", outages),
        Scenario("spends", spends),
        Scenario("rules", rules),
        Scenario("buries", buries),
        Scenario("alarms", alarms),
        Scenario("crowds", crowds),
        Scenario("drains", drains),
        Scenario("ticks", ticks),
        Scenario("retires", retires),
    )
}
