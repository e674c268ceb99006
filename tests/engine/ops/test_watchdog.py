"""What lost runners leave behind, and the counters."""

import asyncio
import threading

import pytest

from retoma import Retoma, State
from retoma.db import Database, Transaction
from retoma.engine import query, store
from retoma.engine.ops.watchdog import Swept, Watchdog
from retoma.engine.ports import Process
from retoma.engine.rules import settlement
from retoma.engine.rules.job import MOST_LOSSES, NEARLY_ALONE, StepId
from retoma.engine.rules.states import DeadReason
from tests.engine.aids import boot, change, claim, eventually, rows, settle, submit

LEASE = 60.0
ELSEWHERE = Process("another machine", 1, "1")


def watchdog(database: Database, me: str = "watch") -> Watchdog:
    return Watchdog(database, me, Process.this(), LEASE)


async def dead_neighbour(database: Database, name: str = "dead") -> str:
    """A runner of this host whose process is provably gone."""
    here = Process.this()
    return await boot(database, name, process=Process(here.host, here.pid, "long ago"))


async def beat(database: Database, name: str) -> None:
    await database.write(
        lambda tx: store.beat_runner(tx, name, LEASE, reconnected=False), verb="beat"
    )


async def test_e18_jobs_of_a_dead_neighbour_are_taken_back_at_once(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        dead = await dead_neighbour(database)
        await submit(database, 3)
        await claim(database, dead, slots=2)

        swept = await watchdog(database).run_once()

        assert Swept(lost=1, taken_back=2) == swept
        assert {State.WAITING: 3} == await app.insights.counts()
        assert 3 == len(await claim(database, "watch", slots=9))
        states = {runner.boot: runner.state for runner in await app.runners.list()}
        assert {"watch": "alive", "dead": "lost"} == states


async def test_e18_a_runner_elsewhere_is_lost_when_its_lease_is_over(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "watch")
        await boot(database, "silent", process=ELSEWHERE)
        await submit(database)
        [held] = await claim(database, "silent")

        early = await watchdog(database).run_once()
        for _ in range(2):
            test_clock.jump(31)
            await beat(database, "watch")
        late = await watchdog(database).run_once()

        assert (Swept(), Swept(lost=1, taken_back=1)) == (early, late)
        job = await app.get(held.job)
        assert (State.WAITING, 0, 1, 1) == (job.state, job.failures, job.lost, job.epoch)
        assert ["lost"] == [attempt.ended for attempt in await app.attempts(held.job)]


async def test_one_whose_own_lease_is_over_declares_nobody_lost(database_url, test_clock):
    """F8: nobody could write for a lease; the first to tick again is not the judge of the others."""
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "watch")
        await boot(database, "silent", process=ELSEWHERE)
        test_clock.jump(61)

        before_its_beat = await watchdog(database).run_once()
        await beat(database, "watch")
        after_it = await watchdog(database).run_once()

        assert (Swept(), Swept()) == (before_its_beat, after_it)


async def test_one_who_was_not_in_touch_for_a_whole_lease_declares_nobody_lost(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "silent", process=ELSEWHERE)
        test_clock.jump(61)
        await boot(database, "watch")

        assert Swept() == await watchdog(database).run_once()


