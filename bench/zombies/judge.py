"""Judge one scenario by the ledger and by what the system said of the job. Pure: no process, no database."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.zombies.ledger import EFFECT, START, Line
from bench.zombies.scenarios import CANCELLED, FIRST, GONE, RUNNING, SECOND, WAITING, Scenario


@dataclass(frozen=True, slots=True)
class Seen:
    """What a system says of a job at one moment. A value is None where the system stores none."""

    state: str
    value: Any = None
    steps: tuple[tuple[str, Any], ...] = ()
    claim: str = ""  # names the present claim; another name: somebody took the job anew

    def __str__(self) -> str:
        return self.state if self.value is None else f"{self.state} with {self.value!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that was seen of one job from outside."""

    before: Seen  # when the first worker was woken
    woken: Sequence[Seen] = ()  # what followed while only that one was at work, each once
    after: Seen  # in the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One cell of the board."""

    runs: dict[str, int] = field(default_factory=dict)  # of each part
    vain: int = 0  # runs beyond those that the takeover itself needs
    tried: bool = False  # the woken worker went on; else there was nothing to refuse
    stale: tuple[str, ...] = ()  # what each of its writes that were accepted has changed
    right: bool = False
    lost: bool = False
    after: str = ""  # how the job ended

    @property
    def clean(self) -> bool:
        return self.right and not (self.lost or self.stale or self.vain)


def judge(
    scenario: Scenario, lines: Iterable[Line], seen: Observed, *, results: bool
) -> Verdict:
    """Count the runs, find accepted writes of the worker that had no right to write, check the end.

    `results`: whether the system stores what a job returns; where it does not, its state alone is checked.
    """
    own = [line for line in lines if line.scenario == scenario.name]
    runs = Counter(line.part for line in own if line.phase == START)
    return Verdict(
        runs=dict(runs),
        vain=sum(max(runs[part] - needed, 0) for part, needed in scenario.runs),
        tried=any(line.worker == FIRST and line.phase == EFFECT for line in own),
        stale=tuple(stale_writes(scenario, seen)),
        right=ended_right(scenario, own, seen.after, results=results),
        lost=seen.after.state in {WAITING, RUNNING, GONE},
        after=str(seen.after),
    )


def stale_writes(scenario: Scenario, seen: Observed) -> list[str]:
    """Each change of the job between the first worker's waking and the second one's going on.

    The second worker waits at its gate all that time, or has ended: whatever changes, the first one changed.
    """
    found = []
    known = seen.before
    for each in seen.woken:
        if each.state != known.state:
            if not each.state == scenario.state == CANCELLED:  # the cancel itself takes effect
                found.append(f"{known.state} became {each.state}")
        elif each.value != known.value:
            found.append(f"the result {known.value!r} became {each.value!r}")
        elif each.claim != known.claim and scenario.state != CANCELLED:
            found.append("its claim was ended")
        if each.steps != known.steps:
            found.append(f"the steps {_told(known)} became {_told(each)}")
        known = each
    return found


def ended_right(scenario: Scenario, own: Sequence[Line], after: Seen, *, results: bool) -> bool:
    """Whether the job ended in the state, and with the result, of the worker that had the right."""
    if after.state != scenario.state:
        return False
    if not results or scenario.value is None:
        return True
    by_holder = any(line.worker == SECOND and line.phase == EFFECT for line in own)
    return by_holder and after.value == scenario.value


def _told(seen: Seen) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in seen.steps) or "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One system's row: all of its scenarios together."""

    scenarios: int
    runs: tuple[int, int]  # of one part of a job: the least and the most
    vain: int
    stale: int
    right: int
    lost: int


def summarize(verdicts: Iterable[Verdict]) -> Summary:
    """Add up the cells of one system."""
    every = list(verdicts)
    runs = [n for verdict in every for n in verdict.runs.values()] or [0]
    return Summary(
        scenarios=len(every),
        runs=(min(runs), max(runs)),
        vain=sum(verdict.vain for verdict in every),
        stale=sum(bool(verdict.stale) for verdict in every),
        right=sum(verdict.right for verdict in every),
        lost=sum(verdict.lost for verdict in every),
    )
