"""What was measured, as one table for people and one list for programs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

LESS_IS_BETTER = frozenset({"ms", "s", "MB", "writes/beat", "times as long"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table. None where there was nothing to measure, or nothing to be judged by."""

    name: str
    unit: str
    ours: float | None
    floor: float | None
    peers: Mapping[str, float | None]
    bar: str | None
    met: bool | None
    why: Mapping[str, str] = field(default_factory=dict)  # why a side has no figure

    def ratio(self) -> float | None:
        """Ours by the best peer; by the floor where no peer was measured."""
        measured = [value for value in self.peers.values() if value is not None]
        best = min if self.unit in LESS_IS_BETTER else max
        against = best(measured) if measured else self.floor
        return self.ours / against if self.ours is not None and against else None


def show(results: Sequence[Result], console: Console) -> None:
    table = Table(title="retoma beside the floor and its peers", title_justify="left")
    table.add_column("what", no_wrap=True)
    for heading in ("unit", "ours", "floor", "peers", "ratio", "bar", "met"):
        right = heading in {"ours", "floor", "ratio"}
        table.add_column(heading, justify="right" if right else "left")
    for result in results:
        table.add_row(*cells(result))
    console.print(table)


def cells(result: Result) -> tuple[str, ...]:
    ratio = result.ratio()
    return (
        result.name,
        result.unit,
        figure(result.ours, result.why.get("ours")),
        figure(result.floor, result.why.get("floor")),
        "\n".join(peer_lines(result)) or "-",
        "-" if ratio is None else f"{ratio:.2f} ×",  # noqa: RUF001
        result.bar or "-",
        met_cell(result.met),
    )


def peer_lines(result: Result) -> Iterator[str]:
    for name, value in result.peers.items():
        yield f"{name} {figure(value, result.why.get(name))}"


def figure(value: float | None, why: str | None) -> str:
    return number(value) if why is None else why


def met_cell(met: bool | None) -> str:
    if met is None:
        return "-"
    return "[green]met[/]" if met else "[red]not met[/]"


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def write_json(results: Sequence[Result], file: Path) -> None:
    rows = [asdict(result) for result in results]
    for row in rows:
        del row["why"]  # for the eye; a program sees null
    file.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
