"""Many machines on one PostgreSQL, and a network between that fails them.

The hosts have networks of their own where this machine allows it; what is said of how they were
made stands in the output of each test.
"""

import signal
from collections import Counter
from functools import partial
from typing import Any

import pytest

from retoma.db import adhoc
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.history import History
from tests.chaos.hosts import Host, Hosts
from tests.chaos.test_versions import KNOWS, all_sending, ended, mixed, submit
from tests.chaos.world import Process, World

SLOTS = 6  # of each host
LEASE = 61  # seconds, and one more
ENDS = (("held", 1), ("after", 2))  # of a held job that was taken over: step and epoch
DUTIES = adhoc("SELECT d.name, d.term, r.pid FROM duties d JOIN runners r ON r.boot = d.boot")
TAGS = adhoc("SELECT id, kind || '@' || version FROM jobs")
HOLDERS = adhoc(
    "SELECT r.name, count(*) FROM jobs j JOIN runners r ON r.boot = j.runner GROUP BY r.name"
)


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """SQLite is on one machine: nothing here can happen to it."""
    return postgres_url


@pytest.mark.parametrize(
    ("partition", "networks"),
    [
        pytest.param("cut_off", True, id="packets vanish"),
        pytest.param("hang_up", True, id="connections reset"),
        pytest.param(
            "cut_off", False, id="packets vanish between processes", marks=pytest.mark.soak
        ),
    ],
)
async def test_e18_a_host_cut_off_for_longer_than_its_lease_stops_and_comes_back_clean(
    new_world, database_url, partition, networks
):
    """E2 E3 E18 E19: it starts nothing; each of its jobs is taken over once; what it offers late is
    refused and counted; its duties are another's, by the next term; it lives on as a new boot."""
    with Hosts(4, database_url, networks=networks) as [first, *others]:
        async with new_world() as world:
            world.open_gate("beats")
            cut = first.start(world, slots=SLOTS, mute_until="beats")
            late = await world.submit_all("late_start", [{"gate": "dawn"}] * 3)
            held = await world.submit_all("hold", [{"gate": "dawn"}] * 3)
            await world.wait_held(late + held)
            await world.eventually(lambda: has_duties(world, cut), "it has the duties")
            alive = [host.start(world, slots=SLOTS) for host in others]
            await world.booted(*alive)
            await world.wait_held(await world.submit_all("hold", [{"gate": "noon"}] * 18))
            before = await duties(world)

            (world.folder / "beats").unlink()
            getattr(first, partition)()
            await world.travel(LEASE, alive=alive)
            await world.eventually(lambda: waits(world, late + held), "its jobs wait again")
            world.open_gate("dawn")
            await world.eventually(lambda: tried(world, late, held), "its stories went on")
            world.open_gate("noon")
            await world.wait_ended()

            by_it = [e for e in world.effects() if e.pid == cut.pid]
            assert not [e for e in by_it if e.step in ("late", "after")], "it began something"
            await world.eventually(lambda: moved(world, cut, before), "others have its duties")

            first.reach_again(partition)
            await world.eventually(lambda: refused(world, len(held)), "its writes are refused")
            world.open_gate("beats")
            await world.eventually(lambda: reborn(world, cut), "it has a new boot")
            again = await world.submit_all("hold", [{"gate": "dusk"}] * 4 * SLOTS)
            await world.wait_held(again)

            assert dict.fromkeys([h.name for h in [first, *others]], SLOTS) == await holders(
                world
            )
            world.open_gate("dusk")
            await world.wait_ended()
            found = await world.verdict()
            assert {State.DONE} == {job.state for job in found.jobs}
            for type_, times in ((EventType.CLAIMED, 2), (EventType.LOST, 1)):
                happened = Counter(e.job for e in found.events if e.type is type_)
                assert dict.fromkeys(late + held, times) == {
                    job: happened[job] for job in late + held
                }
            assert {1} == set(Counter(ends(world, "late", "after")).values())
            boots = await world.boots_of(cut)
            assert ["alive", "lost"] == sorted(boot.state for boot in boots)


