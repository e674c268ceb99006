"""Run many universes side by side; say how many ended, what went wrong in them, and which are violated."""

import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field

from retoma.db.simulated import Content
from retoma.simulation.simulate import Violated, quiet, run_universe, shrink
from retoma.simulation.universe import make_file
from tests.simulation.server import open_server
from tests.simulation.world import scenario

PART = 50  # universes that a process runs before it reports
COMMAND = "./run prove --universes 1 --seed {seed}{more}"
WORST = 5  # violated universes that are shrunk and printed
# Every kind of fault: universes in which one of them never happens prove nothing about it.
KINDS = (
    *("unreachable", "answer_lost", "busy", "full", "slow", "deaf", "child_dies"),
    *("kill_in_call", "stop_in_call", "kill", "stop", "hold", "leave", "act"),
)


@dataclass(slots=True)
class Tally:
    """What came of some universes."""

    universes: int = 0
    jobs: int = 0
    zombies: int = 0  # hosts that went on after their lease had ended
    longest: float = 0.0  # virtual seconds from the last fault until all had ended
    seconds: float = 0.0  # of a processor
    violated: list[int] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.universes += other.universes
        self.jobs += other.jobs
        self.zombies += other.zombies
        self.longest = max(self.longest, other.longest)
        self.seconds += other.seconds
        self.violated += other.violated
        self.faults += other.faults

    def __str__(self) -> str:
        a_minute = self.universes / self.seconds * 60 if self.seconds else 0.0
        return (
            f"{self.universes:,} universes, {self.jobs:,} jobs, {self.faults.total():,} faults,"
            f" {self.zombies:,} zombies, {len(self.violated)} violated; all ended within"
            f" {self.longest:.0f} s of virtual time; {a_minute:,.0f} a minute of a processor"
        )

    @property
    def table(self) -> str:
        return "\n".join(f"{n:12,} {kind}" for kind, n in self.faults.most_common())


def open_content(database: str) -> AbstractContextManager[Content]:
    """In which universes are played one after the other."""
    app = scenario().app
    return open_server(app) if database == "postgres" else closing(make_file(app))


def run_part(first: int, last: int, database: str = "sqlite") -> Tally:
    """Run some universes, one after the other."""
    tally = Tally()
    began = time.process_time()
    with open_content(database) as file, quiet():
        for seed in range(first, last):
            outcome = run_universe(scenario, seed, file=file)
            tally.add(
                Tally(
                    universes=1,
                    jobs=outcome.jobs,
                    zombies=outcome.zombies,
                    longest=outcome.quiet,
                    violated=[seed] if outcome.violations else [],
                    faults=Counter(fault.kind for fault in outcome.faults),
                )
            )
    tally.seconds = time.process_time() - began
    return tally


def explain(seed: int, database: str = "sqlite") -> str:
    """Run a violated universe again, shrink it, and say what happened."""
    with open_content(database) as file, quiet():
        outcome = run_universe(scenario, seed, file=file)
        smallest = shrink(scenario, outcome, file=file) if outcome.violations else outcome
    more = "" if database == "sqlite" else f" --database {database}"
    return str(Violated(smallest, COMMAND.format(seed=seed, more=more)))


def parts(first: int, universes: int) -> Iterator[tuple[int, int]]:
    for start in range(first, first + universes, PART):
        yield start, min(start + PART, first + universes)


def run_many(first: int, universes: int, processes: int) -> Tally:
    """Run universes side by side, with a line of progress now and then."""
    if processes == 1:
        return add_up((run_part(*each) for each in parts(first, universes)), universes)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        running = [pool.submit(run_part, *each) for each in parts(first, universes)]
        return add_up((part.result() for part in as_completed(running)), universes)


def run_in_turn(first: int, universes: int) -> Tally:
    """Run universes on PostgreSQL: one after the other, because a server's processors are few."""
    played = (run_part(*each, "postgres") for each in parts(first, universes))
    return add_up(played, universes)


def add_up(parts: Iterable[Tally], universes: int) -> Tally:
    tally = Tally()
    for part in parts:
        tally.add(part)
        last = tally.universes == universes
        if last or sys.stdout.isatty() or tally.universes % (PART * 20) == 0:
            end = "\r" if sys.stdout.isatty() and not last else "\n"
            print(tally, end=end, flush=True)
    tally.violated.sort()
    return tally


def prove(
    first: int, universes: int, database: str = "sqlite", processes: int | None = None
) -> int:
    """Run universes and explain the violated ones; the exit code of `./run prove --universes`."""
    if universes == 1:
        report = explain(first, database)
        print(report)
        return int("0 violations" not in report)
    if database == "postgres":
        tally = run_in_turn(first, universes)
    else:
        tally = run_many(first, universes, processes or os.cpu_count() or 1)
    print(f"seeds {first} to {first + universes - 1} on {database}: {tally}")
    print(tally.table)
    for seed in tally.violated[:WORST]:
        print(explain(seed, database))
    if tally.violated:
        print(f"violated: {' '.join(map(str, tally.violated))}")
    return int(bool(tally.violated))
