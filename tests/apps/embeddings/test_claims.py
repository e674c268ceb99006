"""Many workers, one effect: what was really done is counted outside the queue, by whoever did it.

The document's own proof counts completed rows, and cannot fail: a job that was executed three times is one row
still (H-33). Here every execution and every call is a line in a file, written before it happens.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from retoma.apps.embeddings import store
from retoma.apps.embeddings.model import KIND, NewDocument, checked_rule
from retoma.apps.embeddings.providers import NGrams
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.chunks import Edition, Wish
from retoma.db import adhoc
from retoma.engine import store as engine
from retoma.engine.checker.effect_ledger import Effect
from retoma.engine.handlers.context import Context
from retoma.engine.rules.job import Held
from retoma.engine.rules.settlement import RELEASED
from retoma.engine.run.transaction import Transaction
from retoma.outbound import Outbound
from tests.apps.embeddings.aids import WHO, House, house
from tests.apps.embeddings.run_embeddings import (
    HOLD,
    STORY,
    asked,
    calls,
    install,
    tell_call,
)
from tests.chaos import history
from tests.chaos.world import Process, World
from tests.engine.aids import boot, claim, settle

MODULE = "tests.apps.embeddings.run_embeddings"
COMPLETED = adhoc("SELECT count(*) FROM queue_jobs WHERE status = 'completed'")
POISONED = adhoc("SELECT count(*) FROM queue_jobs WHERE \"errorCode\" = 'poison'")
VECTORS = adhoc("SELECT count(*) FROM embeddings_vectors")
ATTEMPTS = adhoc("SELECT job, epoch FROM attempts")


@asynccontextmanager
async def new_world(url: str, folder: Path, clock: Any) -> AsyncIterator[World]:
    Path.mkdir(folder)
    async with World(url, folder, clock, seed=7) as world, Outbound() as out:
        install(world.app, out, folder)
        yield world


def start(world: World, name: str, slots: int = 8) -> Process:
    return world.start(name, MODULE, {"name": name, "slots": slots, "tick": 0.5})


async def add(world: World, texts: list[str], name: str = "livros") -> None:
    model = model_of(NGrams())

    def add(tx: Any) -> None:
        made = store.collections.add(tx, name, model, checked_rule(), actor=WHO)
        given = [NewDocument(f"{n:04d}.txt", text) for n, text in enumerate(texts)]
        store.documents.add(tx, made.id, name, given, actor=WHO)

    await world.app.write(add)


async def wait_asked(world: World, *processes: Process) -> None:
    """Return when each of them is in the middle of a call."""

    async def all_are() -> bool:
        return {each.pid for each in processes} <= {c["pid"] for c in calls(world.folder)}

    await world.eventually(all_are, "a call of each is on its way")


async def doubles(world: World, excused: Mapping[str, int]) -> list[str]:
    """What was done more than once, or by whom it was not for: by the ledger, not by the queue."""
    database = await world.app.database()
    claims = {tuple(row) for row in await database.read(lambda tx: tx.all(ATTEMPTS))}
    executed = Counter((e.job, e.epoch) for e in world.effects() if e.step == STORY)
    twice = [
        f"job {job} was executed {n} times under epoch {epoch}"
        for (job, epoch), n in executed.items()
        if n > 1
    ]
    unclaimed = [
        f"job {job} was executed without a claim" for job, epoch in executed.keys() - claims
    ]
    again = asked(world.folder) - Counter(excused)
    more = [f"{text!r} was embedded {n} times" for text, n in again.items() if n > 1]
    return [*twice, *unclaimed, *more]


async def impossible(world: World) -> list[str]:
    """By the rules of every history; what steps hold is told by no ledger here."""
    found = history.problems(await world.history())
    return [each for each in found if not each.startswith("E5 value as made")]


async def rows(world: World, statement: Any) -> Any:
    database = await world.app.database()
    return await database.read(lambda tx: tx.all(statement))


async def test_a_hundred_jobs_three_workers_one_killed_one_a_zombie(
    database_url, tmp_path, test_clock
):
    """Show 1, W1 W5 E2 E3 E9 H-33: "Criar 100 jobs, rodar 3 workers simultaneamente", made to be able to fail.

    One is killed in the middle of a call, one is stopped in the middle of one and wakes after its lease. A text
    is asked for again only where those two had it on its way; a third of the texts are said twice, one after
    the other, so that both are at work at once.
    """
    texts = [f"texto de número {n * 7 // 10}, e mais nada" for n in range(100)]
    async with new_world(database_url, tmp_path / "world", test_clock) as world:
        world.open_gate(HOLD)
        await add(world, texts)
        workers = [start(world, f"worker-{n}") for n in (1, 2, 3)]
        killed, zombie, alive = workers
        await wait_asked(world, *workers)
        await world.freeze(zombie)
        world.kill(killed)
        on_their_way = asked(world.folder, killed.pid, zombie.pid)
        assert on_their_way
        (world.folder / HOLD).unlink()
        await world.travel(65, alive=[alive])
        await world.ring()
        await world.wait_ended()
        zombie.send(signal.SIGCONT)
        await world.eventually(lambda: reborn(world, zombie), "the zombie has a new boot")

        assert [] == await impossible(world)
        assert [] == await doubles(world, on_their_way)
        assert [(100,)] == [tuple(row) for row in await rows(world, COMPLETED)]
        assert {*texts} == asked(world.folder).keys()
        assert [(70,)] == [tuple(row) for row in await rows(world, VECTORS)]
        by = dict(await per_worker(world))
        assert by["worker-3"] > 0
        assert 100 == sum(by.values())
        await adds_up(world)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_two_thousand_jobs_and_eight_kills(database_url, tmp_path, test_clock):
    """Show 1 at its size: each kill meets a call on its way, and only what was in it is asked for again."""
    async with new_world(database_url, tmp_path / "world", test_clock) as world:
        await endure(world, jobs=2_000, kills=8)


async def endure(world: World, *, jobs: int, kills: int) -> None:
    """A quarter of the texts are said twice, one after the other."""
    different = jobs * 3 // 4
    texts = [f"texto de número {n * 3 // 4}, e mais nada" for n in range(jobs)]
    half = jobs // 2
    await add(world, texts[:half], "livros-1")
    await add(world, texts[half:], "livros-2")
    on_their_way: Counter[str] = Counter()
    for kill in range(kills):
        world.open_gate(HOLD)
        killed = start(world, f"killed-{kill}", slots=40)
        await wait_asked(world, killed)
        world.kill(killed)
        on_their_way += asked(world.folder, killed.pid)
        (world.folder / HOLD).unlink()
    workers = [start(world, f"worker-{n}", slots=20) for n in (1, 2, 3)]
    await world.booted(*workers)
    await world.wait_ended()

    assert [] == await impossible(world)
    assert [] == await doubles(world, on_their_way)
    # Whoever was alone under suspicion when his runner died for the third time is buried (E10).
    [(poison,)], [(done,)] = await rows(world, POISONED), await rows(world, COMPLETED)
    assert jobs == done + poison
    assert poison <= kills
    [(vectors,)] = await rows(world, VECTORS)
    assert different - poison <= vectors <= different
    await adds_up(world)


async def adds_up(world: World) -> None:
    """W3, with nothing in flight: every claim has come to something, kills and zombies included."""
    database = await world.app.database()
    told = await database.read(store.jobs.metrics)
    assert told.jobsRecovered > 0
    ends = (told.jobsCompleted, told.jobsFailed, told.jobsRetried, told.jobsRecovered)
    assert told.jobsClaimed == sum(ends), ends


async def per_worker(world: World) -> list[tuple[str, int]]:
    database = await world.app.database()
    found = await database.read(store.jobs.per_worker)
    return [(name, each.jobsCompleted) for name, each in found.items()]


async def reborn(world: World, process: Process) -> bool:
    states = [seen.state for seen in await world.boots_of(process)]
    return {"lost", "alive"} <= {*states}


async def test_a_planted_double_execution_is_caught(database_url, tmp_path, test_clock):
    """H-33: an old worker without claims does beside it all what it finds pending. The document's count is as it
    should be, and the ledger says what happened."""
    texts = [f"texto {n}" for n in range(10)]
    async with new_world(database_url, tmp_path / "world", test_clock) as world:
        await add(world, texts)
        pending = adhoc("SELECT id FROM queue_jobs WHERE status = 'pending' ORDER BY id")
        for (job,), text in zip(await rows(world, pending), texts[:3], strict=False):
            rogue = SimpleNamespace(job=job, generation=1, epoch=0)
            world.told.effect(cast("Context", rogue), STORY, "start")
            tell_call(world.folder, [text])
        worker = start(world, "worker-1")
        await world.booted(worker)
        await world.wait_ended()

        assert [(10,)] == [tuple(row) for row in await rows(world, COMPLETED)]
        found = await doubles(world, {})
        assert 6 == len(found), found
        assert 3 == sum("without a claim" in each for each in found)
        assert 3 == sum("embedded 2 times" in each for each in found)


async def test_the_ledger_also_sees_one_claim_executed_twice(
    database_url, tmp_path, test_clock
):
    async with new_world(database_url, tmp_path / "world", test_clock) as world:
        for _ in range(2):
            world.told.effect(
                cast("Context", SimpleNamespace(job=1, generation=1, epoch=1)), STORY, "start"
            )
        assert "job 1 was executed 2 times under epoch 1" in await doubles(world, {})
        assert isinstance(world.effects()[0], Effect)


# — old workers —


async def test_an_old_worker_without_claims_can_take_nothing(database_url):
    """Show 2, W4 E25: neither by the document's UPDATE, nor as a runner of a version before; the new one does all."""
    async with house(database_url) as there:
        await there.add(*((f"{n}.txt", f"texto {n}") for n in range(3)))
        database = await there.app.database()
        for sql in (
            "UPDATE queue_jobs SET status = 'processing', \"lockedBy\" = 'old' WHERE status = 'pending'",
            "DELETE FROM queue_jobs",
            "INSERT INTO queue_jobs (id) VALUES (1)",
        ):
            with pytest.raises(Exception, match="queue_jobs is a view"):
                await database.write(lambda tx, s=sql: tx.run(adhoc(s)), verb="test")  # type: ignore[misc]
        for old in ((f"{KIND}@0",), ("embeddings.job@1",), ()):
            me = await boot(database, f"old {old}", knows=old)
            assert [] == await claim(database, me, queues=(KIND,), knows=old, slots=10)
        assert {"pending"} == {s for (s,) in await there.rows("SELECT status FROM queue_jobs")}

        await there.drained()
        shown = await there.rows('SELECT status, attempts, "lockedBy" FROM queue_jobs')
        assert [("completed", 1, None)] * 3 == [tuple(row) for row in shown]


