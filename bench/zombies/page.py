"""The board as Markdown, and its section of docs/reliability.md."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import apsw

from bench.zombies.director import Played
from bench.zombies.judge import Verdict, summarize
from bench.zombies.scenarios import JOB, KILL, SCENARIOS, Scenario
from bench.zombies.systems import System

BEGIN, END = "<!-- zombies -->", "<!-- /zombies -->"
COMMAND = "./run bench --only zombies --page docs/reliability.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system of the board: what came out, or why nothing did."""

    system: System
    played: Played | None
    missing: str = ""

    @property
    def clean(self) -> bool:
        return self.played is not None and all(
            verdict.clean for verdict in self.played.verdicts.values()
        )


def write_section(rows: Sequence[Row], page: Path, where: str) -> None:
    """Replace what stands between the two marks of the page, and nothing else."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no {BEGIN} … {END} to write between")
    section = "\n".join(section_lines(rows, where))
    page.write_text(f"{before}{BEGIN}\n{section}\n{END}{after}")


def section_lines(rows: Sequence[Row], where: str) -> Iterator[str]:
    yield f"Measured on {time.strftime('%Y-%m-%d')} by `{COMMAND}`. {versions(rows)}. {where}."
    yield ""
    yield from summary_table(rows)
    yield ""
    yield from scenario_table([row for row in rows if row.played is not None])
    yield ""
    for row in rows:
        yield f"- **{row.system.name}**: {row.system.settings}. {row.system.why}"


def versions(rows: Sequence[Row]) -> str:
    packages = dict.fromkeys(row.system.package for row in rows if row.played is not None)
    known = [f"{package} {version(package)}" for package in packages]
    return ", ".join((*known, f"SQLite {apsw.sqlitelibversion()}"))


def summary_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| system | runs of one part of a job | stale writes accepted | ended right | jobs lost | taken over after SIGSTOP | after SIGKILL |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        if row.played is None:
            yield f"| {row.system.name} | {row.missing} | | | | | |"
        else:
            yield f"| {row.system.name} | {' | '.join(summary_cells(row.played))} |"


def summary_cells(played: Played) -> Iterator[str]:
    found = summarize(played.verdicts.values())
    least, most = found.runs
    yield f"{least} to {most}" if least != most else str(most)
    yield f"{found.stale} of {found.scenarios - 1}"  # one of the scenarios has nobody who wakes
    yield f"{found.right} of {found.scenarios}"
    yield str(found.lost)
    yield f"{played.recovered_stopped:.1f} s"
    yield "never" if played.recovered_killed is None else f"{played.recovered_killed:.1f} s"


def scenario_table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| the stopped worker … | {' | '.join(row.system.name for row in rows)} |"
    yield "|---|" + "---|" * len(rows)
    for scenario in (*SCENARIOS, KILL):
        cells = [cell(scenario, played_of(row).verdicts) for row in rows]
        yield f"| {scenario.title} | {' | '.join(cells)} |"


def played_of(row: Row) -> Played:
    assert row.played is not None
    return row.played


def cell(scenario: Scenario, verdicts: Mapping[str, Verdict]) -> str:
    verdict = verdicts.get(scenario.name)
    if verdict is None:
        return "no steps"
    parts = [runs_text(verdict)]
    if scenario is not KILL:
        parts.append(fate_of_write(verdict))
    parts.append("right" if verdict.right else f"**wrong**: {verdict.after}")
    return ", ".join(parts)


def fate_of_write(verdict: Verdict) -> str:
    """What became of the woken worker's write, if it came so far."""
    if verdict.stale:
        return f"**accepted**: {'; '.join(verdict.stale)}"
    return "refused" if verdict.tried else "stopped before it wrote"


def runs_text(verdict: Verdict) -> str:
    if set(verdict.runs) == {JOB}:
        runs = verdict.runs[JOB]
        text = "1 run" if runs == 1 else f"{runs} runs"
    else:
        text = ", ".join(f"step {part} {n}×" for part, n in sorted(verdict.runs.items()))  # noqa: RUF001
    return f"**{text}**" if verdict.vain else text
