"""`python -m bench [--quick] [--json FILE] [--plot FILE] [--page FILE] [--only NAME …]`: ours beside the floor and the peers.

Exit code 0 when everything of ours could be measured, whether or not a bar was met: a noisy machine is
not a broken build. 1 when something of ours could not, 2 for arguments that make no sense.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from rich.console import Console

from bench import performance
from bench.compare import Comparison, compare
from bench.comparisons import FULL, QUICK, comparisons
from bench.page import write_page
from bench.places import Places, open_places
from bench.plot import write_plot
from bench.table import Result, show, write_json
from bench.zombies import board

TABLE_WIDTH = 140


def main(arguments: Sequence[str]) -> int:
    asked = parse(arguments)
    if board.NAME in asked.only:
        return run_board(asked)
    chosen = choose(comparisons(QUICK if asked.quick else FULL), asked.only)
    if not chosen:
        Console(stderr=True).print(f"no comparison is called {' or '.join(asked.only)}")
        return 2
    began = perf_counter()
    with open_places() as places:
        where = describe(places, quick=asked.quick)
        page = Known(asked.page, typed(arguments), where)
        results = measure_all(chosen, places, Console(stderr=True, highlight=False), page)
    show(results, table_console())
    Console(stderr=True, highlight=False).print(f"{perf_counter() - began:.0f} s in all")
    if asked.json:
        write_json(results, asked.json)
    if asked.plot:
        write_plot(results, asked.plot)
    if asked.page and not page.keeps:
        write_page(results, asked.page, where)
    return 0 if all(result.ours is not None for result in results) else 1


def run_board(asked: argparse.Namespace) -> int:
    """What a stopped worker may still write, ours beside the peers: no figures, so it is run alone."""
    if asked.only != [board.NAME] or asked.plot:
        Console(stderr=True).print(f"{board.NAME} is run alone, and has no picture")
        return 2
    return board.run(table_console(), page=asked.page, facts=asked.json)


class Known:
    """A page that keeps the rows of other runs, if that is the one that was asked for: it is written
    after every comparison, so that a run that is broken off has not been in vain."""

    def __init__(self, page: Path | None, command: str, where: str) -> None:
        self.keeps = page is not None and performance.BEGIN in page.read_text()
        self._page = page
        self._how = (command, where)

    def take_in(self, results: Sequence[Result]) -> None:
        if self._page is not None and self.keeps:
            performance.write_performance(results, self._page, *self._how)


def typed(arguments: Sequence[str]) -> str:
    """What brought the figures; not where they were put."""
    kept = list(arguments)
    if "--page" in kept:
        place = kept.index("--page")
        del kept[place : place + 2]
    return " ".join(["./run bench", *kept])


def describe(places: Places, *, quick: bool) -> str:
    """What a reader of the figures must know: the server, how busy the machine was, and how much was done."""
    load = f"{os.cpu_count()} cores for the runners and the server together, load {os.getloadavg()[0]:.1f} before"
    return f"{places.describe()}; {load}; {'few jobs' if quick else 'the full size'}"


def table_console() -> Console:
    """As wide as the terminal; wide enough for the table where the output goes to a file."""
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer jobs and rounds: 10 minutes"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows as a list"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the rows, as SVG")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also put what came out into this page: docs/performance.md, which keeps the figures of"
        " other runs; what many machines cost into docs/howto/many-machines.md; the board of"
        " zombies into docs/reliability.md",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="only rows whose name begins so; zombies: the board of docs/reliability.md",
    )
    return parser.parse_args(arguments)


def choose(every: Sequence[Comparison], only: Sequence[str]) -> list[Comparison]:
    """Those with a row whose name begins with one of `only`; all of them if that is empty."""
    return [
        comparison
        for comparison in every
        if not only or any(row.name.startswith(tuple(only)) for row in comparison.rows)
    ]


def measure_all(
    chosen: Sequence[Comparison], places: Places, console: Console, page: Known
) -> list[Result]:
    console.print(places.describe())
    console.print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first round"
    )
    results: list[Result] = []
    for place, comparison in enumerate(chosen, start=1):
        names = ", ".join(row.name for row in comparison.rows)
        console.print(f"[bold][{place}/{len(chosen)}] {names}[/bold]", markup=True)
        measured = compare(
            comparison, places, lambda line: console.print(f"  {line}", markup=False)
        )
        page.take_in(measured)
        results += measured
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