@pytest.mark.parametrize("networks", [True, False], ids=["networks", "processes"])
async def test_e5_a_host_that_is_heard_but_hears_nothing_loses_no_saved_step(
    new_world, database_url, networks
):
    """E5 E18: a half-open way. Its saves are committed, their answers lost: read back, not repeated."""
    with Hosts(4, database_url, networks=networks) as [first, *others]:
        async with new_world() as world:
            deaf = first.start(world, slots=SLOTS)
            jobs = await world.submit_all("hold", [{"gate": "dawn"}] * SLOTS)
            await world.wait_held(jobs)
            alive = [host.start(world, slots=SLOTS) for host in others]
            await world.booted(*alive)

            first.deafen()
            world.open_gate("dawn")
            await world.eventually(lambda: saved(world, jobs), "a step of it is committed")
            await world.eventually(lambda: tried(world, [], jobs), "its stories went on")
            await world.eventually(lambda: said(deaf, "runner.beat_failed"), "it is deaf")
            await world.travel(LEASE, alive=alive)
            await world.wait_ended()
            first.reach_again("deafen")
            await world.eventually(lambda: reborn(world, deaf), "it has a new boot")

            found = await world.verdict()
            assert {State.DONE} == {job.state for job in found.jobs}
            kept = {step.job for step in found.steps if step.name == "held" and step.epoch == 1}
            assert kept, "nothing it said arrived"
            told = Counter(
                (e.job, e.step, e.epoch) for e in world.effects() if e.phase == "end"
            )
            # What was still in the queue of its one writer when the answers stopped is done again.
            repeated = {(job, "held", 2): 1 for job in jobs if job not in kept}
            once = {(job, step, epoch): 1 for job in jobs for step, epoch in ENDS}
            assert once | repeated == told


async def test_hosts_share_what_waits_by_their_slots_and_hoard_nothing(new_world, database_url):
    """A full host leaves the rest to whoever comes, and whoever comes has it without waiting."""
    with Hosts(4, database_url) as [first, *others]:
        async with new_world() as world:
            alone = first.start(world, slots=SLOTS)
            await world.booted(alone)
            jobs = await world.submit_all("hold", [{"gate": "dawn"}] * 4 * SLOTS)
            await world.eventually(lambda: holds(world, {first.name: SLOTS}), "one is full")
            waiting = (await world.app.insights.counts())[State.WAITING]

            for n, host in enumerate(others, start=1):
                host.start(world, slots=SLOTS)
                full = {each.name: SLOTS for each in [first, *others][: n + 1]}
                await world.eventually(lambda: holds(world, full), f"{n + 1} are full")  # noqa: B023

            assert 3 * SLOTS == waiting
            world.open_gate("dawn")
            await world.wait_ended()
            found = await world.verdict()
            claims = Counter(e.job for e in found.events if e.type is EventType.CLAIMED)
            assert dict.fromkeys(jobs, 1) == claims


async def test_e25_e29_every_host_is_replaced_by_new_code_while_a_batch_runs(
    new_world, database_url
):
    """E25 E29: nobody waits for a lease, nobody pays an attempt, nobody takes what it does not know."""
    with Hosts(3, database_url) as hosts:
        async with mixed(new_world) as world:
            program = partial(start_version, world, slots=SLOTS, grace=0.2)
            old = [program(host, code="old") for host in hosts]
            await world.booted(*old)
            held = [await submit(world, 1, gate="never") for _ in range(3 * SLOTS)]
            await world.eventually(lambda: all_sending(world, held), "every slot is taken")
            jobs = held + [await submit(world, 1) for _ in range(20)]
            jobs += [await submit(world, 2) for _ in range(20)]
            jobs += [await submit(world, 1, "invoice", lines=["a"], due="x") for _ in range(20)]

            for host, leaving in zip(hosts, old, strict=True):
                leaving.send(signal.SIGTERM)
                await world.eventually(lambda: ended(leaving), "it has left")  # noqa: B023
                assert 0 == leaving.popen.returncode
                await world.booted(program(host, code="new"))
            await world.wait_ended()

            found = await world.verdict()
            assert dict.fromkeys(jobs, State.DONE) == {job.id: job.state for job in found.jobs}
            types = Counter(event.type for event in found.events)
            assert {EventType.LOST, EventType.FAILED}.isdisjoint(types), "no lease, no attempt"
            released = {e.job for e in found.events if e.type is EventType.RELEASED}
            assert set(held) == released
            assert {1} == set(Counter(ends(world, "analyse", "price")).values())
            await nobody_claims_what_it_does_not_know(world, found)


