"""What a person sees while a world is at work: a live board, plain lines, or nothing."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from retoma.engine.batch import Progress
from retoma.engine.ports import Clock
from retoma.engine.states import State

EVENTS_SHOWN = 8
LINE_EVERY = 1.0  # seconds between two plain lines of progress
COLOURS = {
    State.WAITING: "dim",
    State.RUNNING: "cyan",
    State.PARKED: "yellow",
    State.DONE: "green",
    State.SKIPPED: "green",
    State.DEAD: "red",
    State.CANCELED: "magenta",
}


@dataclass(slots=True)
class Board:
    """Keeps what happened; the base shows nothing."""

    clock: Clock
    began: float = field(init=False)
    events: list[str] = field(default_factory=list)
    beside: str = ""  # what goes on next to the jobs, in a line

    def __post_init__(self) -> None:
        self.began = self.clock.now()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None: ...

    @property
    def seconds(self) -> float:
        return self.clock.now() - self.began

    def say(self, event: str) -> None:
        self.events.append(f"{self.seconds:5.1f} s  {event}")

    def look(self, progress: Progress) -> None: ...


@dataclass(slots=True)
class Lines(Board):
    """For a pipe or a log: a line when something happens, and one a second."""

    next_line: float = 0.0

    def say(self, event: str) -> None:
        Board.say(self, event)
        print(self.events[-1], flush=True)

    def look(self, progress: Progress) -> None:
        if self.seconds >= self.next_line:
            self.next_line = self.seconds + LINE_EVERY
            told = filter(None, (in_words(progress), self.beside))
            print(f"{self.seconds:5.1f} s  {' | '.join(told)}", flush=True)


@dataclass(slots=True)
class Picture(Board):
    """For a terminal: drawn in place."""

    console: Console = field(default_factory=Console)
    progress: Progress = field(default_factory=lambda: Progress({}))
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        Board.__post_init__(self)
        self.live = Live(console=self.console, get_renderable=self.draw, refresh_per_second=12)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def look(self, progress: Progress) -> None:
        self.progress = progress

    def draw(self) -> Group:
        top = Table.grid(padding=(0, 1), expand=True)
        top.add_column(ratio=1)
        top.add_column(justify="right", no_wrap=True)
        ended, total = self.progress.ended, self.progress.total
        top.add_row(
            ProgressBar(total=max(total, 1), completed=ended),
            f"{ended} of {total} · {self.seconds:.1f} s",
        )
        states = Text(" · ").join(
            Text(f"{n} {state}", style=COLOURS[state])
            for state, n in self.progress.counts.items()
        )
        told = [Text(event, style="dim") for event in self.events[-EVENTS_SHOWN:]]
        beside = [Text(self.beside, style="cyan")] if self.beside else []
        return Group(top, states, *beside, *told)


def board_for(*, quiet: bool) -> Board:
    clock = Clock()
    if quiet:
        return Board(clock)
    console = Console(highlight=False)
    return Picture(clock, console=console) if console.is_terminal else Lines(clock)


def in_words(progress: Progress) -> str:
    states = " · ".join(f"{n} {state}" for state, n in progress.counts.items())
    return f"{progress.ended} of {progress.total} ended ({states})"
