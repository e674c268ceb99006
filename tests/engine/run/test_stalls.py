"""Who has been silent for too long, and whether that is news."""

from dataclasses import dataclass, field
from typing import Any, cast

from retoma.engine.rules.job import Held
from retoma.engine.run.attempt import Attempt
from retoma.engine.run.stalls import StallWatch
from retoma.engine.testing import FakeClock

HELD = Held(1, 1)


@dataclass
class FakeAttempt:
    """As much of an attempt as the watch asks for."""

    held: Held = HELD
    stall: float | None = 600.0
    moves: int = 0
    told: list[tuple[float, bool]] = field(default_factory=list)

    async def tell_stalled(self, silent: float, *, stop: bool) -> None:
        self.told.append((silent, stop))


async def look(watch: StallWatch, clock: FakeClock, after: float, *attempts: Any) -> int:
    clock.advance(after)
    return await watch.run_once(cast("list[Attempt]", attempts))


async def test_a_silence_is_told_once_and_the_next_one_again():
    clock, job = FakeClock(), FakeAttempt()
    watch = StallWatch(clock, stop=False)

    assert 0 == await look(watch, clock, 0, job)
    assert 0 == await look(watch, clock, 599, job)
    assert 1 == await look(watch, clock, 1, job)
    assert 0 == await look(watch, clock, 6_000, job)
    job.moves += 1
    assert 0 == await look(watch, clock, 1, job)
    assert 1 == await look(watch, clock, 600, job)
    assert [(600.0, False)] * 2 == job.told


async def test_whoever_moves_is_never_told_of_and_a_kind_without_a_limit_is_not_looked_at():
    clock, moving, free = FakeClock(), FakeAttempt(), FakeAttempt(Held(2, 1), stall=None)
    watch = StallWatch(clock, stop=False)

    for _ in range(5):
        moving.moves += 1
        assert 0 == await look(watch, clock, 599, moving, free)


async def test_the_next_attempt_of_a_job_begins_its_own_silence():
    clock, first, second = FakeClock(), FakeAttempt(), FakeAttempt(Held(1, 2))
    watch = StallWatch(clock, stop=True)

    await look(watch, clock, 0, first)
    assert 0 == await look(watch, clock, 601, second)
    assert 1 == await look(watch, clock, 601, second)
    assert ([], [(600.0, True)]) == (first.told, second.told)