# — one text, one flight —


async def claimed(there: House, me: str, n: int) -> list[Held]:
    database = await there.app.database()
    await boot(database, me, knows=(f"{KIND}@1",))
    found = await claim(database, me, queues=(KIND,), knows=(f"{KIND}@1",), slots=n)
    return [each.held for each in found]


async def take(there: House, me: str, held: Held, *hashes: str) -> set[str]:
    """As a story does: whoever holds his job no more is not asked."""
    wish = Wish(held, Edition(0, 1), hashes, last=False)

    def take(tx: Transaction) -> set[str]:
        if held not in engine.hold_jobs(tx, me, [held]):
            return set()
        [taken] = store.chunks.take(tx, [wish])
        assert taken is not None
        return {*taken.mine}

    return await there.app.write(take)


async def test_a_text_is_in_one_hand_and_a_dead_hand_holds_nothing(database_url):
    """W5: whoever is first has it; whoever holds his job no more has nothing, and takes nothing."""
    async with house(database_url) as there:
        await there.add(("a", "texto a"), ("b", "texto b"), ("c", "texto c"))
        first, second = await claimed(there, "one", 2)
        [third] = await claimed(there, "two", 1)

        assert {"x", "y"} == await take(there, "one", first, "x", "y")
        assert {"z"} == await take(there, "one", second, "x", "y", "z")
        assert {"x", "y"} == await take(there, "one", first, "x", "y"), (
            "asked again it is the same"
        )
        stale = Held(first.job, first.epoch - 1)
        assert set() == await take(there, "one", stale, "x", "new")

        database = await there.app.database()
        await settle(database, "one", first, RELEASED)
        assert {"x", "y"} == await take(there, "two", third, "x", "y", "z")
        assert set() == await take(there, "one", first, "x", "new")
        left = await there.rows("SELECT hash, job FROM embeddings_flights ORDER BY hash")
        assert [("x", third.job), ("y", third.job), ("z", second.job)] == [*map(tuple, left)]
        assert 0 == await there.app.write(store.chunks.tidy)


