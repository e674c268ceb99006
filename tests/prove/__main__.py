"""`./run prove`: every fault at every statement, and the checker after each.

./run prove                                   every statement once with each of its faults
./run prove --every                           every time that a statement is sent
./run prove --minutes 10 --seed 7             as many cells as fit in, in another order
./run prove --database sqlite --scenario work
./run prove --cell sqlite:work:write/COMMIT#3:ioerr
./run prove --chaos --minutes 30 --database postgres
./run prove --universes 10000 --seed 0        simulated runners, an order and faults by the seed
"""

import argparse
import faulthandler
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import structlog

from tests import services
from tests.prove import chaos
from tests.prove.scenarios import SCENARIOS
from tests.prove.sweep import Cell, Lab, Outcome, PostgresLab, SqliteLab
from tests.simulation import many

EVERY = 10.0  # seconds between two lines about how far it is
TRIES = 3  # to come by a place: what runs beside each other comes in another order now and then
DATABASES = ("sqlite", "postgres")


def main(arguments: Sequence[str]) -> int:
    asked = _parse(arguments)
    faulthandler.enable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if asked.universes:
        return many.prove(asked.seed, asked.universes)
    if asked.chaos:
        return chaos.run(asked.database or DATABASES, asked.minutes or 1.0, asked.seed)
    wrong: list[Outcome] = []
    for name in asked.database or DATABASES:
        if asked.cell and not asked.cell.startswith(f"{name}:"):
            continue
        with lab_of(name) as lab:
            wrong += sweep(lab, asked)
    return 1 if wrong else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run prove", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--database", action="append", choices=DATABASES)
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS))
    parser.add_argument("--fault", action="append", help="only this one")
    parser.add_argument("--every", action="store_true", help="every occurrence of a statement")
    parser.add_argument("--cell", help="play one cell again")
    parser.add_argument("--chaos", action="store_true", help="processes, all faults together")
    parser.add_argument("--universes", type=int, help="simulate so many, from --seed on")
    return parser.parse_args(arguments)


@contextmanager
def lab_of(name: str) -> Iterator[Lab]:
    with ExitStack() as stack:
        if name == "sqlite":
            yield SqliteLab(stack)
        else:
            server = stack.enter_context(services.PostgresServer(services.FAST))
            yield PostgresLab(server.dsn, stack, lambda: server.restart("immediate"))


def sweep(lab: Lab, asked: argparse.Namespace) -> list[Outcome]:
    """Play the cells that were asked for; those where something is wrong."""
    if asked.cell:
        cells = all_cells = [Cell.parse(asked.cell)]
    else:
        all_cells = [*cells_of(lab, asked.scenario or SCENARIOS, asked.fault)]
        cells = ordered(all_cells, asked.seed, every=asked.every)
    print(
        f"{lab.name}: {len(cells)} cells of {len(all_cells)}, --seed {asked.seed}", flush=True
    )
    until = time.monotonic() + asked.minutes * 60 if asked.minutes else float("inf")
    outcomes = [*_played(lab, cells, until)]
    print(table(lab.name, cells, outcomes), flush=True)
    return [each for each in outcomes if each.wrong]


def cells_of(
    lab: Lab, scenarios: Iterable[str], faults: Sequence[str] | None = None
) -> Iterator[Cell]:
    """Every place of these scenarios with every fault that applies."""
    for name in scenarios:
        for place, applying in lab.places(SCENARIOS[name]):
            for fault in applying:
                if not faults or fault in faults:
                    yield Cell(lab.name, name, place, fault)


def ordered(cells: Sequence[Cell], seed: int, *, every: bool) -> list[Cell]:
    """What is new first: each statement with each fault once, by chance in whatever scenario has it."""
    shuffled = list(cells)
    random.Random(seed).shuffle(shuffled)
    seen: Counter[tuple[str, str, str]] = Counter()
    ranked = []
    for cell in shuffled:
        kind = (cell.place.lane, cell.place.name, cell.fault)
        ranked.append((seen[kind], cell))
        seen[kind] += 1
    ranked.sort(key=lambda each: each[0])
    return [cell for rank, cell in ranked if every or rank == 0]


def _played(lab: Lab, cells: Sequence[Cell], until: float) -> Iterator[Outcome]:
    told = time.monotonic()
    wrong = 0
    for n, cell in enumerate(cells, start=1):
        if time.monotonic() > until:
            return
        outcome = lab.play(cell)
        for _ in range(TRIES - 1):
            if outcome.hit or outcome.wrong:
                break
            outcome = lab.play(cell)
        if outcome.wrong:
            wrong += 1
            print(f"VIOLATION ./run prove --cell '{cell}'", flush=True)
            for line in (
                *outcome.wrong[:6],
                *(f"refused: {each}" for each in outcome.refused[:3]),
            ):
                print(f"    {line}", flush=True)
        yield outcome
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            print(f"    {n} of {len(cells)} cells, {wrong} with violations", flush=True)


def table(database: str, cells: Sequence[Cell], outcomes: Sequence[Outcome]) -> str:
    """What was covered: by fault, how many statements and cells, how many runs found something wrong."""
    rows = [("fault", "statements", "of", "cells", "of", "not reached", "violations")]
    faults = sorted({cell.fault for cell in cells})
    for fault in (*faults, "all"):
        asked = [cell for cell in cells if fault in (cell.fault, "all")]
        done = [each for each in outcomes if fault in (each.cell.fault, "all")]
        reached = [each for each in done if each.hit]
        rows.append(
            (
                fault,
                str(len({(c.cell.place.lane, c.cell.place.name) for c in reached})),
                str(len({(c.place.lane, c.place.name) for c in asked})),
                str(len(reached)),
                str(len(asked)),
                str(len(done) - len(reached)),
                str(sum(bool(each.wrong) for each in done)),
            )
        )
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [
        "  ".join(
            text.ljust(width) if n == 0 else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([database, *lines])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
