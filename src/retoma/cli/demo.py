"""`retoma demo`: a batch at work, a runner killed in the middle, and an honest account of it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from random import Random

from rich.console import Console
from rich.table import Table

from retoma.cli import world
from retoma.cli.board import Board, board_for
from retoma.cli.demo_jobs import Ran, app, orders, read_ledger, report
from retoma.cli.desk import print_json
from retoma.cli.exits import Exit, Stop
from retoma.cli.processes import RunnerProcess, stop_all
from retoma.cli.world import World
from retoma.db import Transaction
from retoma.engine import insights
from retoma.engine.batch import Batch, Progress
from retoma.engine.events import EventType
from retoma.engine.insights import Event, StepSeen
from retoma.engine.job import Job
from retoma.engine.ports import Clock
from retoma.engine.states import State

LOOK = 0.05  # seconds between two looks at the batch
PATIENCE = 60.0  # seconds: by then something is wrong
KILL_AT = 1 / 3  # of the jobs ended
VICTIM = "runner 2"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a demo is."""

    jobs: int
    pace: float  # seconds of a step, about
    slots: int  # of each runner


NORMAL = Size(jobs=300, pace=0.2, slots=14)
FAST = Size(jobs=120, pace=0.04, slots=14)


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


@dataclass(frozen=True, slots=True)
class Takeover:
    """What became of the jobs of the runner that was killed."""

    jobs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What happened, counted; `problems` is what should not have."""

    submitted: int
    done: int
    retried: int
    taken_over: int
    takeover_seconds: float
    dead_letters: list[dict[str, object]]
    refused_writes: int
    steps_run: int
    steps_committed: int
    steps_run_again: int  # whose runner died before it could commit them, or that failed
    seconds: float = 0.0
    events: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def run(*, fast: bool, as_json: bool, seed: int) -> None:
    size = FAST if fast else NORMAL
    with world.opened("demo", slots=size.slots, anew=True) as place:
        account = asyncio.run(_demo(place, size, seed, quiet=as_json))
    if as_json:
        print_json({"ok": not account.problems, **asdict(account)})
    else:
        _print(account, place)
    if account.problems:
        raise Stop(Exit.FAILED, f"the demo broke a promise: {'; '.join(account.problems)}")


async def _demo(place: World, size: Size, seed: int, *, quiet: bool) -> Account:
    clock, runners = Clock(), list[RunnerProcess]()
    chance = Random(seed)  # noqa: S311 — a world, not a secret
    app.url = place.url
    board = board_for(clock, quiet=quiet)
    try:
        runners += [await place.start("runner 1"), await place.start(VICTIM)]
        async with app:
            with board:
                board.say("two runners started, each a process of its own")
                batch = await app.submit_many(report, orders(chance, size.jobs, size.pace))
                board.say(f"{batch.submitted} jobs submitted in one transaction")
                takeover = await _watched(place, batch, runners, board, clock)
                left_badly = await stop_all(runners, world.GRACE * 2)
                board.say("every job has ended; the runners were told to leave")
            account = await _accounted(place, batch, takeover, board)
    finally:
        for runner in runners:
            runner.kill()
            await runner.ended()
    account.problems.extend(f"{name} did not leave in order" for name in left_badly)
    return account


async def _watched(
    place: World, batch: Batch, runners: list[RunnerProcess], board: Board, clock: Clock
) -> Takeover:
    """Until every job has ended; on the way one runner is killed and another takes over."""
    killing = asyncio.ensure_future(_kill_in_the_middle(place, batch, runners, board, clock))
    try:
        async with asyncio.timeout(PATIENCE):
            progress = await batch.progress()
            while not progress.finished:
                if killing.done():
                    killing.result()
                board.look(progress)
                await clock.sleep(LOOK)
                progress = await batch.progress()
            board.look(progress)
            return await killing
    except TimeoutError:
        progress = await batch.progress()
        raise Stop(
            Exit.FAILED,
            f"{progress.total - progress.ended} jobs had not ended after {PATIENCE:g} s; the logs"
            f" are in {place.folder}",
        ) from None
    finally:
        killing.cancel()


async def _kill_in_the_middle(
    place: World, batch: Batch, runners: list[RunnerProcess], board: Board, clock: Clock
) -> Takeover:
    progress = Progress({})
    while not progress.ended:
        await clock.sleep(LOOK)
        progress = await batch.progress()
    board.say("the first job is done")
    victim = next(runner for runner in runners if runner.name == VICTIM)
    while not (progress.share >= KILL_AT and await _held_by(victim, batch)):
        if progress.finished:
            raise Stop(Exit.FAILED, f"all was done before {VICTIM} could be killed at work")
        await clock.sleep(LOOK)
        progress = await batch.progress()
    victim.kill()
    await victim.ended()
    killed = clock.now()
    orphans = await _held_by(victim, batch)
    board.say(f"{VICTIM} killed with kill -9, {len(orphans)} jobs in its hands")
    runners.append(await place.start("runner 3"))
    while await _still_orphans(orphans):
        await clock.sleep(LOOK)
    took = clock.now() - killed
    board.say(f"{len(orphans)} jobs taken over in {took:.1f} s; runner 3 started")
    return Takeover(len(orphans), round(took, 2))


async def _held_by(runner: RunnerProcess, batch: Batch) -> list[Job]:
    boots = {each.boot for each in await app.runners() if each.pid == runner.pid}
    running = await app.jobs(state=State.RUNNING, batch=batch.id, limit=insights.PAGE)
    return [job for job in running if job.runner in boots]


async def _still_orphans(orphans: Sequence[Job]) -> bool:
    """Whether one of them is neither running anew nor ended."""
    for job in orphans:
        now = await app.get(job.id)
        if now.epoch == job.epoch and not now.ended:
            return True
    return False


# — the account —


async def _accounted(place: World, batch: Batch, takeover: Takeover, board: Board) -> Account:
    database = await app.database()
    told = await database.read(lambda tx: _everything(tx, batch.id))
    ledger = read_ledger(place.ledger)
    return Account(
        submitted=batch.submitted,
        done=sum(each.job.state is State.DONE for each in told),
        retried=sum(each.count(EventType.FAILED) for each in told),
        taken_over=sum(each.count(EventType.LOST) > 0 for each in told),
        takeover_seconds=takeover.seconds,
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
        seconds=round(board.seconds, 1),
        events=board.events,
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


def _print(account: Account, place: World) -> None:
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
            " ran twice"
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
        ("dead letters", len(account.dead_letters), ""),
    ]
    return rows + [
        ("", int(str(letter["job"])), f"{letter['reason']} · {letter['message']}")
        for letter in account.dead_letters
    ]
