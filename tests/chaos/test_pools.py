"""E17 by the holders' own notes: never two at once, nothing is kept for ever, no bad user empties it."""

import signal
import time
from dataclasses import dataclass

import pytest

from retoma.engine.checker import effect_ledger
from retoma.engine.rules.states import State
from tests.chaos.test_kill import kill_throughout
from tests.chaos.world import Process, World


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a holder."""

    event: str
    thing: str
    job: int
    epoch: int
    pid: int
    at: int


# How long a thing is held, and the kind of job that holds it so; "claim": it comes with the claim.
SCOPES = {
    "attempt": ("borrow", "attempt"),
    "claim": ("borrow_claimed", "attempt"),
    "job": ("borrow", "job"),
    "release": ("borrow", "release"),
}
BAD = 10  # every tenth job says of whatever it had that it did not work
LEAK = 60.0 + 5.0  # seconds after its holder's death: a lease, and what it takes to notice


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("holds", "kills", "slots"),
    [
        (80, 4, 4),
        pytest.param(10_000, 100, 16, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_e17_a_thing_has_one_holder_however_they_die(
    new_world, scope, holds, kills, slots
):
    """Never two, never kept beyond its scope, and one bad user empties no pool."""
    kind, wanted = SCOPES[scope]
    async with new_world() as world:
        scarce = {f"thing {n}": n for n in range(2 * slots)}  # for three runners
        await world.app.pools.declare("things", scarce, off_after=2)
        payload = {"scope": wanted, "ms": 40}
        await world.app.submit_many(kind, [payload] * (holds - holds // BAD))
        await world.app.submit_many("spoil", [{**payload, "bad": True}] * (holds // BAD))
        runners = [world.start_runner(f"runner {n}", slots=slots) for n in range(3)]
        await world.booted(*runners)

        died: dict[int, int] = {}
        hits = await kill_throughout(world, runners, kills, died, slots)
        await world.wait_ended()

        notes = read_notes(world)
        assert not shared(notes, died)
        assert not leaked(notes, died, time.monotonic_ns())
        assert {State.DONE} == set((await world.states()).values())
        items = await world.app.pools.items("things")
        assert not [item for item in items if item.job], "nothing is held beyond its scope"
        assert {"on"} == {item.state for item in items}, "one bad user empties no pool"
        assert holds <= sum(item.uses for item in items)
        await world.verdict()
        print(told(scope, notes, died, hits))


async def test_e17_who_sleeps_through_its_lease_has_lost_what_it_held(new_world):
    """Frozen while it holds the only thing: a lease later another has it, and keeps it."""
    async with new_world() as world:
        await world.app.pools.declare("things", {"the only one": 1})
        first = await world.submit("borrow", {"scope": "attempt", "gate": "go"})
        sleeper = world.start_runner("sleeper", slots=1)
        await world.wait_held([first.id])
        heir = world.start_runner("heir", slots=2)
        await world.booted(heir)
        second = await world.submit("borrow_claimed", {"scope": "attempt", "gate": "go too"})
        await world.freeze(sleeper)

        await world.travel(LEAK, alive=[heir])
        world.open_gate("go too")
        await world.wait_ended()  # both had it, and it still sleeps
        world.open_gate("go")
        sleeper.send(signal.SIGCONT)
        await world.eventually(lambda: begun_anew(world, sleeper), "it has another boot")

        assert {State.DONE} == {
            (await world.app.get(each.id)).state for each in (first, second)
        }
        [item] = await world.app.pools.items("things")
        assert (None, 0) == (item.job, item.failures)


async def begun_anew(world: World, process: Process) -> bool:
    return len(await world.boots_of(process)) > 1


def told(scope: str, notes: list[Note], died: dict[int, int], hits: list[int]) -> str:
    waits = sorted(gaps(notes, died, time.monotonic_ns()))
    longest = f"{waits[-1]:.1f} s" if waits else "never"
    return (
        f"{scope}: {sum(note.event == 'got' for note in notes)} holds, {len(hits)} runners killed,"
        f" {len(waits)} things held by the dead; the longest until somebody had one again: {longest}"
    )


def read_notes(world: World) -> list[Note]:
    lines = effect_ledger.lines(world.folder, "holds-*")
    return sorted((Note(**line) for line in lines), key=lambda note: note.at)


def shared(notes: list[Note], died: dict[int, int]) -> list[str]:
    """Things that somebody got while another had them: who let go or died had them no more."""
    holder: dict[str, Note] = {}
    problems = []
    for note in notes:
        before = holder.get(note.thing)
        if note.event == "let":
            if before is not None and before.job == note.job:
                holder.pop(note.thing)
            continue
        if before is not None and before.job != note.job:
            dead = died.get(before.pid, note.at + 1) <= note.at
            if not dead:
                problems.append(f"{note.thing}: job {note.job} beside job {before.job}")
        holder[note.thing] = note
    return problems


def gaps(notes: list[Note], died: dict[int, int], now: int) -> list[float]:
    """Of each thing that somebody died with: seconds until anybody had it again, or until now."""
    found = []
    by_thing: dict[str, list[Note]] = {}
    for note in notes:
        by_thing.setdefault(note.thing, []).append(note)
    for its in by_thing.values():
        for note, after in zip(its, [*its[1:], None], strict=True):
            if (
                note.event == "got"
                and note.pid in died
                and (after is None or after.event == "got")
            ):
                found.append(((now if after is None else after.at) - died[note.pid]) / 1e9)
    return found


def leaked(notes: list[Note], died: dict[int, int], now: int) -> list[float]:
    return [seconds for seconds in gaps(notes, died, now) if seconds > LEAK]


def test_the_check_sees_a_leak():
    got = Note("got", "a", 1, 1, 10, 1)
    again = Note("got", "a", 2, 1, 11, 2 + int(LEAK * 1e9))
    assert leaked([got, again], {10: 1}, again.at)
    assert leaked([got], {10: 1}, again.at)
    assert not leaked([got, Note("let", "a", 1, 1, 10, 1), again], {}, again.at)
    assert not leaked([got, again], {10: 3}, again.at)


def test_the_check_sees_two_holders():
    first = Note("got", "a", 1, 1, 10, 1)
    second = Note("got", "a", 2, 1, 11, 2)
    assert shared([first, second], {})
    assert not shared([first, second], {10: 1})
    assert not shared([first, Note("let", "a", 1, 1, 10, 1), second], {})


async def test_e16_four_processes_keep_to_one_rate(new_world, soak):
    rate, calls = 50, 600 if soak else 100
    async with new_world() as world:
        await world.app.rates.set("site", rate, burst=rate)
        runners = [world.start_runner(f"runner {n}", slots=20) for n in range(4)]
        await world.booted(*runners)
        await world.app.submit_many("call", [None] * calls)
        await world.wait_ended()

        made = sorted(line["at"] / 1e9 for line in effect_ledger.lines(world.folder, "calls-*"))
        assert calls == len(made)
        assert len({line["pid"] for line in effect_ledger.lines(world.folder, "calls-*")}) > 1
        # From the first call on, so that a process which was kept from its processor may only be late.
        for n, at in enumerate(made, start=1):
            assert n <= rate * (at - made[0]) + rate + 1, (
                f"{n} calls within {at - made[0]:.2f} s"
            )
        used = (calls - rate) / (made[-1] - made[0]) / rate
        print(f"{used:.1%} of {rate} calls a second used, {most_in(made, 1.0)} in a second")
        if soak:
            assert used >= 0.95


def most_in(calls: list[float], window: float) -> int:
    first = most = 0
    for last, at in enumerate(calls):
        while at - calls[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most
