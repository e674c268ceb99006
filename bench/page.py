"""The figures of `--only machines`, put into the page that explains them.

What stands between the two marks of the page is written anew; the rest is not touched.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.machines import PROCESSES, THOUSAND
from bench.ours import STEPS as TEN
from bench.table import Result

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
CORES = (2, 4, 8)  # of a PostgreSQL server: beyond it other things than processors decide
STEPS = 5  # of a job that does something
BUSY = 0.7  # of its cores: the rest is for vacuum, backups and the people who look
MEGA = 1_000_000
DAY = 86_400


def write_page(results: Sequence[Result], page: Path, where: str) -> None:
    """`where`: on what it was measured, and how much of it."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no {BEGIN} … {END} to write between")
    figures = {result.name: result.ours for result in results if result.ours is not None}
    page.write_text("".join((before, BEGIN, "\n", measured(figures, where), END, after)))


def measured(figures: Mapping[str, float], where: str) -> str:
    """Tables of what was measured, and of what follows from it."""
    wanted = [f"machines_{n}" for n in PROCESSES] + ["machines_step_server"]
    missing = [name for name in wanted if name not in figures]
    if missing:
        raise SystemExit(f"not measured: {', '.join(missing)}; ask for --only machines")
    lines = [
        told(where),
        "",
        *costs(figures),
        "",
        *reach(figures),
        "",
    ]
    return "\n".join(lines)


def told(where: str) -> str:
    day = time.strftime("%Y-%m-%d")
    return f"Measured on {day} by `./run bench --only machines --page docs/howto/many-machines.md`. {where}."


def costs(figures: Mapping[str, float]) -> Iterator[str]:
    yield "| runner processes | jobs/s | cores of runners for 1,000 jobs/s | cores of PostgreSQL for 1,000 jobs/s | WAL of a job | commits for 1,000 jobs |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for n in PROCESSES:
        yield line(str(n), f"machines_{n}", figures)
    yield line("a step, in jobs of ten", "machines_step", figures)


def line(head: str, name: str, figures: Mapping[str, float]) -> str:
    cells = (
        f"{figures[name]:,.0f}",
        f"{figures[f'{name}_runner']:.3f}",
        f"{figures[f'{name}_server']:.3f}",
        f"{figures[f'{name}_wal']:,.0f} B",
        f"{figures[f'{name}_commits']:.0f}",
    )
    return f"| {head} | {' | '.join(cells)} |"


def reach(figures: Mapping[str, float]) -> Iterator[str]:
    """How far a server goes whose cores are busy to 70 %, for an empty job and one of five steps."""
    most = max(PROCESSES)
    cpu, wal = figures[f"machines_{most}_server"], figures[f"machines_{most}_wal"]
    # A step of a job of ten carries a tenth of the job.
    more = max(figures["machines_step_server"] - cpu / TEN, 0.0)
    more_wal = max(figures["machines_step_wal"] - wal / TEN, 0.0)
    yield f"| PostgreSQL with | empty jobs/s | a day | WAL | jobs of {STEPS} steps/s | WAL |"
    yield "|---|---:|---:|---:|---:|---:|"
    for cores in CORES:
        empty = cores * BUSY / cpu * THOUSAND
        full = cores * BUSY / (cpu + STEPS * more) * THOUSAND
        yield (
            f"| {cores} cores | {empty:,.0f} | {empty * DAY / MEGA:,.0f} million |"
            f" {empty * wal / MEGA:,.0f} MB/s | {full:,.0f} |"
            f" {full * (wal + STEPS * more_wal) / MEGA:,.0f} MB/s |"
        )