async def test_e19_many_recoveries_of_one_runner_take_its_jobs_back_once(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        database = await app.database()
        dead = await dead_neighbour(database)
        await submit(database, 20)
        await claim(database, dead, slots=20)
        for name in ("w1", "w2", "w3", "w4"):
            await boot(database, name)

        places = [database, await other.database()] * 2
        swept = await asyncio.gather(
            *(watchdog(place, f"w{n}").run_once() for n, place in enumerate(places, start=1))
        )

        assert (1, 20) == (sum(s.lost for s in swept), sum(s.taken_back for s in swept))
        [[told]] = await rows(database, "SELECT count(*) FROM events WHERE type = 'lost'")
        assert 20 == told


async def test_e19_two_who_take_back_at_the_same_moment_take_each_job_back_once(database_url):
    """The second comes while the first has not committed: it neither waits for it nor repeats it."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        database, elsewhere = await app.database(), await other.database()
        await boot(database, "dead")
        await submit(database, 5)
        await claim(database, "dead", slots=5)
        await change(database, "UPDATE runners SET state = 'lost'")
        taken, may_commit = threading.Event(), threading.Event()

        def take_back_slowly(tx: Transaction) -> int:
            back = store.take_back(tx, "first")
            taken.set()
            assert may_commit.wait(60)
            return len(back)

        first = asyncio.create_task(database.write(take_back_slowly, verb="take_back"))
        assert await asyncio.to_thread(taken.wait, 60)
        second = asyncio.create_task(
            elsewhere.write(lambda tx: len(store.take_back(tx, "second")), verb="take_back")
        )
        if database.dialect == "postgres":

            async def through_or_waiting() -> bool:
                return second.done() or bool(await rows(database, WAITING))

            await eventually(through_or_waiting)
        may_commit.set()

        assert (5, 0) == (await first, await second)
        [[told]] = await rows(database, "SELECT count(*) FROM events WHERE type = 'lost'")
        assert 5 == told


WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    " AND datname = current_database()"
)


async def test_more_than_a_bite_is_taken_back_in_one_look(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        dead = await dead_neighbour(database)
        await submit(database, store.BITE + 20)
        await claim(database, dead, slots=store.BITE + 20)

        swept = await watchdog(database).run_once()

        assert store.BITE + 20 == swept.taken_back
        assert {State.WAITING: store.BITE + 20} == await app.insights.counts()


async def lose_once(database: Database, n: int, *, suspects: int = 1) -> list[int]:
    """A runner takes all it can and dies; who was on it."""
    dead = await dead_neighbour(database, f"dead{n}")
    held = await claim(database, dead, slots=100, suspects=suspects)
    await watchdog(database).run_once()
    return [each.job for each in held]


async def test_e10_the_third_loss_without_progress_buries_the_suspect(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database)

        marks = []
        for n in range(3):
            [job] = await lose_once(database, n)
            found = await app.get(job)
            marks.append((found.state, found.lost, found.suspect))

        assert [
            (State.WAITING, 1, False),
            (State.WAITING, 2, True),
            (State.DEAD, 3, False),
        ] == marks
        found = await app.get(job)
        assert ("poison", "poison", 0) == (found.reason, found.code, found.failures)
        assert "buried" == (await app.events(job))[-1].type
        assert ["lost"] * 3 == [attempt.ended for attempt in await app.attempts(job)]


async def test_e10_however_many_runners_die_no_neighbour_of_a_poison_job_is_buried(
    database_url,
):
    """The one suspect a runner holds may be the innocent one: progress clears it."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database, 20)
        poison = 7

        for n in range(30):
            me = await dead_neighbour(database, f"r{n}")
            held = await claim(database, me, slots=100)
            assert 1 >= sum(each.suspect for each in held)
            if poison not in [each.job for each in held]:
                for each in held:
                    await settle(database, me, each.held, settlement.done("1"))
            await watchdog(database).run_once()

        assert {State.DEAD: 1, State.DONE: 19} == await app.insights.counts()
        assert State.DEAD is (await app.get(poison)).state


async def lose_among(database: Database, n: int, others: int) -> int:
    """A runner that holds the suspect and so many fresh jobs dies; these end well on another one."""
    await submit(database, others)
    me = await dead_neighbour(database, f"among{n}")
    held = await claim(database, me, slots=others)
    [suspect] = [each.job for each in held if each.suspect]
    assert others + 1 == len(held)
    await watchdog(database).run_once()
    end = await boot(database, f"end{n}")
    for each in await claim(database, end, slots=others, suspects=0):
        await settle(database, end, each.held, settlement.done("1"))
    return suspect


async def test_e10_three_kills_beside_twenty_nine_others_condemn_nobody(database_url):
    """What killed those runners nobody knows; beside so many it was hardly this one."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database)
        for n in range(2):
            [job] = await lose_once(database, n)

        losses = []
        for n in range(MOST_LOSSES - 2):
            assert job == await lose_among(database, n, 29)
            found = await app.get(job)
            losses.append((found.state, found.lost))

        waits = [(State.WAITING, n) for n in range(3, MOST_LOSSES)]
        assert [*waits, (State.DEAD, MOST_LOSSES)] == losses, "it is found all the same"
        assert {"lost"} == {attempt.ended for attempt in await app.attempts(job)}


async def test_e10_a_suspect_nearly_alone_is_judged_by_its_third_loss(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database)
        for n in range(2):
            [job] = await lose_once(database, n)

        await lose_among(database, 0, NEARLY_ALONE)
        beside = await app.get(job)
        await lose_among(database, 1, NEARLY_ALONE - 1)

        assert State.WAITING is beside.state
        assert State.DEAD is (await app.get(job)).state


async def test_e10_a_suspect_among_more_than_a_slice_is_beside_all_of_them(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        fresh = store.BITE + NEARLY_ALONE
        await submit(database, fresh)
        await submit(database)
        job = fresh + 1
        await change(database, "UPDATE jobs SET lost = 2 WHERE id = (SELECT max(id) FROM jobs)")
        dead = await dead_neighbour(database)
        assert fresh + 1 == len(await claim(database, dead, slots=fresh))

        await watchdog(database).run_once()

        assert (State.WAITING, 3) == ((await app.get(job)).state, (await app.get(job)).lost)


async def test_e10_a_committed_step_clears_the_suspicion(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database)
        [job] = await lose_once(database, 0)
        await lose_once(database, 1)
        me = await dead_neighbour(database, "dead2")
        [held] = await claim(database, me)
        fields = store.step_fields(StepId("read"), "1")

        await database.write(
            lambda tx: tx.finish(store.saves(me, [(held.held, StepId("read"), fields)])),
            verb="save",
        )
        await watchdog(database).run_once()

        found = await app.get(job)
        assert (State.WAITING, 1) == (found.state, found.lost)


async def test_e13_a_lost_job_somebody_wanted_canceled_is_canceled_not_tried_again(
    database_url,
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await submit(database)
        dead = await dead_neighbour(database)
        [held] = await claim(database, dead)
        await app.cancel(held.job)

        await watchdog(database).run_once()

        assert State.CANCELED is (await app.get(held.job)).state
        assert [] == await claim(database, "watch")


async def test_what_a_runner_that_has_left_still_held_is_given_back_not_lost(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        await boot(database)
        await submit(database)
        [held] = await claim(database, "me")
        await database.write(
            lambda tx: store.move_runner(tx, "me", "gone", actor="me"), verb="move"
        )

        await watchdog(database).run_once()

        found = await app.get(held.job)
        assert (State.WAITING, 0) == (found.state, found.lost)
        assert ["released"] == [attempt.ended for attempt in await app.attempts(held.job)]


async def test_folding_changes_no_count_and_leaves_no_tally(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 5, batch=1)
        for each in await claim(database, "me", slots=3):
            await settle(database, "me", each.held, settlement.done("1"))
        before = (
            await app.insights.counts(),
            await database.read(lambda tx: query.count_jobs(tx, 1)),
        )

        folded = await watchdog(database).fold()

        after = (
            await app.insights.counts(),
            await database.read(lambda tx: query.count_jobs(tx, 1)),
        )
        assert folded > 0
        assert [(0,)] == await rows(database, "SELECT count(*) FROM tallies")
        assert ({State.WAITING: 2, State.DONE: 3},) * 2 == before == after


@pytest.mark.parametrize("how", ["dead", "retried"])
async def test_counts_of_dead_jobs_by_code_come_and_go_with_them(database_url, how):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database)
        [held] = await claim(database, "me")
        gone = settlement.buried(DeadReason.PERMANENT, "GONE", {})
        await settle(database, "me", held.held, gone)
        if how == "retried":
            await app.retry(held.job)
        await watchdog(database).fold()

        counted = await rows(
            database, "SELECT state, code, n FROM counts WHERE n <> 0 AND batch = -1"
        )

        expected = ("dead", "GONE", 1) if how == "dead" else ("waiting", "", 1)
        assert [expected] == counted


async def test_a_counter_that_cannot_be_folded_stops_nobody_from_being_recovered(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "watch")
        dead = await dead_neighbour(database)
        await submit(database)
        await claim(database, dead)
        await change(database, "DROP TABLE pace")

        with pytest.raises(Exception, match="pace"):
            await watchdog(database).fold()
        swept = await watchdog(database).run_once()

        assert 1 == swept.taken_back