def start_version(world: World, host: Host, **told: Any) -> Process:
    return host.start_program(world, "tests.chaos.run_version", **told)


async def nobody_claims_what_it_does_not_know(world: World, found: History) -> None:
    database = await world.app.database()
    tags: dict[int, str] = dict(await database.read(lambda tx: tx.all(TAGS)))
    knows: dict[str, str] = dict(await database.read(lambda tx: tx.all(KNOWS)))
    for event in found.events:
        if event.type is EventType.CLAIMED:
            assert f'"{tags[event.job]}"' in knows[event.actor or ""]


@pytest.mark.parametrize(
    "partition", ["cut_off", pytest.param("hang_up", marks=pytest.mark.soak)]
)
async def test_e29_a_host_told_to_leave_while_it_cannot_reach_the_database_leaves(
    new_world, database_url, partition
):
    """E29: what it could not settle is taken over when its lease is over; it does not stay for it."""
    with Hosts(2, database_url) as [first, second]:
        async with new_world() as world:
            leaving = first.start(world, slots=SLOTS, grace=0.2, let_go=0.2)
            jobs = await world.submit_all("hold", [{"gate": "never"}] * SLOTS)
            await world.wait_held(jobs)
            other = second.start(world, slots=SLOTS)
            await world.booted(other)

            getattr(first, partition)()
            leaving.send(signal.SIGTERM)
            await world.eventually(lambda: ended(leaving), "it has left")
            await world.travel(LEASE, alive=[other])
            await world.wait_ended()

            assert 0 == leaving.popen.returncode
            found = await world.verdict()
            assert {(State.DONE, 2)} == {(job.state, job.epoch) for job in found.jobs}


@pytest.mark.parametrize(
    ("way", "why"),
    [
        (("false",), "false ended with 1"),
        (("/no/such/program",), "No such file or directory"),
    ],
)
def test_where_there_are_no_namespaces_hosts_are_processes_and_say_so(
    database_url, monkeypatch, capsys, way, why
):
    monkeypatch.setattr("tests.chaos.hosts.WAYS", (way,))

    with Hosts(2, database_url) as hosts:
        assert [None, None] == [host.switch for host in hosts]

    said = capsys.readouterr().out
    assert "2 hosts are processes: " in said
    assert why in said


# — what they wait for —


async def duties(world: World) -> dict[str, tuple[int, int]]:
    """The term and the holder's process, by duty."""
    database = await world.app.database()
    rows = await database.read(lambda tx: tx.all(DUTIES))
    return {name: (term, pid) for name, term, pid in rows}


async def has_duties(world: World, process: Process) -> bool:
    held = await duties(world)
    return bool(held) and {process.pid} == {pid for _, pid in held.values()}


async def moved(world: World, process: Process, before: dict[str, tuple[int, int]]) -> bool:
    """Each duty is held by another, one term later."""
    now = await duties(world)
    return all(
        pid != process.pid and term == before[name][0] + 1 for name, (term, pid) in now.items()
    )


async def holders(world: World) -> dict[str, int]:
    database = await world.app.database()
    return dict(await database.read(lambda tx: tx.all(HOLDERS)))


async def holds(world: World, wanted: dict[str, int]) -> bool:
    return wanted == await holders(world)


async def waits(world: World, jobs: list[int]) -> bool:
    states = await world.states()
    return {State.WAITING} == {states[job] for job in jobs}


async def tried(world: World, late: list[int], held: list[int]) -> bool:
    told = {(e.job, e.step, e.phase) for e in world.effects() if e.epoch == 1}
    wanted = {(job, "start", "tried") for job in late} | {(job, "held", "end") for job in held}
    return wanted <= told


async def refused(world: World, n: int) -> bool:
    return await world.app.runners.refused_writes() >= n


async def reborn(world: World, process: Process) -> bool:
    await world.ring()
    return any(seen.state == "alive" for seen in await world.boots_of(process))


async def saved(world: World, jobs: list[int]) -> bool:
    steps = [await world.app.steps(job) for job in jobs]
    return any("held" in {step.name for step in each} for each in steps)


async def said(process: Process, event: str) -> bool:
    return event in process.log.read_text(errors="replace")


def ends(world: World, *steps: str) -> list[tuple[int, str]]:
    """What was done to its end, once for each time."""
    return [(e.job, e.step) for e in world.effects() if e.step in steps and e.phase == "end"]
