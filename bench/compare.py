"""Side by side: ours, the floor and the peers in turns, so that a noisy machine is noisy for all of them."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Generic, TypeVar

from bench.child import Failed
from bench.places import Places
from bench.table import Result, number

Figures = tuple[float, ...]  # one per row of the comparison
Measure = Callable[[Places], Figures]
Say = Callable[[str], None]

S = TypeVar("S")  # the settings of a side

TRIES = 2
OURS = "ours"
FLOOR = "floor"


class Absent(Exception):
    """There is nothing to measure here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """So many times what another side reached in the same run."""

    times: float
    of: str

    def __str__(self) -> str:
        return f"≥ {self.times:g} × {self.of}"  # noqa: RUF001

    def met(self, ours: float, others: Mapping[str, float | None]) -> bool | None:
        other = others.get(self.of)
        return None if other is None else ours >= self.times * other


@dataclass(frozen=True, slots=True)
class AtMost:
    """A figure that holds on any machine."""

    limit: float

    def __str__(self) -> str:
        return f"≤ {self.limit:g}"

    def met(self, ours: float, _others: Mapping[str, float | None]) -> bool | None:
        return ours <= self.limit


@dataclass(frozen=True, slots=True)
class NoLess:
    """The other way round: a share that must be kept on any machine."""

    limit: float

    def __str__(self) -> str:
        return f"≥ {self.limit:g}"

    def met(self, ours: float, _others: Mapping[str, float | None]) -> bool | None:
        return ours >= self.limit


Bar = AtLeast | AtMost | NoLess


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a comparison, and the bars it is judged by."""

    name: str
    unit: str
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Sides that do the same work. Each measure gives one figure per row."""

    rows: tuple[Row, ...]
    ours: Measure
    floor: Measure | None = None
    peers: Mapping[str, Measure] = field(default_factory=dict)
    rounds: int = 3

    def sides(self) -> dict[str, Measure]:
        floor = {} if self.floor is None else {FLOOR: self.floor}
        return {OURS: self.ours, **floor, **self.peers}


class Best(Generic[S]):
    """A side at whichever of its settings is fastest on this machine: found once, then kept."""

    def __init__(
        self, measure: Callable[[Places, S], Figures], candidates: Sequence[S]
    ) -> None:
        self._measure = measure
        self._candidates = list(candidates)

    def __call__(self, places: Places) -> Figures:
        if len(self._candidates) > 1:
            self._candidates = [max(self._candidates, key=lambda s: self._best_try(places, s))]
        return self._measure(places, self._candidates[0])

    def _best_try(self, places: Places, settings: S) -> float:
        """The better of a few tries: noise only ever slows."""
        return max(self._measure(places, settings)[0] for _ in range(TRIES))


def compare(comparison: Comparison, places: Places, say: Say) -> list[Result]:
    """Measure every side in every round; a side that is absent or fails is left out from then on."""
    taken: dict[str, list[Figures]] = {side: [] for side in comparison.sides()}
    why: dict[str, str] = {}
    for turn in range(comparison.rounds):
        for side, measure in in_turn(comparison.sides(), turn):
            if side in why:
                continue
            say(f"round {turn + 1}/{comparison.rounds}  {side} …")
            figures = measure_once(measure, places, comparison.rows, say)
            if isinstance(figures, str):
                why[side] = figures
                taken[side].clear()  # half a comparison is none
            else:
                taken[side].append(figures)
    return [
        judge(row, middle(taken, place), comparison, why)
        for place, row in enumerate(comparison.rows)
    ]


def in_turn(sides: Mapping[str, Measure], turn: int) -> Sequence[tuple[str, Measure]]:
    """Every other round backwards: nobody is always first, or always after the same neighbour."""
    order = list(sides.items())
    return order if turn % 2 == 0 else order[::-1]


def measure_once(
    measure: Measure, places: Places, rows: Sequence[Row], say: Say
) -> Figures | str:
    """The figures, or in two words why there are none."""
    places.settle()
    began = perf_counter()
    try:
        figures = measure(places)
    except (Absent, Failed) as error:
        say(str(error))
        return "not installed" if isinstance(error, Absent) else "failed"
    told = ", ".join(f"{number(f)} {row.unit}" for f, row in zip(figures, rows, strict=True))
    say(f"{told}  ({perf_counter() - began:.1f} s)")
    return figures


def middle(taken: Mapping[str, Sequence[Figures]], place: int) -> dict[str, float | None]:
    """The median of each side's rounds, for the row at `place`."""
    return {
        side: statistics.median(figures[place] for figures in rounds) if rounds else None
        for side, rounds in taken.items()
    }


def judge(
    row: Row, values: Mapping[str, float | None], comparison: Comparison, why: Mapping[str, str]
) -> Result:
    ours = values[OURS]
    verdicts = [bar.met(ours, values) for bar in row.bars] if ours is not None else []
    return Result(
        name=row.name,
        unit=row.unit,
        ours=ours,
        floor=values.get(FLOOR),
        peers={peer: values[peer] for peer in comparison.peers},
        bar=" and ".join(str(bar) for bar in row.bars) or None,
        met=all_met(verdicts),
        why=why,
    )


def all_met(verdicts: Sequence[bool | None]) -> bool | None:
    """One broken bar is enough for no; a bar that could not be judged leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts or not verdicts else True
