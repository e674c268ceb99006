"""What the engine's store should do, as small as it can be said: dicts, no SQL, no clock but a number.

Written from the table of moves and the promises, not from the statements it judges. Times are
seconds that only `advance` moves.
"""

from collections import Counter
from dataclasses import dataclass, field

LEASE = 70
SUSPECT_AFTER = 2
NEARLY_ALONE = 3
MOST_LOSSES = 10
ENDED = ("done", "skipped", "dead", "canceled")
ACCEPTED = ("alive", "leaving")  # a runner in one of these may still write


@dataclass(slots=True)
class Job:
    """One row, and its timeline."""

    id: int
    payload: int
    key: str | None
    due: int
    state: str = "waiting"
    reason: str | None = None
    epoch: int = 0
    generation: int = 1
    fresh_from: int = 1
    failures: int = 0
    lost: int = 0
    released: int = 0
    runner: str | None = None
    cancel: bool = False
    steps: dict[str, tuple[int, int]] = field(default_factory=dict)  # generation, value
    events: list[tuple[str, int | None]] = field(default_factory=lambda: [("submitted", None)])

    def row(self) -> tuple[object, ...]:
        return (
            *(self.id, self.state, self.reason, self.epoch, self.generation, self.failures),
            *(self.lost, self.released, self.runner, len(self.events)),
        )

    def told(self, event: str, *, by_holder: bool = False) -> None:
        self.events.append((event, self.epoch if by_holder else None))


@dataclass(slots=True)
class Runner:
    """One boot."""

    since: int
    lease_until: int
    state: str = "alive"


@dataclass(frozen=True, slots=True)
class End:
    """How a claim ends: the event, the state it leads to, and what goes with it."""

    event: str
    state: str
    reason: str | None = None
    after: int = 0


class Illegal(Exception):
    """From where it stands it cannot go there."""


@dataclass(slots=True)
class Model:
    """The world."""

    now: int = 0
    jobs: dict[int, Job] = field(default_factory=dict)
    runners: dict[str, Runner] = field(default_factory=dict)

    # — anybody —

    def by_key(self, key: str) -> Job | None:
        return next((job for job in self.jobs.values() if job.key == key), None)

    def submit(self, id_: int, payload: int, key: str | None, delay: int) -> None:
        self.jobs[id_] = Job(id_, payload, key, self.now + delay)

    def cancel(self, id_: int) -> str:
        job = self.jobs[id_]
        if job.state in ("waiting", "parked"):
            job.state, job.reason, job.cancel = "canceled", None, True
            job.told("canceled")
        elif job.state == "running" and not job.cancel:
            job.cancel = True
            job.told("cancel_requested", by_holder=True)
        elif job.state not in ("running", "canceled"):
            raise Illegal
        return job.state

    def again(self, id_: int, *, fresh: bool) -> str:
        job = self.jobs[id_]
        if job.state not in ENDED:
            raise Illegal
        job.state, job.reason, job.due = "waiting", None, self.now
        job.generation += 1
        job.fresh_from = job.generation if fresh else job.fresh_from
        job.failures = job.lost = job.released = 0
        job.cancel = False
        job.told("again")
        return job.state

    def unpark(self, id_: int) -> str:
        job = self.jobs[id_]
        if job.state != "parked":
            raise Illegal
        job.state, job.reason, job.due = "waiting", None, self.now
        job.told("unparked")
        return job.state

    # — runners —

    def boot(self, boot: str) -> None:
        self.runners[boot] = Runner(self.now, self.now + LEASE)

    def beat(self, boot: str) -> bool:
        runner = self.runners[boot]
        if runner.state in ACCEPTED:
            if runner.lease_until < self.now:
                runner.since = self.now  # it was deaf for a while
            runner.lease_until = self.now + LEASE
        return runner.state in ACCEPTED

    def move(self, boot: str, to: str) -> bool:
        runner = self.runners[boot]
        moved = runner.state in ACCEPTED
        runner.state = to if moved else runner.state
        return moved

    def lose(self, me: str) -> set[str]:
        mine = self.runners[me]
        deaf = mine.since + LEASE > self.now or mine.lease_until < self.now
        if mine.state != "alive" or deaf:
            return set()
        late = {
            boot
            for boot, runner in self.runners.items()
            if boot != me and runner.state in ACCEPTED and runner.lease_until < self.now
        }
        for boot in late:
            self.runners[boot].state = "lost"
        return late

    def claimable(self, boot: str, *, suspects: bool) -> set[int]:
        if self.runners[boot].state != "alive":
            return set()
        return {
            job.id
            for job in self.jobs.values()
            if job.state == "waiting" and job.due <= self.now
            if (job.lost >= SUSPECT_AFTER) == suspects
        }

    def claim(self, boot: str, id_: int) -> tuple[int, int]:
        job = self.jobs[id_]
        job.state, job.reason, job.runner = "running", None, boot
        job.epoch += 1
        job.failures += 1
        job.told("claimed", by_holder=True)
        return job.id, job.epoch

    def readable(self, id_: int) -> dict[str, int]:
        """The steps a new attempt reads back."""
        job = self.jobs[id_]
        return {name: v for name, (g, v) in job.steps.items() if g >= job.fresh_from}

    def holds(self, boot: str, id_: int, epoch: int) -> bool:
        job = self.jobs[id_]
        held = (job.state, job.runner, job.epoch) == ("running", boot, epoch)
        return held and self.runners[boot].state in ACCEPTED

    def save(self, boot: str, id_: int, epoch: int, name: str, value: int) -> bool:
        if not self.holds(boot, id_, epoch):
            return False
        job = self.jobs[id_]
        job.lost = 0
        if name not in job.steps or job.steps[name][0] < job.generation:
            job.steps[name] = (job.generation, value)
        job.told("step_saved", by_holder=True)
        return True

    def settle(self, boot: str, id_: int, epoch: int, end: End) -> bool:
        if not self.holds(boot, id_, epoch):
            return False
        job = self.jobs[id_]
        if job.cancel and end.state not in ("done", "skipped"):
            end = End("canceled", "canceled")
        job.state, job.reason, job.runner, job.lost = end.state, end.reason, None, 0
        job.failures -= end.event not in ("failed", "buried")
        job.released += end.event == "released"
        job.due = self.now + end.after
        job.told(end.event, by_holder=True)
        return True

    def take_back(self) -> set[int]:
        gone = [j for j in self.jobs.values() if j.runner and not self._counts(j.runner)]
        held = Counter(str(job.runner) for job in gone)
        for job in gone:
            runner = str(job.runner)
            bound = SUSPECT_AFTER if held[runner] <= NEARLY_ALONE else MOST_LOSSES - 1
            self._take_back(job, self.runners[runner].state, bound)
        return {job.id for job in gone}

    def _counts(self, boot: str) -> bool:
        return self.runners[boot].state in ACCEPTED

    def _take_back(self, job: Job, runner: str, bound: int) -> None:
        if job.cancel:
            job.state, event = "canceled", "canceled"
        elif runner == "gone":
            job.state, event = "waiting", "released"
        elif job.lost >= bound:
            job.state, job.reason, event = "dead", "poison", "buried"
        else:
            job.state, event = "waiting", "lost"
        job.lost += runner == "lost"
        job.released += runner == "gone"
        job.failures -= 1
        job.runner, job.due = None, self.now
        job.told(event, by_holder=True)