async def test_w2_the_dlq_has_what_is_dead_and_a_replay_is_a_new_generation(database_url):
    """W2: attempts are all spent, or no try will help; replayed it begins again, and what was made is kept."""
    async with house(database_url) as there:
        there.provider.refuses = {"nunca": "refused", "talvez": "missing_row"}
        await there.add(("a", "nunca"), ("b", "talvez"), ("c", "sempre"))
        await there.drained()
        dead = await there.app.dead.list(kind=KIND)
        shown = {
            each.documentId: (each.status, each.attempts, each.errorCode)
            for each in await there.read(
                lambda tx: store.jobs.these(tx, [job.id for job in dead])
            )
        }
        assert [("failed", 1, "refused"), ("failed", 5, "missing_row")] == [
            shown[document] for document in sorted(shown)
        ]

        there.provider.refuses = {}
        for job in dead:
            assert 2 == (await there.app.retry(job.id, actor=WHO)).generation
        await there.drained()
        assert [] == await there.app.dead.list(kind=KIND)
        assert 3 == (await there.progress()).embedded


async def test_w3_metrics_are_the_fold_of_events(database_url):
    """W3: claimed = completed + failed + retried + recovered + in flight; by runner and in total."""
    async with house(database_url) as there:
        there.provider.refuses = {"mal": "missing_row", "nunca": "refused"}
        await there.add(
            *((str(n), f"texto {n}") for n in range(6)), ("x", "mal"), ("y", "nunca")
        )
        await there.drained()
        await there.add(("z", "texto z"))
        assert 1 == len(await claimed(there, "lone", 1))

        told = await there.read(store.jobs.metrics)
        events = Counter(
            type_ for (type_,) in await there.rows("SELECT type FROM events WHERE job > 0")
        )
        assert (events["claimed"], events["done"], events["buried"], events["failed"]) == (
            *(told.jobsClaimed, told.jobsCompleted, told.jobsFailed, told.jobsRetried),
        )
        assert (13, 6, 2, 4, 0) == (
            *(told.jobsClaimed, told.jobsCompleted, told.jobsFailed),
            *(told.jobsRetried, told.jobsRecovered),
        )
        assert told.jobsClaimed == 6 + 2 + 4 + 0 + 1, "one is in flight"
        assert 1 == (await there.read(lambda tx: store.jobs.metrics(tx, "lone"))).jobsClaimed
