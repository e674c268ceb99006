"""What was measured, as a page: rows of many runs together, each with its command and its date.

What is known lies beside the page, as JSON: a run brings its own rows and leaves the others. Also a
program: `python -m bench.performance docs/performance.md` writes the page anew from what is known.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.compare import FLOOR, AtLeast, Row
from bench.comparisons import FULL, comparisons
from bench.plot import MET, drawn
from bench.table import LESS_IS_BETTER, Result, number

BEGIN, END = "<!-- bars -->", "<!-- /bars -->"
IMAGES = "images"  # beside the page
PEERS = ("pgqueuer", "huey", "dbos", "celery", "procrastinate", "absurd-sdk")
TIMES = "\N{MULTIPLICATION SIGN}"
SHARE = "last/first tenth"  # a unit: what it is of is said beside it
OPEN = "–"  # noqa: RUF001  # in a cell: nothing to tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One `./run bench`: what was typed, when, and on what."""

    command: str
    date: str
    where: str


Known = Mapping[str, tuple[Result, Run]]  # by the name of a row


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the design and the rows that are held against it; of a pattern only the worst is shown."""

    says: str
    rows: tuple[str, ...]


BARS = (
    Bar("drain of empty jobs, PostgreSQL, one runner", ("drain_postgres_1",)),
    Bar("the same, two runner processes", ("drain_postgres_2",)),
    Bar("durable steps, PostgreSQL, 1,000 jobs at a time", ("steps_postgres",)),
    Bar("drain of empty jobs, SQLite, `synchronous=FULL`", ("drain_sqlite",)),
    Bar("durable steps, SQLite, `synchronous=FULL`", ("steps_sqlite",)),
    Bar("enqueue in bulk, PostgreSQL, events included", ("enqueue_bulk_postgres",)),
    Bar("submit to start, PostgreSQL", ("latency_postgres_p50", "latency_postgres_p99")),
    Bar("submit to start, SQLite", ("latency_sqlite_p50", "latency_sqlite_p99")),
    Bar("an idle runner does not poll", ("idle_postgres", "idle_sqlite")),
    Bar("growth of claims, scans and boards", ("growth_*_postgres", "growth_*_sqlite")),
    Bar("growth of what the API answers", ("api_*_postgres", "api_*_sqlite")),
    Bar("sustained drain, last tenth by first", ("sustained_postgres", "sustained_sqlite")),
    Bar(
        "the same, beside a snapshot that stays open",
        ("sustained_postgres_old_snapshot", "sustained_sqlite_old_snapshot"),
    ),
    Bar("a beat of 10,000 running jobs", ("heartbeat_10000_running",)),
    Bar(
        "kill -9 to all jobs at work again, same host",
        ("reclaim_same_host_postgres", "reclaim_same_host_sqlite"),
    ),
    Bar("the same from another host, lease 60 s", ("reclaim_other_host_postgres",)),
    Bar("start-up: `retoma --help`", ("startup_help",)),
    Bar("start-up: `./run demo` to its first job", ("startup_demo",)),
)
PLOTS = {
    "throughput": ("drain_*", "enqueue_bulk_*", "steps_*"),
    "latency": ("latency_*", "reclaim_*", "startup_*"),
    "growth": ("growth_*", "sustained_postgres*", "sustained_sqlite*"),
    "applications": (
        *("documents_*", "matches_*", "ads_writer_postgres"),
        *("embeddings_postgres_*", "embeddings_sqlite_*"),
    ),
}


# --- What is known


def write_performance(results: Sequence[Result], page: Path, command: str, where: str) -> None:
    """Take in what a run has measured, and draw the page and its pictures anew."""
    run = Run(command=command, date=time.strftime("%Y-%m-%d"), where=where + versions())
    known = {**read_known(facts_of(page)), **{each.name: (each, run) for each in results}}
    write_known(known, facts_of(page))
    redraw(page)


def redraw(page: Path) -> None:
    known = read_known(facts_of(page))
    page.write_text(page_with(page.read_text(), known))
    (page.parent / IMAGES).mkdir(exist_ok=True)
    for name, picture in pictures(known).items():
        (page.parent / name).write_text(picture)


def facts_of(page: Path) -> Path:
    return page.with_suffix(".json")


def read_known(file: Path) -> Known:
    if not file.exists():
        return {}
    told = json.loads(file.read_text())
    runs = [Run(**run) for run in told["runs"]]
    return {
        row["name"]: (Result(**{k: v for k, v in row.items() if k != "run"}), runs[row["run"]])
        for row in told["rows"]
    }


def write_known(known: Known, file: Path) -> None:
    """In the order of the comparisons, so that two runs differ where figures do."""
    ordered = in_order(known)
    runs = runs_of(known)
    rows = [{**asdict(result), "run": runs.index(run)} for result, run in ordered]
    told = {"runs": [asdict(run) for run in runs], "rows": rows}
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def in_order(known: Known) -> list[tuple[Result, Run]]:
    return [known[name] for name in rows_by_name() if name in known]


def runs_of(known: Known) -> list[Run]:
    return list(dict.fromkeys(run for _, run in in_order(known)))


def rows_by_name() -> dict[str, Row]:
    return {row.name: row for each in comparisons(FULL) for row in each.rows}


def versions() -> str:
    told = []
    for name in PEERS:
        try:
            told.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return "; " + ", ".join(told) if told else ""


# --- The page


def page_with(text: str, known: Known) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has no {BEGIN} … {END} to write between")
    lines = [BEGIN, *told(known), END]
    return before + "\n".join(lines) + after


def told(known: Known) -> Iterator[str]:
    judged = [line for bar in BARS for line in bar_lines(bar, known)]
    met = sum(line.met is True for line in judged)
    missed = [line.row for line in judged if line.met is False]
    yield f"**{met} of {len(judged)} bars are met.**{not_met(missed)}"
    yield ""
    yield "| what | row | bar | ours | beside it | ratio | | run |"
    yield "|---|---|---|---:|---|---:|---|---:|"
    runs = runs_of(known)
    for line in judged:
        yield line.drawn(runs)
    for name in pictures(known):
        yield ""
        yield f"![{Path(name).stem.replace('-', ': ')}]({name})"
    yield ""
    yield "## Every row"
    yield ""
    yield "| row | unit | ours | floor | peers | bar | | run |"
    yield "|---|---|---:|---:|---|---|---|---:|"
    for result, run in in_order(known):
        yield row_line(result, runs.index(run) + 1)
    yield ""
    yield "## Runs"
    yield ""
    yield "| run | command | date | on |"
    yield "|---:|---|---|---|"
    for place, run in enumerate(runs, start=1):
        yield f"| {place} | `{run.command}` | {run.date} | {run.where} |"


def not_met(rows: Sequence[str]) -> str:
    return f" Not met: {', '.join(f'`{row}`' for row in rows)}." if rows else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table of bars."""

    says: str
    row: str
    result: Result | None
    run: Run | None
    bar: str
    ratios: str = OPEN

    @property
    def met(self) -> bool | None:
        return None if self.result is None else self.result.met

    def drawn(self, runs: Sequence[Run]) -> str:
        if self.result is None or self.run is None:
            cells = [self.says, f"`{self.row}`", self.bar, OPEN, OPEN, OPEN, "not measured", ""]
        else:
            cells = [
                *(self.says, f"`{self.row}`", self.bar, with_unit(self.result)),
                *(beside(self.result), self.ratios, verdict(self.result.met)),
                str(runs.index(self.run) + 1),
            ]
        return f"| {' | '.join(cells)} |"


