"""Play all scenarios against one system, with real processes: take, stop, take over, wake, kill."""

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.child import Child, Failed
from bench.zombies.judge import Observed, Seen, Verdict, judge
from bench.zombies.ledger import EFFECT, START, STOPPED, Gates, Ledger, Line
from bench.zombies.scenarios import (
    FIRST,
    JOB,
    KILL,
    ONE,
    RUNNING,
    SCENARIOS,
    SECOND,
    STEPS,
    THIRD,
    TWO,
    WAITING,
    Moment,
    Scenario,
)

LEASE = 5.0  # seconds without a heartbeat until a worker counts as lost: every system's setting
BEAT = 1.0  # seconds between two heartbeats
POLL = 1.0  # seconds between two looks for work or for lost workers, where a system polls
STOPPING = 0.1  # seconds until what a stopped process had sent is done
LOOK = 0.1
PARTS = (JOB, ONE, TWO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long the director waits, in seconds."""

    lease: float = LEASE
    warm: float = LEASE + 1.0  # a worker that has lived so long may judge the others
    settle: float = 3.0  # after the woken worker's last effect, for its writes to arrive
    late: float = POLL  # after the last job has ended, for what comes later
    ending: float = 20.0  # in which every job must have ended, once nothing holds it
    patience: float = 40.0  # of a loaded machine


class Side(Protocol):
    """One system, as the director sees it."""

    steps: bool  # it keeps the value of a step, so that the step does not run again
    results: bool  # it stores what a job returns

    def worker(self) -> tuple[str, dict[str, Any]]:
        """The function of a child process that works until it is killed, and its own arguments."""

    def submit(self, scenario: Scenario) -> Any:
        """Submit the job of a scenario, and return its id."""

    def look(self, job: Any) -> Seen:
        """What the system says of the job now."""

    def cancel(self, job: Any) -> None:
        """Cancel a job as an operator does."""

    def lose(self, worker: str, folder: Path) -> None:
        """Say that a worker is lost, to a system that does not find it out by itself."""

    def in_transaction(self) -> bool:
        """Whether a transaction stands open and idle: a stopped process may hold its locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came out for one system."""

    verdicts: Mapping[str, Verdict]  # by the scenario's name
    recovered_stopped: float  # seconds from SIGSTOP until the last job runs elsewhere
    recovered_killed: (
        float | None
    )  # seconds from SIGKILL until the job runs elsewhere; None: never


def play(
    side: Side,
    folder: Path,
    say: Callable[[str], None],
    times: Times | None = None,
    at_rest: Callable[[str], bool] = lambda _: True,
) -> Played:
    """Play every scenario against `side`; raises `Failed` if one of its workers does not work at all.

    `at_rest`: whether a worker has written all that it had to, where that can be known.
    """
    with contextlib.ExitStack() as stack:
        return Play(side, folder, say, stack, times or Times(), at_rest).run()


@dataclass(slots=True)
class Play:
    """One system in the middle of its scenarios."""

    side: Side
    folder: Path
    say: Callable[[str], None]
    stack: contextlib.ExitStack
    times: Times
    at_rest: Callable[[str], bool]
    ledger: Ledger = field(init=False)
    gates: Gates = field(init=False)
    scenarios: list[Scenario] = field(init=False)
    jobs: dict[str, Any] = field(init=False, default_factory=dict)
    workers: dict[str, Child] = field(init=False, default_factory=dict)
    born: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.folder)
        self.gates = Gates(self.folder)
        self.scenarios = [each for each in SCENARIOS if self.side.steps or each.kind != STEPS]

    def run(self) -> Played:
        seen, stopped = self._stop_and_wake()
        seen[KILL.name], killed = self._kill()
        lines = self.ledger.lines()
        return Played(
            verdicts={
                each.name: judge(each, lines, seen[each.name], results=self.side.results)
                for each in (*self.scenarios, KILL)
            },
            recovered_stopped=stopped,
            recovered_killed=killed,
        )

    # --- a worker that is stopped, and wakes

    def _stop_and_wake(self) -> tuple[dict[str, Observed], float]:
        taken_over = [each for each in self.scenarios if each.moment is not Moment.NEVER]
        self._start(FIRST)
        self._submit(self.scenarios)
        self._wait_started(FIRST, self.scenarios)
        self._start(SECOND)
        self._warm(SECOND)

        stopped_at = self._freeze(FIRST)
        for each in self.scenarios:
            if each.moment is Moment.NEVER:
                self.side.cancel(self.jobs[each.name])
        time.sleep(self.times.lease)
        self.side.lose(FIRST, self.folder)
        self._wait_started(SECOND, taken_over)
        recovered = max(self._started(SECOND).values()) - stopped_at
        self.say(f"{len(taken_over)} jobs taken over {recovered:.1f} s after SIGSTOP")

        self._let_second_go_ahead(taken_over)
        self._start(THIRD)
        before = self._look_at_all()
        woken = self._wake()
        self._open(SECOND, THIRD)
        after = self._wait_ended(self.scenarios)
        self.workers[FIRST].kill()
        return {
            name: Observed(before=before[name], woken=woken[name], after=after[name])
            for name in after
        }, recovered

    def _let_second_go_ahead(self, scenarios: Sequence[Scenario]) -> None:
        """Bring each job to the moment at which the first worker is to wake."""
        for each in scenarios:
            if each.moment in {Moment.ENDED, Moment.SAVED}:
                self.gates.open(SECOND, each.name, each.part)
        for each in scenarios:
            if each.moment is Moment.ENDED:
                self._wait(lambda each=each: not self._is_open(each), f"{each.name} has ended")  # type: ignore[misc]
            elif each.moment is Moment.SAVED:
                self._wait(
                    lambda each=each: (each.name, TWO) in self._started(SECOND),  # type: ignore[misc]
                    f"{each.name} is in its second step",
                )

    def _wake(self) -> dict[str, list[Seen]]:
        """Let the first worker go on, and note each change until its writes have arrived."""
        woken: dict[str, list[Seen]] = {each.name: [] for each in self.scenarios}
        self._open(FIRST)
        began = time.monotonic()
        self.workers[FIRST].send(signal.SIGCONT)
        until = began + self.times.patience
        settled = False
        while time.monotonic() < until:
            for name, seen in self._look_at_all().items():
                if not woken[name] or woken[name][-1] != seen:
                    woken[name].append(seen)
            if not settled and self._first_went_on() and self.at_rest(FIRST):
                settled, until = True, time.monotonic() + self.times.settle
            time.sleep(LOOK)
        return woken

    def _first_went_on(self) -> bool:
        """Whether the woken worker has done, or was told not to do, what it was at in every job."""
        ended = {
            line.scenario
            for line in self.ledger.lines()
            if line.worker == FIRST and line.phase in {EFFECT, STOPPED}
        }
        return ended >= {each.name for each in self.scenarios}

    # --- a worker that is killed

    def _kill(self) -> tuple[Observed, float | None]:
        self._warm(THIRD)
        self._submit([KILL])
        self._wait(lambda: self._effects_of_killed() != [], f"{KILL.name} has had its effect")
        before = self.side.look(self.jobs[KILL.name])
        [line] = self._effects_of_killed()
        killed_at = time.time()
        self.workers[line.worker].kill()
        time.sleep(self.times.lease)
        self.side.lose(line.worker, self.folder)
        with contextlib.suppress(Failed):
            self._wait(lambda: len(self._effects_of_killed()) > 1, f"{KILL.name} runs again")
        again = self._effects_of_killed()[1:]
        recovered = again[0].at - killed_at if again else None
        self.say(f"taken over after SIGKILL: {recovered and round(recovered, 1)} s")
        after = self._wait_ended([KILL])[KILL.name]
        return Observed(before=before, after=after), recovered

    def _effects_of_killed(self) -> list[Line]:
        wanted = (KILL.name, TWO, EFFECT)
        return [e for e in self.ledger.lines() if (e.scenario, e.part, e.phase) == wanted]

    # --- what both are made of

    def _start(self, name: str) -> None:
        function, own = self.side.worker()
        child = Child(function, {**own, "folder": str(self.folder), "worker": name})
        self.workers[name] = self.stack.enter_context(child)
        child.wait_until_ready()
        child.go()
        self.born[name] = time.monotonic()

    def _warm(self, name: str) -> None:
        time.sleep(max(0.0, self.born[name] + self.times.warm - time.monotonic()))

    def _submit(self, scenarios: Sequence[Scenario]) -> None:
        for each in scenarios:
            self.jobs[each.name] = self.side.submit(each)

    def _freeze(self, name: str) -> float:
        """Stop it with SIGSTOP, but not inside a transaction: its locks would stop everybody."""
        until = time.monotonic() + self.times.patience
        while True:
            at = time.time()
            self.workers[name].send(signal.SIGSTOP)
            time.sleep(STOPPING)
            if not self.side.in_transaction() or time.monotonic() > until:
                return at
            self.workers[name].send(signal.SIGCONT)

    def _open(self, *workers: str) -> None:
        for worker in workers:
            for each in self.scenarios:
                for part in PARTS:
                    self.gates.open(worker, each.name, part)

    def _started(self, worker: str) -> dict[tuple[str, str], float]:
        """When this worker began each part of each job, by the ledger."""
        lines = [e for e in self.ledger.lines() if (e.worker, e.phase) == (worker, START)]
        return {(line.scenario, line.part): line.at for line in lines}

    def _wait_started(self, worker: str, scenarios: Sequence[Scenario]) -> None:
        wanted = {(each.name, each.part) for each in scenarios}
        self._wait(
            lambda: wanted <= self._started(worker).keys(),
            f"the {worker} worker is at work on {len(wanted)} jobs",
            worker,
        )

    def _wait_ended(self, scenarios: Sequence[Scenario]) -> dict[str, Seen]:
        """How each job ended, once all have or the time for it is over; then a last, later look."""
        until = time.monotonic() + self.times.ending
        while any(map(self._is_open, scenarios)) and time.monotonic() < until:
            time.sleep(LOOK)
        time.sleep(self.times.late)
        return {each.name: self.side.look(self.jobs[each.name]) for each in scenarios}

    def _is_open(self, scenario: Scenario) -> bool:
        return self.side.look(self.jobs[scenario.name]).state in {WAITING, RUNNING}

    def _look_at_all(self) -> dict[str, Seen]:
        return {each.name: self.side.look(self.jobs[each.name]) for each in self.scenarios}

    def _wait(self, holds: Callable[[], bool], what: str, worker: str | None = None) -> None:
        until = time.monotonic() + self.times.patience
        while not holds():
            if time.monotonic() > until:
                words = self.workers[worker].last_words() if worker else ""
                raise Failed(f"after {self.times.patience:.0f} s not yet: {what}\n{words}")
            time.sleep(LOOK)
