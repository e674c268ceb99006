"""One look tells a runner all that there may be to do; each thing alone turns it red."""

from typing import Any

import pytest

from retoma import Retoma
from retoma.db import Database
from retoma.engine import store
from retoma.engine.ports import Process
from retoma.engine.store import Around
from tests.engine.aids import boot, change, claim, eventually, rows, running, submit

NOTHING = {
    "waiting": False,
    "aside": False,
    "cancels": False,
    "left_over": False,
    "duty_free": False,
    "due": None,
}


async def look(database: Database, me: str = "me") -> Around:
    return await database.read(
        lambda tx: store.look_around(
            tx, me, Process.this().host, queues=["work"], knows=["work@1"], duties=["fold"]
        )
    )


def told(seen: Around) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in NOTHING}


async def settled(app: Retoma) -> Database:
    """Somebody is alive, has the duty, and there is nothing to do."""
    database = await app.database()
    await boot(database, "me")
    await database.write(lambda tx: store.take_duties(tx, "me", ["fold"]), verb="t")
    return database


async def test_where_there_is_nothing_to_do_a_look_says_so(database_url):
    async with Retoma(database_url) as app:
        database = await settled(app)
        await submit(database, 3, kind="other")
        await change(database, "UPDATE jobs SET queue = 'other'")
        await submit(database, 1)
        await change(database, "UPDATE jobs SET version = 9 WHERE kind = 'work'")

        seen = await look(database)

        assert NOTHING == told(seen)
        assert (1, [], None, False) == (
            seen.held,
            seen.beside,
            seen.lease_ends,
            seen.lease_over,
        )


LATER = "UPDATE jobs SET turn = NULL, run_at = clock_in(30)"
CASES = [
    ("waiting", "UPDATE jobs SET lost = 0"),
    ("waiting", "UPDATE jobs SET lost = 2"),
    ("aside", "UPDATE jobs SET aside = 'batch:1'"),
    ("cancels", "UPDATE jobs SET state = 'running', runner = 'me', turn = NULL,"
                " started_at = clock_in(-5), cancel_at = clock_in(-1)"),
    ("left_over", "UPDATE jobs SET state = 'running', runner = 'you', turn = NULL"),
    ("duty_free", "UPDATE duties SET boot = 'you'"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "sql"), CASES)
async def test_each_thing_to_do_is_seen(database_url, what, sql):
    async with Retoma(database_url) as app:
        database = await settled(app)
        await boot(database, "you")
        await change(database, "UPDATE runners SET state = 'gone' WHERE boot = 'you'")
        await submit(database, 1)
        if what == "duty_free":
            await change(database, "UPDATE jobs SET state = 'done', turn = NULL")

        await change(database, sql)

        assert {**NOTHING, what: True} == told(await look(database))


async def test_it_says_when_something_is_due_and_whose_lease_ends(database_url):
    async with Retoma(database_url) as app:
        database = await settled(app)
        await boot(database, "you", lease=40)
        await submit(database, 1)
        await change(database, LATER)

        seen = await look(database)
        await change(database, "UPDATE runners SET lease_until = clock_in(-1)")
        later = await look(database)

        assert seen.due is not None
        assert seen.lease_ends is not None
        assert 20 < seen.due <= 30
        assert 30 < seen.lease_ends <= 40
        assert ["you"] == [name for name, _ in seen.beside]
        assert (False, True) == (seen.lease_over, later.lease_over)


async def test_e2_the_lease_of_a_neighbour_is_seen_to_end_when_it_does(
    database_url, test_clock
):
    """A runner that only ticks every hour looks when the first lease ends."""
    async with Retoma(database_url) as app:

        @app.job(name="work")
        async def work(ctx: Any, n: int) -> int:
            return n

        database = await app.database()
        test_clock.jump(0)
        elsewhere = Process("another host", 1, "1")
        await boot(database, "you", lease=50, process=elsewhere)
        await submit(database, 1)
        [held] = await claim(database, "you")

        async def taken() -> bool:
            return (await app.get(held.job)).runner != "you"

        async with running(app, tick=3600):
            await eventually(lambda: both_live(database))
            await change(database, "UPDATE runners SET since = clock_in(-100)")
            test_clock.jump(51)
            await app.submit("work", 2)  # wakes it: its own clock has jumped as well
            await eventually(taken)


async def both_live(database: Database) -> bool:
    return 2 == len(await rows(database, "SELECT boot FROM runners WHERE state = 'alive'"))
