"""Old and new code side by side: nobody takes what it does not know, or writes on it."""

from collections.abc import Callable
from typing import Any

from retoma.codec import encode
from retoma.db import adhoc
from retoma.engine import store
from retoma.engine.checker.effect_ledger import Accepted
from retoma.engine.rules import settlement
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Held
from retoma.engine.rules.states import State
from retoma.engine.store import Submission
from tests.chaos import run_version
from tests.chaos.world import Process, World
from tests.engine.aids import boot, claim, settle

EACH = 25  # jobs of either version
KNOWS = adhoc("SELECT boot, knows FROM runners")
VERSIONS = adhoc("SELECT id, version FROM jobs")
NO_TICK = 600.0  # seconds: whatever happens before, no tick has brought it about


def mixed(new_world: Callable[[], World]) -> World:
    """A world whose client has the new code."""
    world = new_world()
    world.app = run_version.build("new", world.url, world.folder)
    return world


def start(world: World, code: str, name: str, **knobs: Any) -> Process:
    told = {"code": code, "name": name, "tick": 1.0, **knobs}
    return world.start(name, "tests.chaos.run_version", told)


async def submit(world: World, version: int, kind: str = "quote", /, **payload: Any) -> int:
    """As a client of that version would."""
    about = Submission(kind=kind, version=version, queue=run_version.QUEUE)
    new = store.NewJob(encode(payload))
    database = await world.app.database()
    job = await database.write(lambda tx: store.submit_job(tx, about, new), verb="submit")
    world.told.accepted(Accepted(job.id, payload, None, 0.0))
    return job.id


async def test_e25_in_one_queue_each_version_runs_only_where_it_is_known(new_world):
    """Runners of both codes, one of each killed in the middle of it."""
    async with mixed(new_world) as world:
        old, new = start(world, "old", "old", slots=5), start(world, "new", "new", slots=5)
        await world.booted(old, new)
        for _ in range(EACH):
            await submit(world, 1)
            await submit(world, 2)
        await world.eventually(lambda: begun(world, 5), "work has begun")
        old.kill()
        new.kill()
        again = [start(world, "old", "old again"), start(world, "new", "new again")]
        await world.booted(*again)

        await world.wait_ended()

        found = await world.verdict()
        database = await world.app.database()
        versions: dict[int, int] = dict(await database.read(lambda tx: tx.all(VERSIONS)))
        knows: dict[str, str] = dict(await database.read(lambda tx: tx.all(KNOWS)))
        claims = [event for event in found.events if event.type is EventType.CLAIMED]
        assert 2 * EACH <= len(claims)
        for event in claims:
            assert f'"quote@{versions[event.job]}"' in knows[event.actor or ""]
        by_the_old = {each.job for each in world.effects() if each.value == "old"}
        assert {1} >= {versions[job] for job in by_the_old}


async def begun(world: World, n: int) -> bool:
    return len(world.effects()) >= n


async def test_e25_an_old_runner_does_not_wait_for_what_only_new_code_can_do(new_world):
    async with mixed(new_world) as world:
        first, second = await submit(world, 1), await submit(world, 2)

        old = start(world, "old", "old", until_idle=True)
        await world.eventually(lambda: ended(old), "the old runner has left by itself")
        states = await world.states()
        new = start(world, "new", "new", until_idle=True)
        await world.eventually(lambda: ended(new), "the new runner has left by itself")

        assert (0, 0) == (old.popen.returncode, new.popen.returncode)
        assert {first: State.DONE, second: State.WAITING} == states
        assert {State.DONE} == {*(await world.states()).values()}
        await world.verdict()


async def ended(process: Process) -> bool:
    return not process.running


