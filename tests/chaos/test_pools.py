"""E17 by the holders' own notes: never two at once, and nothing is kept for ever."""

from dataclasses import dataclass

import pytest

from retoma.engine.states import State
from tests.chaos import ledger
from tests.chaos.test_kill import kill_throughout
from tests.chaos.world import World


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a holder."""

    event: str
    thing: str
    job: int
    epoch: int
    pid: int
    at: int


@pytest.mark.parametrize("scope", ["attempt", "job", "release"])
@pytest.mark.parametrize(
    ("holds", "kills"),
    [(120, 8), pytest.param(10_000, 60, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
async def test_e17_a_thing_has_one_holder_however_they_die(new_world, scope, holds, kills):
    async with new_world() as world:
        await world.app.pools.declare("things", {f"thing {n}": n for n in range(10)})
        await world.submit_all("borrow", [{"scope": scope, "ms": 40}] * holds)
        runners = [world.start_runner(f"runner {n}", slots=4) for n in range(3)]
        await world.booted(*runners)

        died: dict[int, int] = {}
        await kill_throughout(world, runners, kills, died)
        await world.wait_ended(patience=120)

        notes = read_notes(world)
        assert not shared(notes, died)
        states = await world.states()
        assert {State.DONE} == set(states.values())
        kept = [item for item in await world.app.pools.items("things") if item.job]
        assert not kept, "nothing is held beyond its scope"
        await world.verdict()


def read_notes(world: World) -> list[Note]:
    lines = ledger.lines(world.folder, "holds-*")
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
        await world.app.submit_many("call", [None] * calls)
        runners = [world.start_runner(f"runner {n}", slots=20) for n in range(4)]
        await world.booted(*runners)
        await world.wait_ended(patience=120)

        made = sorted(line["at"] / 1e9 for line in ledger.lines(world.folder, "calls-*"))
        assert calls == len(made)
        assert len({line["pid"] for line in ledger.lines(world.folder, "calls-*")}) > 1
        for window in (0.2, 1.0, 2.0):
            assert most_in(made, window) <= rate * window + rate + 1
        if soak:
            assert (calls - rate) / (made[-1] - made[0]) >= 0.95 * rate


def most_in(calls: list[float], window: float) -> int:
    first = most = 0
    for last, at in enumerate(calls):
        while at - calls[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most