def bar_lines(bar: Bar, known: Known) -> Iterator[Line]:
    """A line for each row; the worst where a pattern stands for many."""
    rows = rows_by_name()
    for place, wanted in enumerate(bar.rows):
        says = bar.says if place == 0 else ""
        matching = [name for name in rows if fnmatchcase(name, wanted)]
        measured = [name for name in matching if name in known]
        if not measured:
            yield Line(
                says=says, row=wanted, result=None, run=None, bar=bound(rows[matching[0]])
            )
            continue
        name = worst(measured, known)
        result, run = known[name]
        if len(matching) > 1:
            # Of many the worst decides, and one that could not be measured leaves it open.
            says = f"{says}: the worst of {len(matching)}".lstrip(": ")
            verdicts = [known[each][0].met if each in known else None for each in matching]
            result = replace(result, met=of_all(verdicts))
        yield Line(
            says=says,
            row=name,
            result=result,
            run=run,
            bar=bound(rows[name]),
            ratios=ratios(rows[name], result),
        )


def bound(row: Row) -> str:
    """A ratio needs no unit, a figure does."""
    return " and ".join(
        str(bar) if isinstance(bar, AtLeast) or row.unit == SHARE else f"{bar} {row.unit}"
        for bar in row.bars
    )


def of_all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def worst(names: Sequence[str], known: Known) -> str:
    """All of a pattern have one unit, and more of it is worse."""
    return max(names, key=lambda name: known[name][0].ours or 0.0)


def ratios(row: Row, result: Result) -> str:
    """Ours by each side that a bar names; a bar that is a figure needs none."""
    told = []
    for bar in row.bars:
        if isinstance(bar, AtLeast) and result.ours is not None:
            other = result.floor if bar.of == FLOOR else result.peers.get(bar.of)
            told.append(f"{result.ours / other:.2f} {TIMES} {bar.of}" if other else OPEN)
    return ", ".join(told) or OPEN


def with_unit(result: Result) -> str:
    return f"{number(result.ours)} {result.unit}"


def beside(result: Result) -> str:
    sides = {FLOOR: result.floor, **result.peers}
    told = [f"{side} {number(value)}" for side, value in sides.items() if value is not None]
    return ", ".join(told) or OPEN


def verdict(met: bool | None) -> str:
    return f"**{MET[met]}**" if met is False else MET[met]


def row_line(result: Result, run: int) -> str:
    peers = ", ".join(
        f"{name} {number(value) if value is not None else result.why.get(name, OPEN)}"
        for name, value in result.peers.items()
    )
    less = " ↓" if result.unit in LESS_IS_BETTER else ""
    cells = [
        *(f"`{result.name}`", result.unit + less, number(result.ours), number(result.floor)),
        *(peers or OPEN, result.bar or OPEN, verdict(result.met), str(run)),
    ]
    return f"| {' | '.join(cells)} |"


# --- The pictures


def pictures(known: Known) -> dict[str, str]:
    """Each by its path from the page; none of rows that nobody has measured."""
    found: dict[str, str] = {}
    for name, wanted in PLOTS.items():
        rows = [
            result
            for result, _ in in_order(known)
            if any(fnmatchcase(result.name, pattern) for pattern in wanted)
            and not result.name.endswith(("_cpu", "_memory", "_clock"))
        ]
        if rows:
            found[f"{IMAGES}/performance-{name}.svg"] = drawn(rows, name)
    return found


if __name__ == "__main__":
    redraw(Path(sys.argv[1]))
