"""The whole of seed 004: orchestrators, workers, writer and proxies as processes of their own, and killed."""

import random
import signal
from collections.abc import Iterator
from datetime import date

import pytest

from tests.apps.ads import recovery
from tests.apps.ads.around import Around, around, days, house, settle
from tests.apps.ads.run_orchestrator import DREAM, POINTS
from tests.apps.ads.test_steps import SEQUENCE
from tests.apps.ads.test_world_rows import Rows
from tests.conftest import soaking

LONG = (date(2025, 6, 1), date(2025, 9, 30), ("pt", "en", "es"))  # some seconds of scraping
LONG_ONES = (
    (date(2025, 10, 1), date(2025, 11, 30), ("pt",)),
    (date(2025, 10, 1), date(2025, 11, 30), ("en",)),
)
SAMPLE = ("scrape.request", "process.answer")
THE_WAY = [each for each in SEQUENCE if not each.endswith("_progress")]  # §10.2, each line once
FORGOTTEN = 61.0  # seconds after which a request that is nowhere to be found never arrived


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    with around(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("missions", "kills"),
    [
        (4, 2),
        pytest.param(40, 40, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
async def test_m1_to_m11_whoever_is_killed_every_mission_ends_and_nothing_is_doubled(
    database_url, tmp_path, world, missions, kills
):
    chance = random.Random(7)
    async with house(database_url, world, tmp_path) as found:
        for name in ("one", "two"):
            found.orchestrate(name)
        await found.add(*days(missions))
        for _ in range(kills):
            await settle(chance.uniform(0.3, 1.5))
            name = chance.choice(["one", "two", "worker", "writer", "proxy"])
            if name in found.running:
                found.kill(name)
                found.orchestrate(name)
                continue
            among = {"worker": world.workers, "writer": (world.writer,), "proxy": world.proxies}
            victim = chance.choice(among[name])
            victim.kill()
            victim.start()
        await found.until_rest()

        assert {"completed"} == set(await found.statuses())
        assert [] == await found.problems()


@pytest.mark.timeout(600 if soaking() else 120)
async def test_m1_m10_an_orchestrator_killed_around_its_posts_leaves_nothing_undone_or_twice(
    database_url, tmp_path, world, test_clock
):
    """E6: at every point around the four POSTs; the gate takes those nobody can do without."""
    async with house(database_url, world, tmp_path) as found:
        for place, point in enumerate(POINTS if soaking() else SAMPLE):
            found.orchestrate("armed", point)
            wanted = LONG if point.startswith("cancel") else days(place + 1, month=4)[-1]
            [mission] = await found.add(wanted)
            if point.startswith("cancel"):
                await found.until(mission, "worker_job_id IS NOT NULL")
                await found.cancel(mission)
            assert -signal.SIGKILL == await found.died("armed"), point
            test_clock.jump(FORGOTTEN)
            found.orchestrate("next")
            await found.until_rest()
            assert 0 == found.leave("next")

            ended = "canceled" if point.startswith("cancel") else "completed"
            assert ended == (await found.mission(mission))["status"], point
            if ended == "canceled":
                found.expected = {
                    key: row for key, row in found.expected.items() if row[-1] < "2025-06"
                }
            assert [] == await found.problems(), point


@pytest.mark.timeout(120)
async def test_m9_an_orchestrator_that_slept_past_its_lease_changes_nothing_when_it_wakes(
    database_url, tmp_path, world, test_clock
):
    """E2, E3, E4: it has been told of a scrape and has not written it down; another one finishes it."""
    async with house(database_url, world, tmp_path) as found:
        found.orchestrate("sleeper", f"scrape.answer={DREAM}")
        missions = await found.add(*days(2, month=5))
        await found.dreams("sleeper")
        await found.freeze("sleeper")
        [asleep] = await found.living()
        found.orchestrate("heir")
        await found.booted("heir")
        await found.travel(test_clock, "heir", hops=2)
        for each in missions:
            await found.until(each, "status = 'completed'")
        found.end_dream("sleeper")
        again = await found.booted("sleeper", beside=asleep.boot)
        await found.add(*days(4, month=5)[2:])
        await found.until_rest()

        assert {"completed"} == set(await found.statuses())
        assert [] == await found.problems()
        assert again.boot != asleep.boot
        assert (0, 0) == (found.leave("sleeper"), found.leave("heir"))


@pytest.mark.soak
async def test_an_orchestrator_that_is_told_to_leave_hands_over_what_it_has_begun(
    database_url, tmp_path, world
):
    """§5.5, §5.6: the remote work goes on; whoever comes next finds it by its id and sends nothing."""
    async with house(database_url, world, tmp_path) as found:
        found.orchestrate("first")
        [mission] = await found.add(LONG_ONES[0])
        await found.until(mission, "worker_job_id IS NOT NULL")
        begun = (await found.mission(mission))["worker_job_id"]
        assert 0 == found.leave("first")
        found.orchestrate("second")
        await found.until_rest()

        after = await found.mission(mission)
        assert ("completed", begun) == (after["status"], after["worker_job_id"])
        assert [] == await found.problems()


@pytest.mark.timeout(900 if soaking() else 120)
async def test_recovery_of_what_a_killed_orchestrator_left_asks_before_it_sends(
    database_url, tmp_path, world, test_clock
):
    """§5.6: every row of its table; in the gate the first, a scrape that goes on without anybody."""
    async with house(database_url, world, tmp_path) as found:
        rows = Rows(found, test_clock)
        for place, left in enumerate(recovery.EVERY if soaking() else recovery.EVERY[:1]):
            scrapes, writes = recovery.begun(world), len(recovery.handed_over(world))
            mission = await recovery.die(found, left, recovery.mission_of(left, place))
            dead = await found.mission(mission)
            assert left.mission == (dead["status"], dead["checkpoint"]), left
            test_clock.jump(FORGOTTEN)
            found.orchestrate("one")
            await left.after(found, mission)
            if left.slow:
                world.peace()
            await rows.until_rest()
            found.kill("one")
            world.peace()

            after = await found.mission(mission)
            sent = recovery.begun(world) - scrapes
            # One that was stopped because nobody could say whose it was may cost a try, too.
            assert (sent - 1 if left.scrape else 0) <= after["retry_count"] < sent, left
            assert ("completed", True) == (after["status"], sent in left.scrapes), left
            if left.scrapes == (1,):
                told = [event for event, _ in (await found.timelines())[mission]]
                assert THE_WAY == [each for each in told if each in THE_WAY], left
            assert 1 == len(recovery.handed_over(world)) - writes, left
            if dead["worker_job_id"] is not None and not left.scrape:
                assert dead["worker_job_id"] == after["worker_job_id"], left
            assert [] == await found.problems(), left
