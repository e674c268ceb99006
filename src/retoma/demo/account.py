"""An honest account of a demo: what the database says, held against what the services themselves wrote down."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from rich.console import Console
from rich.table import Table

from retoma.db import Statement, Transaction, verbatim
from retoma.demo.board import Bar
from retoma.engine.query.page import SQL
from retoma.engine.rules.states import State
from retoma.words import speak

# Claims in which something failed and was tried again later, by kind.
RETRIED: Final = verbatim(
    "SELECT kind, count(*) FROM (SELECT DISTINCT j.kind, e.job, e.epoch FROM events e"
    " JOIN jobs j ON j.id = e.job WHERE e.type IN ('failed', 'step_failed') AND NOT EXISTS"
    " (SELECT 1 FROM events b WHERE b.job = e.job AND b.epoch = e.epoch AND b.type = 'buried')) x"
    " GROUP BY kind"
)
RECOVERED: Final = verbatim(
    "SELECT j.kind, count(*) FROM events e JOIN jobs j ON j.id = e.job WHERE e.type = 'lost'"
    " GROUP BY j.kind"
)
DEAD: Final = verbatim(
    "SELECT kind, coalesce(code, reason), count(*) FROM jobs WHERE state = 'dead'"
    " GROUP BY kind, coalesce(code, reason)"
)
# Answers that were paid for and kept before the attempt that needed them last.
READ_BACK: Final = verbatim(
    "SELECT j.kind, count(*) FROM steps s JOIN jobs j ON j.id = s.job"
    " WHERE s.state = 'saved' AND s.cost IS NOT NULL AND s.epoch < j.epoch GROUP BY j.kind"
)
LIVES: Final = verbatim(
    "SELECT j.id, j.state, j.generation, count(*), max(e.seq),"
    " count(*) FILTER (WHERE e.type = 'done')"
    " FROM jobs j JOIN events e ON e.job = j.id GROUP BY j.id, j.state, j.generation"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What one application was to do, what the database says became of it, what its services wrote down."""

    wanted: Mapping[str, str]  # each thing, and how it must end
    found: Sequence[tuple[str, str]]  # each thing that is there, and how it ended
    paid: Counter[str] = field(default_factory=Counter)  # answers, by what was asked
    kept: int = 0  # answers that the database has
    may_repeat: int = 0  # answers that may have been on their way to who was killed or frozen
    reused: int = 0  # things that needed no answer of their own
    retried: int = 0  # beside the jobs
    also: Sequence[str] = ()  # what else is wrong

    @property
    def paid_again(self) -> int:
        return self.paid.total() - len(self.paid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One job in the audit log."""

    job: int
    state: State
    generation: int
    events: int
    last: int  # the number of its last event
    done: int  # how often it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One application in numbers, or all of them."""

    submitted: int = 0
    done: int = 0
    retried: int = 0
    recovered: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)  # by their reason
    refused_writes: int = 0
    paid_calls: int = 0
    paid_again: int = 0
    saved_calls: int = 0

    @property
    def dead(self) -> int:
        return sum(self.dead_letters.values())

    def __add__(self, other: "Row") -> "Row":
        return Row(
            submitted=self.submitted + other.submitted,
            done=self.done + other.done,
            retried=self.retried + other.retried,
            recovered=self.recovered + other.recovered,
            dead_letters=dict(Counter(self.dead_letters) + Counter(other.dead_letters)),
            refused_writes=self.refused_writes + other.refused_writes,
            paid_calls=self.paid_calls + other.paid_calls,
            paid_again=self.paid_again + other.paid_again,
            saved_calls=self.saved_calls + other.saved_calls,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What happened, counted; `problems` is what should not have."""

    applications: dict[str, Row]
    seconds: float
    takeover_seconds: float
    events: list[str]
    problems: list[str]

    @property
    def total(self) -> Row:
        return reduce(Row.__add__, self.applications.values(), Row())


# — what is read —


@dataclass(frozen=True, slots=True)
class Seen:
    """What the database says of everybody, at one instant; each by the kind of its jobs."""

    retried: Mapping[str, int]
    recovered: Mapping[str, int]
    dead: Mapping[str, Mapping[str, int]]
    read_back: Mapping[str, int]
    refused: Mapping[str, int]
    lives: Sequence[Life]


def seen(tx: Transaction) -> Seen:
    dead: dict[str, dict[str, int]] = {}
    for kind, code, n in tx.for_caller(DEAD)[0]:
        dead.setdefault(kind, {})[code] = int(n)
    return Seen(
        retried=_by_kind(tx, RETRIED),
        recovered=_by_kind(tx, RECOVERED),
        dead=dead,
        read_back=_by_kind(tx, READ_BACK),
        refused={
            kind: int(n)
            for kind, state, n in tx.all(SQL.count_kinds, batch=None)
            if state == "refused"
        },
        lives=[
            Life(job=id_, state=State(state), generation=g, events=n, last=last, done=done)
            for id_, state, g, n, last, done in tx.for_caller(LIVES)[0]
        ],
    )


def _by_kind(tx: Transaction, statement: Statement) -> dict[str, int]:
    return {kind: int(n) for kind, n in tx.for_caller(statement)[0]}


def recovered_of(said: Seen, kinds: Sequence[str]) -> int:
    return sum(said.recovered.get(kind, 0) for kind in kinds)


def row_of(said: Seen, kinds: Sequence[str], bar: Bar, witness: Witness) -> Row:
    """One application: its things, and the jobs of all its kinds."""

    def summed(by_kind: Mapping[str, int]) -> int:
        return sum(by_kind.get(kind, 0) for kind in kinds)

    letters: Counter[str] = Counter()
    for kind in kinds:
        letters.update(said.dead.get(kind, {}))
    return Row(
        submitted=bar.wanted,
        done=bar.counts.get(State.DONE, 0) + bar.counts.get(State.SKIPPED, 0),
        retried=summed(said.retried) + witness.retried,
        recovered=recovered_of(said, kinds),
        dead_letters=dict(letters),
        refused_writes=summed(said.refused),
        paid_calls=witness.paid.total(),
        paid_again=witness.paid_again,
        saved_calls=summed(said.read_back) + witness.reused,
    )


# — what is checked —


def of_things(name: str, witness: Witness) -> list[str]:
    """Each is there once, and ended as it must; and each answer was paid for once."""
    there = Counter(thing for thing, _ in witness.found)
    lost = [thing for thing in witness.wanted if not there[thing]]
    doubled = [thing for thing, n in there.items() if n > 1]
    strange = [thing for thing in there if thing not in witness.wanted]
    otherwise = [
        f"{name}: {thing} ended with {ended}, and not with {witness.wanted[thing]}"
        for thing, ended in witness.found
        if ended != witness.wanted.get(thing, ended)
    ]
    found = [f"{name}: {thing} was lost" for thing in lost]
    found += [f"{name}: {thing} is there {there[thing]} times" for thing in doubled]
    found += [f"{name}: nobody has asked for {thing}" for thing in strange]
    found += otherwise
    if witness.paid_again > witness.may_repeat:
        found.append(
            f"{name}: {witness.paid_again} answers were paid for again, and only"
            f" {witness.may_repeat} can have been on their way to who was killed or frozen"
        )
    if len(witness.paid) != witness.kept:
        found.append(
            f"{name}: the services were paid for {len(witness.paid)} answers,"
            f" and {witness.kept} are kept"
        )
    return [*found, *(f"{name}: {each}" for each in witness.also)]


def of_numbers(name: str, row: Row, bar: Bar, witness: Witness) -> list[str]:
    """What was submitted is what is there, and all of it has ended."""
    found = []
    if bar.wanted != sum(bar.counts.values()):
        there = sum(bar.counts.values())
        found.append(f"{name}: {bar.wanted} were submitted and {there} are there")
    if not bar.finished:
        found.append(f"{name}: {bar.total - bar.ended} have not ended")
    badly = bar.ended - row.done
    if badly > row.dead:
        found.append(f"{name}: {badly} are not done, and {row.dead} have a reason")
    if row.paid_calls != witness.kept + row.paid_again:
        found.append(
            f"{name}: {row.paid_calls} paid calls are not {witness.kept} answers"
            f" and {row.paid_again} that were asked for again"
        )
    return found


def of_lives(lives: Sequence[Life]) -> list[str]:
    """Every job has ended, once in each of its generations, and its timeline has no gap."""
    found = []
    for each in lives:
        if each.state is State.RUNNING:
            found.append(f"job {each.job} is still held")
        if each.events != each.last:
            found.append(f"job {each.job} has a gap in its timeline")
        if each.done > each.generation:
            found.append(f"job {each.job} was done {each.done} times")
    return found


# — what is told —


def print_account(account: Account, titles: Mapping[str, str]) -> None:
    console = Console(highlight=False)
    console.print()
    console.print(_table(account, titles))
    for name, row in account.applications.items():
        if row.dead_letters:
            letters = " · ".join(f"{n} {why}" for why, n in sorted(row.dead_letters.items()))
            console.print(
                speak("dead letters of {name}: {letters}", name=titles[name], letters=letters)
            )
    console.print()
    if not account.problems:
        total = account.total
        console.print(
            speak(
                "checked in {seconds:g} s against the services' own logs and the database: nothing"
                " was lost, nothing was done twice; {paid} answers were paid for, {again} of them again"
                " because who had asked was killed or frozen",
                seconds=account.seconds,
                paid=total.paid_calls,
                again=total.paid_again,
            )
        )


def _table(account: Account, titles: Mapping[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    table.add_column("")
    for heading in (
        *(speak("submitted"), speak("done"), speak("retried"), speak("recovered")),
        *(speak("dead letters"), speak("late writes refused"), speak("paid calls saved")),
    ):
        table.add_column(heading, justify="right")
    for name, row in account.applications.items():
        table.add_row(titles[name], *_cells(row))
    table.add_section()
    table.add_row(speak("total"), *_cells(account.total), style="bold")
    return table


def _cells(row: Row) -> list[str]:
    numbers = (
        *(row.submitted, row.done, row.retried, row.recovered, row.dead),
        *(row.refused_writes, row.saved_calls),
    )
    return [f"{n:,}" for n in numbers]
