"""What is asked of the engine beside its runners: by carriers of hints, programs that claim by hand, stores of
evidence, people who look for what was lost, and a restore.

Each scenario is as those of `scenarios`: whatever it asks for is asked again, and done once.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from retoma import Context, IllegalMove, Limit, NotFound, Park, Retoma, Retry, State
from retoma.db import Transaction, adhoc
from retoma.engine import checker, query, store
from retoma.engine.ops.alerts import NOTIFY
from retoma.engine.ops.leader_tasks import Duty
from retoma.engine.ports import Process
from retoma.engine.query import in_flight, tail
from retoma.engine.query.search import Search
from retoma.engine.query.whole import Subject, whole
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.job import StepId
from retoma.engine.run import manual_claim
from retoma.engine.store.hints import Again, Hint
from retoma.engine.store.incarnation import reopen
from retoma.engine.writing.once import Answered, Once
from tests.prove.play import KNOBS, TABLE, Play, Scenario, patiently, until_claimed
from tests.prove.scenarios import Machine, child, dies, pay, stays, until_stuck

T = TypeVar("T")

HOUR, DAY = 3_600, 86_400
LEASE = 60.0
SLOW = {"beat": 1.0, "lease": 6.0}
INSERT = adhoc("INSERT INTO goods (name, n) VALUES ('answered', 1)")
ONCE = Retry(attempts=1)
SOON = Again(after=0, young=0, most=1)


async def write(play: Play, fn: Callable[[Transaction], T]) -> T:
    """In a transaction of its own, asked again until there is an answer."""
    database = await play.ask(play.app.database)
    return await play.ask(lambda: database.write(fn, verb="test"))


def stranger(play: Play, *kinds: str) -> store.Boot:
    """A program that is no runner, known by the name that it gives itself."""
    knows = [play.app.kinds.of(kind).tag for kind in kinds]
    return store.Boot(
        id="stranger",
        name="stranger",
        process=Process.this(),
        version="1",
        slots=1,
        knows=knows,
    )


async def hints(play: Play) -> None:
    """A runner claims what it is hinted at, as Celery does; its leader tasks are laid down when they are done."""
    play.job(child)
    play.job(dies, retry=ONCE)
    play.failures = 1
    jobs = [await play.submit("child", n) for n in range(3)]
    await play.submit("dies", 1)

    async def heed() -> None:
        runner = await play.app.hinted(**KNOBS)
        try:
            await runner.heed(Hint("child", jobs[0]))
            for hint in await runner.hint_again(SOON):
                await runner.heed(hint)
            await runner.recover()
            for duty in Duty:
                await runner.do(duty)
        except BaseException:
            play.crashes += 1
            play.clock.later += int(LEASE) + 1
            raise
        finally:
            await runner.stopped()

    await play.ask(heed)
    await play.run()


async def answers(play: Play) -> None:
    """Whoever asks again under the same key gets the answer of the first time, for a week."""
    await play.ask(lambda: play.app.write(lambda tx: tx.run(TABLE)))
    database = await play.ask(play.app.database)
    once = Once(database, store.Asked("a person", "the key", "put", "hash"))
    play.goods["answered"] = 1

    async def put() -> None:
        with suppress(Answered):
            await once.write(lambda tx: tx.run(INSERT), verb="put")

    for _ in range(2):
        await play.ask(put)
    reserved = store.Asked("a person", "of a form", "post", "hash")
    for _ in range(2):  # work of several transactions: it failed, then it was done
        await play.ask(lambda: database.write(partial(reserve, asked=reserved), verb="reserve"))
        await play.ask(lambda: database.write(partial(release, asked=reserved), verb="release"))
    await play.ask(lambda: database.write(partial(reserve, asked=reserved), verb="reserve"))
    await play.ask(
        lambda: database.write(
            lambda tx: store.keep_reserved_answer(tx, reserved, "done"), verb="keep"
        )
    )
    play.clock.later += 8 * DAY
    await play.ask(play.app.retention.forget_answers)


def reserve(tx: Transaction, asked: store.Asked) -> None:
    store.reserve_answer(tx, asked, remembered=60.0)


def release(tx: Transaction, asked: store.Asked) -> None:
    store.release_answer(tx, asked)


async def shelves(play: Play) -> None:
    """Evidence lies in a folder; the places that it leaves are emptied."""
    where = play.folder / "shelf"
    play.app = Retoma(play.url, clock=play.clock, evidence=f"folder://{where}")

    async def shows(play: Play, ctx: Context, n: int) -> Any:
        await ctx.attach("page.html", f"<p>{n}</p>" * 100)
        return n

    play.job(shows)
    old = await play.ask(lambda: play.app.submit_many("shows", [1, 2], key="old"))
    await play.run()
    for job in await play.ask(lambda: play.app.jobs(batch=old.id)):
        for each in await play.ask(partial(play.app.evidence.list, job.id)):
            await play.ask(partial(play.app.evidence.read, each.sha256))
    counts = await play.ask(old.counts)
    play.jobs += counts.get(State.PARKED, 0)  # what the database refused waits for a person
    for _ in range(3):
        play.clock.later += 2 * DAY
        await play.ask(lambda: play.app.retention.run_once(done="1d", dead="1d", events="1d"))


async def late(play: Play) -> None:
    """A runner is declared lost in the middle of a step: what it saves is refused, and another one takes over.

    It held the only thing of a pool, which is free for the next one.
    """
    entered, goes_on = asyncio.Event(), asyncio.Event()

    async def borrows_late(play: Play, ctx: Context, n: int) -> Any:
        async with ctx.use("only"):
            return await ctx.step("late", slow, play, ctx)

    async def slow(play: Play, ctx: Context) -> Any:
        entered.set()
        await goes_on.wait()
        return await play.work(ctx, "late")

    play.job(borrows_late)
    await play.ask(lambda: play.app.pools.declare("only", {"a": 1}))
    held = await play.submit("borrows_late", 1)
    play.knobs |= SLOW
    me = stranger(play)

    async def lose() -> None:
        await until_stuck(play, held, entered)
        runners = await play.ask(play.app.runners.list)
        await write(play, partial(declare_lost, boots=[each.boot for each in runners], me=me))
        play.crashes += 1  # what it was in the middle of happens again
        goes_on.set()

    await asyncio.gather(play.run(), lose())
    await play.run()


def declare_lost(tx: Transaction, boots: Sequence[str], me: store.Boot) -> None:
    """As a neighbour does that sees their processes gone, with what they wrote before they left."""
    for boot in boots:
        store.move_runner(tx, boot, "lost", actor=me.id)
        store.tell_held_loop(tx, boot, "{}")
    manual_claim.recover(tx, me)


async def by_hand(play: Play) -> None:
    """A program claims one job by hand, saves its steps and ends it; it takes back what another left."""
    play.job(child)
    job = await play.submit("child", "by hand")
    left = await play.submit("child", "left", delay=0.01)
    me, other = stranger(play, "child"), stranger(play, "child")

    def take(tx: Transaction, which: int) -> manual_claim.Lone:
        manual_claim.wait_for(tx, which)
        claim, _ = manual_claim.take(tx, me, LEASE, "child", which)
        return manual_claim.Lone(me.id, claim.held)

    mine = await write(play, lambda tx: take(tx, job))
    step = StepId("child", 1, "")
    await write(play, lambda tx: manual_claim.save(tx, mine, LEASE, [(step, '"child"')], 0.5))
    with suppress(LeaseLost):  # asked again after it was done
        await write(play, lambda tx: manual_claim.end(tx, mine, settlement.done('"child"')))
    await asyncio.sleep(0.02)  # the second one is due
    await write(play, lambda tx: take(tx, left))
    play.clock.later += int(LEASE) + 1
    await write(play, lambda tx: manual_claim.recover(tx, other))
    play.crashes += 1
    await play.run()


async def restores(play: Play) -> None:
    """A database that was restored opens anew: who ran before is over, and what they held waits again."""
    play.job(child)
    me = stranger(play, "child")
    job = await play.submit("child", 1)
    await write(play, lambda tx: manual_claim.take(tx, me, LEASE, "child", job)[0].held)
    await write(
        play,
        lambda tx: reopen(
            tx, "another life", skip=10, actor="a person", subject="backup", details="{}"
        ),
    )
    await play.run()


async def doubts(play: Play) -> None:
    """Remote work whose handle nobody got waits for a person: one says it is gone, one says what it gave."""

    unheard: set[int] = set()

    async def forgets(play: Play, ctx: Context, n: int) -> Any:
        known = (await patiently(lambda: Machine(play.folder))).remote(ends=True)

        async def send(key: str, payload: Any) -> Any:
            handle = await known.send(key, payload)
            if ctx.job not in unheard:
                unheard.add(ctx.job)
                raise ConnectionResetError("the answer is lost")
            return handle

        return await ctx.remote("fetch", replace(known, send=send, find=None))

    play.job(forgets)
    jobs = [await play.submit("forgets", n) for n in range(2)]
    await play.run()
    [handle, *_] = Machine(play.folder).works()
    for verb in (
        partial(play.app.remote.adopt, jobs[0], handle),
        partial(play.app.remote.send_again, jobs[1]),
    ):
        with suppress(IllegalMove):
            await play.ask(verb)
    await play.run()


async def notices(play: Play) -> None:
    """Somebody is told that an alert was raised, and that it was closed."""
    play.job(child)
    play.job(stays)
    told: list[str] = []
    wrong = True

    async def tells(play: Play, ctx: Context, notice: dict[str, Any]) -> Any:
        told.append(notice["change"])

    tells.__name__ = f"{NOTIFY}somebody"
    play.job(tells)
    await play.ask(lambda: play.app.submit_many("child", [1, 2], key="told"))
    play.jobs += 2
    await play.run()
    play.clock.later += HOUR  # that a batch has finished is shown for a while
    play.app.kinds.watches["shop"] = lambda _: {"closed": {"why": "no light"}} if wrong else {}
    held = await play.submit("stays", 1)

    async def look_after() -> None:
        nonlocal wrong
        await until_claimed(play, held)
        while "raised" not in told:
            play.clock.later += 31
            await asyncio.sleep(0.1)
        wrong = False
        while "closed" not in told:
            play.clock.later += 31
            await asyncio.sleep(0.1)
        with suppress(IllegalMove):
            await play.ask(lambda: play.app.cancel(held))

    await asyncio.gather(play.run(), look_after())
    await play.run()
    play.jobs += len(await play.ask(lambda: play.app.jobs(kind=tells.__name__)))


async def says(play: Play) -> None:
    """A person names limits, rates of exchange and columns, frees a thing, and puts many jobs away at once."""
    play.app.refers("goods", "n")

    async def narrow(play: Play, ctx: Context, payload: dict[str, str]) -> Any:
        return payload["site"]

    async def keeps(play: Play, ctx: Context, n: int) -> Any:
        seen = ctx.kept("seen")
        if not seen:
            await ctx.use("things", scope="job")
        await ctx.step("seen", play.work, ctx, "seen")
        return n if seen else Park("a person must look")

    play.job(keeps)
    play.job(narrow, limit=Limit(1, per="site"))
    play.job(dies, retry=ONCE)
    await play.ask(lambda: play.app.write(lambda tx: tx.run(TABLE)))
    for site in ("a", "b"):
        await play.submit("narrow", {"site": site})
    gone = [await play.submit("dies", n) for n in range(2)]
    play.failures = 2
    await play.ask(lambda: play.app.pools.declare("things", {"a": 1}))
    keeper = await play.submit("keeps", 1)
    await play.ask(lambda: play.app.prices.set_exchange("5.25"))
    await play.ask(play.app.prices.exchange)
    await play.run()

    async def free() -> None:
        with suppress(NotFound):  # it was free the first time
            await play.app.pools.declare_free("things", "a")

    await play.ask(free)
    with suppress(IllegalMove):
        await play.ask(lambda: play.app.resume(keeper))
    await play.run()
    command = await play.ask(
        lambda: play.app.bulk.prepare("discard", why="seen", actor="a person")
    )
    await play.ask(lambda: play.app.bulk.apply(command, gone))


async def looks(play: Play) -> None:
    """A person looks at all there is, follows what happens, and has the promises checked."""

    async def buys(play: Play, ctx: Context, n: int) -> Any:
        return await ctx.step("paid", pay, play, ctx)

    play.job(buys)
    play.job(dies, retry=ONCE)
    play.job(child)
    play.failures = 2
    database = await play.ask(play.app.database)

    async def read(fn: Callable[[Transaction], T]) -> T:
        return await play.ask(lambda: database.read(fn))

    before = await read(tail.head)
    batch = await play.ask(lambda: play.app.submit_many("dies", [1, 2], key="dies"))
    play.jobs += 2
    await play.submit("buys", 1)
    await play.run()
    later = await play.submit("child", "later", delay=DAY)
    await play.ask(lambda: play.app.pauses.pause("kind", "child", "wait"))
    await play.ask(partial(play.app.explain, later))
    await play.ask(lambda: play.app.pauses.resume("kind", "child"))
    first, *_ = await play.ask(lambda: play.app.jobs(batch=batch.id))
    asked = (
        tail.head,
        lambda tx: tail.knows(tx, before) and tail.between(tx, before, tail.head(tx)),
        lambda tx: [*whole(tx, Subject(job=first.id), "UTC")],
        lambda tx: [*whole(tx, Subject(batch=batch.id), "UTC")],
        lambda tx: query.see_job(tx, first.id, before=None, limit=9),
        lambda tx: query.search_audit(tx, query.AuditSearch(), limit=9),
        lambda tx: in_flight.open_jobs(tx, 0),
        lambda tx: store.alerts.list_alerts(tx, in_force=False, before=None, limit=9),
        query.health,
        checker.check,
        checker.open_jobs,
    )
    for fn in asked:
        await read(fn)
    searches = (
        *(Search(state=state, kind="child") for state in State),
        *(Search(state=State.DEAD, batch=batch.id), Search(text="later"), Search()),
        Search(letters=True),
    )
    for search in searches:
        await play.ask(partial(play.app.count, search))
        await read(partial(query.search_ids, search=search, before=None, limit=9))
    await play.ask(lambda: play.app.dead.groups(Search(letters=True)))
    await play.ask(lambda: play.app.dead.causes([first.id]))
    await play.ask(lambda: play.app.dead.codes(batch.id))
    with suppress(IllegalMove):
        await play.ask(lambda: play.app.cancel(later))


EDGES = (
    Scenario("hints", hints),
    Scenario("answers", answers),
    Scenario("blob_stores", shelves),
    Scenario("late", late),
    Scenario("by_hand", by_hand),
    Scenario("restores", restores),
    Scenario("doubts", doubts),
    Scenario("notices", notices),
    Scenario("says", says),
    Scenario("looks", looks),
)
