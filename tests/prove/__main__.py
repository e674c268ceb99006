"""`./run prove`: every fault at every statement, and the checker after each.

./run prove                                   every statement once with each of its faults
./run prove --every                           every time that a statement is sent
./run prove --minutes 10 --seed 7             as many cells as fit in, in another order
./run prove --database sqlite --scenario work
./run prove --cell sqlite:work:write/COMMIT#3:ioerr --repeat 10
./run prove --chaos --minutes 30 --database postgres
./run prove --universes 10000 --seed 0        simulated runners, an order and faults by the seed
./run prove --universes 1000 --database postgres     the same, with PostgreSQL's statements
./run prove --mutants                         each promise taken out, and what finds that
./run prove --mutants M03 D1                  some of them
"""

import argparse
import faulthandler
import os
import random
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import sha256

from tests.mutants.play import prove as prove_mutants
from tests.prove import chaos
from tests.prove.operations import SCENARIOS
from tests.prove.processes import play_side_by_side
from tests.prove.sweep import Cell, Lab, Outcome, open_lab, play_until_hit, silence_logs
from tests.simulation import many

EVERY = 10.0  # seconds between two lines about how far it is
DATABASES = ("sqlite", "postgres")


def main(arguments: Sequence[str]) -> int:
    asked = _parse(arguments)
    faulthandler.enable()
    silence_logs()
    if asked.mutants is not None:
        return prove_mutants(asked.mutants)
    if asked.universes:
        return max(
            many.prove(asked.seed, asked.universes, name, asked.processes)
            for name in asked.database or DATABASES[:1]
        )
    if asked.chaos:
        return chaos.run(asked.database or DATABASES, asked.minutes or 1.0, asked.seed)
    wrong: list[Outcome] = []
    for name in asked.database or DATABASES:
        if asked.cell and not asked.cell.startswith(f"{name}:"):
            continue
        wrong += sweep(name, asked)
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
    parser.add_argument("--repeat", type=int, default=1, help="play each cell so many times")
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="play so many cells or universes side by side, each on a database of its own",
    )
    parser.add_argument("--chaos", action="store_true", help="processes, all faults together")
    parser.add_argument("--universes", type=int, help="simulate so many, from --seed on")
    parser.add_argument(
        "--mutants", nargs="*", metavar="NAME", help="break promises on purpose"
    )
    return parser.parse_args(arguments)


def sweep(database: str, asked: argparse.Namespace) -> list[Outcome]:
    """Play the cells that were asked for; those where something is wrong."""
    if asked.cell:
        cells = [Cell.parse(asked.cell)]
    else:
        with open_lab(database) as lab:
            cells = [*cells_of(lab, asked.scenario or SCENARIOS, asked.fault)]
    choices = ordered(cells, asked.seed, every=asked.every) * asked.repeat
    print(f"{database}: {len(choices)} of {len(cells)} cells, --seed {asked.seed}", flush=True)
    until = time.monotonic() + asked.minutes * 60 if asked.minutes else float("inf")
    with closing(play_choices(database, choices, asked.processes)) as playing:
        outcomes = [*report(playing, len(choices), until)]
    print(table(database, choices, outcomes), flush=True)
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


def ordered(cells: Iterable[Cell], seed: int, *, every: bool) -> list[list[Cell]]:
    """What there is to cover, each with the cells of which one is enough.

    Each statement with each fault, in whatever scenario sends it; or each cell. The order depends on
    the seed and on the names alone: that one cell is missing moves no other.
    """
    choices: dict[object, list[Cell]] = {}
    for cell in sorted(cells, key=lambda each: sha256(f"{seed} {each}".encode()).digest()):
        covers = cell if every else (cell.place.lane, cell.place.name, cell.fault)
        choices.setdefault(covers, []).append(cell)
    return [*choices.values()]


def play_choices(
    database: str, choices: Sequence[Sequence[Cell]], processes: int
) -> Generator[Outcome, None, None]:
    """Play one cell of each choice, here where one process is enough."""
    if processes > 1:
        yield from play_side_by_side(database, choices, processes)
        return
    with open_lab(database) as lab:
        for choice in choices:
            yield play_until_hit(lab, choice)


def report(playing: Iterator[Outcome], cells: int, until: float) -> Iterator[Outcome]:
    """Print what is wrong as it comes, and now and then how far it is; stop at a time."""
    printed = time.monotonic()
    wrong = 0
    for n, outcome in enumerate(playing, start=1):
        if outcome.wrong:
            wrong += 1
            print(f"VIOLATION ./run prove --cell '{outcome.cell}'", flush=True)
            for line in (
                *outcome.wrong[:6],
                *(f"refused: {each}" for each in outcome.refused[:3]),
            ):
                print(f"    {line}", flush=True)
        elif not outcome.hit:
            print(f"not reached: {outcome.cell}", flush=True)
        yield outcome
        if time.monotonic() > until:
            return
        if time.monotonic() - printed > EVERY:
            printed = time.monotonic()
            print(f"    {n} of {cells} cells, {wrong} with violations", flush=True)


def table(database: str, choices: Sequence[Sequence[Cell]], outcomes: Sequence[Outcome]) -> str:
    """What was covered: by fault, how many statements and cells, how many runs found something wrong."""
    cells = [choice[0] for choice in choices]
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
