"""An honest account of a demo: what the database says, held against a ledger outside of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from retoma.cli import (
    ads_world,
    documents_world,
    embeddings_world,
    matches_world,
    quotes_world,
)
from retoma.cli.ads_world import AdsAccount
from retoma.cli.demo_jobs import Ran, app, read_ledger
from retoma.cli.documents_world import DocumentsAccount
from retoma.cli.embeddings_world import EmbeddingsAccount
from retoma.cli.matches_world import MatchesAccount
from retoma.cli.quotes_world import QuotesAccount
from retoma.cli.world import World
from retoma.db import Transaction
from retoma.engine import insights
from retoma.engine.batch import Batch
from retoma.engine.events import EventType
from retoma.engine.insights import Event, StepSeen
from retoma.engine.job import Job
from retoma.engine.states import State


@dataclass(frozen=True, slots=True)
class Told:
    """All the database says of one job."""

    job: Job
    events: Sequence[Event]
    steps: Sequence[StepSeen]

    def count(self, event: EventType) -> int:
        return sum(each.type is event for each in self.events)

    @property
    def last_words(self) -> str:
        buried = [e.details for e in self.events if e.type is EventType.BURIED]
        return str(buried[-1].get("message", "")) if buried else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What happened, counted; `problems` is what should not have."""

    submitted: int
    done: int
    retried: int
    taken_over: int
    dead_letters: list[dict[str, object]]
    refused_writes: int
    steps_run: int
    steps_committed: int
    steps_run_again: int  # whose runner died before it could commit them, or that failed
    takeover_seconds: float = 0.0
    seconds: float = 0.0
    events: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ads: AdsAccount | None = None
    quotes: QuotesAccount | None = None
    documents: DocumentsAccount | None = None
    matches: MatchesAccount | None = None
    embeddings: EmbeddingsAccount | None = None


async def account_of(place: World, batch: Batch) -> Account:
    """Every number of it is read from the database or from the ledger, at the end."""
    database = await app.database()
    told = await database.read(lambda tx: _everything(tx, batch.id))
    ledger = read_ledger(place.ledger)
    return Account(
        submitted=batch.submitted,
        done=sum(each.job.state is State.DONE for each in told),
        retried=sum(each.count(EventType.FAILED) for each in told),
        taken_over=sum(each.count(EventType.LOST) > 0 for each in told),
        dead_letters=[
            {
                "job": each.job.id,
                "reason": each.job.reason,
                "code": each.job.code,
                "message": each.last_words,
            }
            for each in told
            if each.job.state is State.DEAD
        ],
        refused_writes=await app.refused_writes(),
        steps_run=len(ledger),
        steps_committed=sum(len(each.steps) for each in told),
        steps_run_again=len(ledger) - len({(ran.job, ran.step) for ran in ledger}),
        problems=problems(batch.submitted, told, ledger),
    )


def _everything(tx: Transaction, batch: int) -> list[Told]:
    told: list[Told] = []
    before = None
    while page := insights.list_jobs(tx, batch=batch, before=before, limit=insights.PAGE):
        before = page[-1].id
        told += [
            Told(job, insights.job_events(tx, job.id), insights.job_steps(tx, job.id))
            for job in page
        ]
    return told


def problems(submitted: int, told: Sequence[Told], ledger: Sequence[Ran]) -> list[str]:
    """Every promise that was broken, in words."""
    found = []
    if len(told) != submitted:
        found.append(f"{submitted} jobs were submitted and {len(told)} are there")
    found += [f"job {each.job.id} has not ended" for each in told if not each.job.ended]
    for each in told:
        numbers = [event.seq for event in each.events]
        if numbers != list(range(1, len(numbers) + 1)):
            found.append(f"job {each.job.id} has a gap in its timeline")
    return found + _repeats(told, ledger)


def _repeats(told: Sequence[Told], ledger: Sequence[Ran]) -> list[str]:
    """A committed step ran in the epoch that committed it, once, and never later."""
    runs: dict[tuple[int, str], Counter[int]] = {}
    for ran in ledger:
        runs.setdefault((ran.job, ran.step), Counter())[ran.epoch] += 1
    found = []
    for each in told:
        for step in each.steps:
            name = f"{step.name}/{step.key}" if step.key else step.name
            epochs = runs.get((each.job.id, name), Counter[int]())
            if epochs[step.epoch] != 1:
                times = epochs[step.epoch]
                found.append(
                    f"job {each.job.id}: {name} was committed once and ran {times} times"
                )
            if any(epoch > step.epoch for epoch in epochs):
                found.append(f"job {each.job.id}: {name} ran again after its commit")
    return found


def print_account(account: Account, place: World) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    for name, value, remark in _rows(account):
        table.add_row(name, str(value), remark)
    console = Console(highlight=False)
    console.print()
    console.print(table)
    console.print()
    if not account.problems:
        console.print(
            f"checked in {account.seconds:g} s: every job ended, none was lost, no committed step"
            " ran twice; every mission completed, and its ads are stored; every quote has its"
            " price and every document its label or its code, and no kept answer was paid again;"
            " every match is stored whole"
        )
    console.print(
        f"look around: retoma jobs list --state dead --database {place.url}", soft_wrap=True
    )


def _rows(account: Account) -> list[tuple[str, int, str]]:
    rows = [
        ("submitted", account.submitted, ""),
        ("done", account.done, ""),
        ("retried", account.retried, "failed attempts that were tried again"),
        (
            "taken over",
            account.taken_over,
            f"from the runner that was killed, in {account.takeover_seconds:.1f} s",
        ),
        ("late writes refused", account.refused_writes, ""),
        ("steps run", account.steps_run, "lines in a ledger outside the queue"),
        ("steps committed", account.steps_committed, "each of them ran once"),
        ("run again", account.steps_run_again, "had failed, or died before their commit"),
        *(ads_world.rows_of(account.ads) if account.ads is not None else ()),
        *(quotes_world.rows_of(account.quotes) if account.quotes is not None else ()),
        *(documents_world.rows_of(account.documents) if account.documents is not None else ()),
        *(matches_world.rows_of(account.matches) if account.matches is not None else ()),
        *(
            embeddings_world.rows_of(account.embeddings)
            if account.embeddings is not None
            else ()
        ),
        ("dead letters", len(account.dead_letters), ""),
    ]
    return rows + [
        ("", int(str(letter["job"])), f"{letter['reason']} · {letter['message']}")
        for letter in account.dead_letters
    ]
