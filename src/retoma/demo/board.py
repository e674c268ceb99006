"""What a person sees while a world is at work: a bar for each application, and what happens, in plain words.

Drawn in place on a terminal; plain lines in a pipe or a log; nothing where nobody reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from retoma.engine.ports import Clock
from retoma.engine.rules.states import ENDED, State
from retoma.words import Said, speak, tell

EVENTS_SHOWN: Final = 12
LINE_EVERY: Final = 5.0  # seconds between two plain lines of progress
REFRESH: Final = 8  # drawings in a second
SHOWN: Final = {
    State.RUNNING: "cyan",
    State.DEAD: "red",
    State.PARKED: "yellow",
    State.CANCELED: "magenta",
    State.WAITING: "dim",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """How far one application is. `open`: what it still has to do beside them, before it rests."""

    wanted: int
    counts: Mapping[State, int] = field(default_factory=dict)
    open: int = 0

    @property
    def total(self) -> int:
        return max(self.wanted, sum(self.counts.values()))

    @property
    def ended(self) -> int:
        return sum(n for state, n in self.counts.items() if state in ENDED)

    @property
    def finished(self) -> bool:
        return self.ended == self.total and not self.open

    def beside(self) -> list[tuple[State, int]]:
        """Those that are not done, of which the bar itself tells."""
        return [(state, n) for state in SHOWN if (n := self.counts.get(state, 0))]


@dataclass(slots=True)
class Board:
    """Keeps how far everybody is and what happened; shows it on `console`, None: to nobody."""

    console: Console | None
    clock: Clock = field(default_factory=Clock)
    bars: dict[str, Bar] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    began: float = field(init=False)
    _live: Live | None = field(init=False, default=None)
    _next_line: float = field(init=False, default=LINE_EVERY)

    def __post_init__(self) -> None:
        self.began = self.clock.now()

    def __enter__(self) -> Self:
        if self.console is not None and self.console.is_terminal:
            self._live = Live(
                console=self.console, get_renderable=self._draw, refresh_per_second=REFRESH
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def seconds(self) -> float:
        return self.clock.now() - self.began

    @property
    def share(self) -> float:
        """Of everything that was submitted, how much has ended."""
        total = sum(bar.total for bar in self.bars.values())
        return sum(bar.ended for bar in self.bars.values()) / total if total else 0.0

    def tell(self, event: Said) -> None:
        """Something has happened."""
        self.events.append(f"{self.seconds:5.1f} s  {tell(event)}")
        self._line(self.events[-1])

    def look(self, bars: Mapping[str, Bar]) -> None:
        """So far everybody is now."""
        self.bars = dict(bars)
        if self.seconds >= self._next_line:
            self._next_line = self.seconds + LINE_EVERY
            told = " | ".join(f"{name} {_ended(bar)}" for name, bar in self.bars.items())
            self._line(f"{self.seconds:5.1f} s  {told}")

    def _line(self, text: str) -> None:
        if self.console is not None and self._live is None:
            print(text, file=self.console.file, flush=True)

    def _draw(self) -> Group:
        rows = Table.grid(padding=(0, 1), expand=True)
        rows.add_column(style="bold", no_wrap=True)
        rows.add_column(ratio=1)
        rows.add_column(justify="right", no_wrap=True)
        rows.add_column(ratio=1, no_wrap=True)
        for name, bar in self.bars.items():
            rows.add_row(name, _drawn(bar), _ended(bar), _states(bar))
        told = [Text(event, style="dim", no_wrap=True) for event in self.events[-EVENTS_SHOWN:]]
        return Group(rows, Text(f"{self.seconds:5.1f} s", style="cyan"), *told)


def board_for(*, quiet: bool) -> Board:
    return Board(None if quiet else Console(highlight=False))


def _drawn(bar: Bar) -> ProgressBar:
    return ProgressBar(
        total=max(bar.total, 1),
        completed=bar.ended,
        style="bright_black",
        complete_style="cyan",
        finished_style="green",
    )


def _ended(bar: Bar) -> str:
    return speak("{ended} of {total}", ended=bar.ended, total=bar.total)


def _states(bar: Bar) -> Text:
    return Text(" · ").join(
        Text(f"{n} {state}", style=SHOWN[state]) for state, n in bar.beside()
    )
