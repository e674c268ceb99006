"""Run many universes side by side, and say how many ended and which of them are violated."""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from retoma.simulation.simulate import Violated, quiet, run_universe, shrink
from retoma.simulation.universe import make_file
from tests.simulation.world import scenario

PART = 50  # universes that a process runs before it reports
COMMAND = "./run prove --universes 1 --seed {seed}"
WORST = 5  # violated universes that are shrunk and printed


def run_part(first: int, last: int) -> tuple[int, int, list[int]]:
    """Run some universes; how many there were, how many jobs ended, and which seeds are violated."""
    jobs, violated = 0, []
    with quiet():
        file = make_file(scenario().app)
        for seed in range(first, last):
            outcome = run_universe(scenario, seed, file=file)
            jobs += outcome.jobs
            if outcome.violations:
                violated.append(seed)
    return last - first, jobs, violated


def explain(seed: int) -> str:
    """Run a violated universe again, shrink it, and say what happened."""
    with quiet():
        file = make_file(scenario().app)
        outcome = run_universe(scenario, seed, file=file)
        smallest = shrink(scenario, outcome, file=file) if outcome.violations else outcome
    return str(Violated(smallest, COMMAND.format(seed=seed)))


def parts(first: int, universes: int) -> Iterator[tuple[int, int]]:
    for start in range(first, first + universes, PART):
        yield start, min(start + PART, first + universes)


def run_many(first: int, universes: int, processes: int) -> list[int]:
    """Run universes side by side, with a line of progress; the seeds of those that are violated."""
    began, done, jobs, violated = time.monotonic(), 0, 0, []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for part in as_completed(
            pool.submit(run_part, *each) for each in parts(first, universes)
        ):
            n, ended, wrong = part.result()
            done, jobs = done + n, jobs + ended
            violated += wrong
            a_minute = done / (time.monotonic() - began) * 60
            end = "\n" if done == universes or not sys.stdout.isatty() else "\r"
            if end == "\r" or done == universes or done % (PART * 20) == 0:
                print(
                    f"{done:,} of {universes:,} universes, {jobs:,} jobs, {len(violated)} violated,"
                    f" {a_minute:,.0f} a minute",
                    end=end,
                    flush=True,
                )
    return sorted(violated)


def prove(first: int, universes: int) -> int:
    """Run universes and explain the violated ones; the exit code of `./run prove --universes`."""
    if universes == 1:
        report = explain(first)
        print(report)
        return int("0 violations" not in report)
    violated = run_many(first, universes, os.cpu_count() or 1)
    for seed in violated[:WORST]:
        print(explain(seed))
    if violated:
        print(f"violated: {' '.join(map(str, violated))}")
    return int(bool(violated))