async def test_e25_new_code_goes_on_with_an_old_job_and_repeats_only_steps_of_a_new_version(
    new_world,
):
    async with mixed(new_world) as world:
        old = start(world, "old", "old")
        await world.booted(old)
        job = await submit(world, 1, gate="never", reprice=True)
        await world.eventually(
            lambda: sending(world, job), "the old code holds it at its last step"
        )

        old.kill()
        start(world, "new", "new")
        await world.wait_ended()

        steps = {(step.name, step.version): step.value for step in await world.app.steps(job)}
        done = f"of job {job} by the"
        assert {
            ("analyse", 1): f'"analyse {done} old code"',
            ("price", 1): f'"price {done} old code"',
            ("price", 2): f'"price {done} new code"',
            ("send", 1): '"new"',
        } == steps
        result = (await world.app.get(job)).result
        assert f'["analyse {done} old code","price {done} new code","new"]' == result


async def sending(world: World, job: int) -> bool:
    return await all_sending(world, [job])


async def all_sending(world: World, jobs: list[int]) -> bool:
    return set(jobs) <= {each.job for each in world.effects() if each.step == "send"}


async def test_e25_old_code_can_neither_claim_nor_write_what_it_does_not_know(new_world):
    async with mixed(new_world) as world:
        job = await submit(world, 2)
        database = await world.app.database()
        await boot(database, "old", knows=["quote@1"])
        await boot(database, "new", knows=["quote@1", "quote@2"])
        queues = [run_version.QUEUE]

        refused = await claim(database, "old", queues=queues, knows=["quote@1"], slots=9)
        [held] = await claim(
            database, "new", queues=queues, knows=["quote@1", "quote@2"], slots=9
        )
        written = [
            await settle(database, "old", Held(job, epoch), settlement.done("1"))
            for epoch in range(3)
        ]

        assert ([], job) == (refused, held.job)
        assert [None] * 3 == written
        assert State.RUNNING is (await world.app.get(job)).state


async def test_e25_who_runs_goes_on_under_a_newer_schema_and_no_older_code_starts(new_world):
    """A newer retoma has come and added to the schema. Work in flight ends as it would have."""
    async with mixed(new_world) as world:
        old = start(world, "old", "old", slots=4)
        held = [await submit(world, 1, gate="dawn") for _ in range(4)]
        await world.eventually(lambda: all_sending(world, held), "all are at work")
        waiting = [await submit(world, 1) for _ in range(10)]
        database = await world.app.database()

        await database.write(lambda tx: [tx.run(each) for each in NEWER], verb="migrate")
        late = start(world, "old", "late")
        await world.eventually(lambda: ended(late), "it does not start")
        world.open_gate("dawn")
        await world.wait_ended()

        assert 0 != late.popen.returncode
        assert "schema 9999, this retoma knows up to" in late.log.read_text()
        assert not await world.boots_of(late)
        assert old.running
        found = await world.verdict()
        assert dict.fromkeys(held + waiting, State.DONE) == {j.id: j.state for j in found.jobs}


NEWER = (
    adhoc("ALTER TABLE jobs ADD COLUMN wish text"),
    adhoc("ALTER TABLE steps ADD COLUMN wish text"),
    adhoc("ALTER TABLE runners ADD COLUMN wish text"),
    adhoc("CREATE INDEX jobs_wishes ON jobs (wish) WHERE wish IS NOT NULL"),
    adhoc(
        "INSERT INTO retoma_migrations VALUES ('engine', 9999, 'wishes', '', (SELECT clock()))"
    ),
)


async def test_a_neighbour_that_boots_and_dies_between_two_ticks_is_missed_at_once(new_world):
    """E18: it rings when it boots, so whoever is beside it knows whom to miss."""
    async with mixed(new_world) as world:
        survivor = start(world, "old", "survivor", tick=NO_TICK)
        await world.booted(survivor)
        victim = start(world, "new", "victim")
        job = await submit(world, 2, gate="never")
        await world.eventually(lambda: sending(world, job), "the victim is at it")

        victim.kill()
        [dead] = await world.boots_of(victim)
        await world.eventually(lambda: waits(world, job), "the job waits again")

        [lost] = [e for e in await world.app.events(job) if e.type is EventType.LOST]
        assert lost.at < dead.lease_until


async def waits(world: World, job: int) -> bool:
    return (await world.app.get(job)).state is State.WAITING
