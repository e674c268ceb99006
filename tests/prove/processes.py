"""Play the cells of the sweep side by side: each process has a database server and a proxy of its own."""

import faulthandler
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait

from tests.prove.sweep import Cell, Outcome, open_lab, play_until_hit, silence_logs


def play_side_by_side(
    database: str, choices: Sequence[Sequence[Cell]], processes: int
) -> Iterator[Outcome]:
    """Play one cell of each choice in one of the processes; the outcomes come as they are ready.

    A process that ends while it plays is an outcome too: a cell must not kill its process.
    Close the iterator to stop early.
    """
    waiting = iter(choices)
    with _Pool(database) as pool:
        for choice in islice(waiting, processes):
            pool.start(choice)
        while pool.playing:
            for outcome in pool.collect():
                yield outcome
                for choice in islice(waiting, 1):
                    pool.start(choice)


class _Pool:
    """Processes, each of which plays one choice at a time."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[Connection] = []
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        self.playing: dict[Connection, Sequence[Cell]] = {}

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for ours in self._processes:
            ours.close()  # the process reads the end of its choices, and cleans up
        for process in self._processes.values():
            process.join()

    def start(self, choice: Sequence[Cell]) -> None:
        """Hand a choice to an idle process, or to a new one."""
        ours = self._idle.pop() if self._idle else self._new()
        ours.send(choice)
        self.playing[ours] = choice

    def _new(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=play_choices, args=(theirs, self._database))
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def collect(self) -> Iterator[Outcome]:
        """Wait for at least one outcome."""
        for ours in wait(list(self.playing)):
            assert isinstance(ours, Connection)
            choice = self.playing.pop(ours)
            try:
                outcome = ours.recv()
            except EOFError:
                outcome = self._ended(ours, choice[0])
            else:
                self._idle.append(ours)
            yield outcome

    def _ended(self, ours: Connection, cell: Cell) -> Outcome:
        process = self._processes.pop(ours)
        ours.close()
        process.join()
        return Outcome(
            cell, True, [f"broke: its process ended with exit code {process.exitcode}"]
        )


def play_choices(choices: Connection, database: str) -> None:
    """Play what is sent until nothing more can come; the body of a process."""
    faulthandler.enable()
    silence_logs()
    with open_lab(database) as lab, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            choices.send(play_until_hit(lab, choices.recv()))
