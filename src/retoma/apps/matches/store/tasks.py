"""Tasks: the matches of a run, each stored whole or told of with what it failed by (R4)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from retoma import db
from retoma.apps.matches.model import TaskStatus, Wanted
from retoma.apps.matches.schemas import MatchPage, MatchRef
from retoma.apps.matches.store import games, runs
from retoma.apps.matches.store.rows import SQL, Round
from retoma.db import Call, Json
from retoma.engine import store as engine
from retoma.engine.rules.errors import IllegalMove, NotFound, Transient
from retoma.engine.run.transaction import Transaction
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Task:
    """What a story is told of its match. `there`: where it is stored, by whichever run."""

    id: int
    run: int
    key: str
    url: str
    kickoff: datetime | None
    job: int
    of: Round
    done: int | None
    there: int | None

    @property
    def wanted(self) -> Wanted:
        """What a page must say of itself to be the page of this match."""
        return Wanted(
            season=self.of.season, round=self.of.round, key=self.key, kickoff=self.kickoff
        )


@dataclass(frozen=True, slots=True)
class ScrapeTask:
    """A row of the document's `scrape_tasks`: a match of a round, and what its last try came to."""

    id: int
    job_id: int
    league: str
    season: int
    round: int
    match_key: str
    home: str
    away: str
    url: str
    kickoff: datetime | None
    status: TaskStatus
    attempts: int
    error_code: str | None
    error: Json
    snapshot: str | None
    not_yet: str | None
    look_again_at: datetime | None
    partida_id: int | None
    job: int | None
    created_at: datetime | None
    dropped: str | None

    @property
    def of(self) -> Round:
        return Round(self.league, self.season, self.round)

    @property
    def retriable(self) -> bool:
        """It ended without its match."""
        closed = self.status in (TaskStatus.FAILED, TaskStatus.SKIPPED)
        return self.partida_id is None and self.dropped is None and closed


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the match of a task is; `already`: it was there before."""

    partida: int
    already: bool = False


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a story has read of its match, to be stored."""

    task: Task
    page: MatchPage
    actor: str


@dataclass(frozen=True, slots=True)
class DeadTask:
    """A task that failed, and the page that it failed by."""

    id: int
    of: Round
    key: str
    url: str
    snapshot: str
    job: int
    error: Json
    kickoff: datetime | None = None

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            season=self.of.season, round=self.of.round, key=self.key, kickoff=self.kickoff
        )


@dataclass(frozen=True, slots=True)
class DeadRound:
    """A run whose round could not be read, and the page that it failed by."""

    run: int
    of: Round
    snapshot: str
    job: int
    error: Json


def task_of(tx: db.Transaction, task: int) -> Task:
    found = tasks_of(tx, [task])
    if task not in found:
        raise unknown(task)
    return found[task]


def tasks_of(tx: db.Transaction, tasks: Sequence[int]) -> dict[int, Task]:
    """Those of them that there are."""
    rows = tx.all(SQL.get_tasks, into=Task, tasks=json.dumps([*tasks]))
    return {task.id: task for task in rows}


# — stored —


def keep(tx: Transaction, made: Sequence[Keeping]) -> list[Stored]:
    """Match, events, statistics and the state of each task, in this one transaction (R1).

    Said again it changes nothing, and answers the same. What is another match than a task's is refused."""
    for each in made:
        _check_same(each.task, each.page)
    over = [games.Over(each.page, each.task.url, each.actor) for each in made]
    numbers, rest = games.add(tx, over)
    ends = [(each.task, Stored(*told)) for each, told in zip(made, numbers, strict=True)]
    return _ended(tx, ends, rest)


def skip(tx: Transaction, task: int) -> Stored:
    """Its match is stored already, whoever did it."""
    wanted = task_of(tx, task)
    if wanted.there is None:  # somebody has removed it by hand since
        raise Transient(say("the match was there a moment ago"))
    [stored] = _ended(tx, [(wanted, Stored(wanted.there, already=True))])
    return stored


def _ended(
    tx: Transaction, ends: Sequence[tuple[Task, Stored]], first: Sequence[Call] = ()
) -> list[Stored]:
    rows = [
        {"task": task.id, "partida": stored.partida, "already": int(stored.already)}
        for task, stored in ends
    ]
    calls = [*first, Call(SQL.end_tasks, {"rows": json.dumps(rows)})]
    *_, ended = runs.complete(tx, {task.run for task, _ in ends}, calls)
    told = {task: Stored(partida, already=bool(already)) for task, partida, already in ended}
    return [told[task.id] for task, _ in ends]


def date(tx: Transaction, task: int, kickoff: datetime | None) -> None:
    """Its day, as its own page says it now: it may have been put off since its round's page was read."""
    tx.run(SQL.date_task, task=task, kickoff=kickoff)


def note(
    tx: Transaction, task: int, not_yet: str | None, error: str | None, snapshot: str | None
) -> None:
    """What the last try came to."""
    tx.run(SQL.note_task, task=task, not_yet=not_yet, error=error, snapshot=snapshot)


# — read again —


def dead_tasks(
    tx: db.Transaction,
    *,
    after: int,
    n: int,
    code: str | None = None,
    league: str | None = None,
    run: int | None = None,
    task: int | None = None,
) -> list[DeadTask]:
    """Those of current runs whose page was kept."""
    how = {"after": after, "code": code, "league": league, "run": run, "task": task, "n": n}
    return tx.all(SQL.dead_tasks, into=DeadTask, **how)


def dead_rounds(
    tx: db.Transaction,
    *,
    after: int,
    n: int,
    code: str | None = None,
    league: str | None = None,
    run: int | None = None,
) -> list[DeadRound]:
    how = {"after": after, "code": code, "league": league, "run": run, "n": n}
    return tx.all(SQL.dead_rounds, into=DeadRound, **how)


def count_dead(
    tx: db.Transaction,
    *,
    code: str | None,
    league: str | None,
    run: int | None,
    task: int | None,
) -> int:
    """How many of both there are."""
    [n] = tx.all(SQL.count_dead, into=int, code=code, league=league, run=run, task=task)
    return n


def promote(tx: Transaction, task: int, page: MatchPage, why: str, *, actor: str) -> Stored:
    """A dead task's match is stored after all; its dead letter is put away with the reason.

    IllegalMove where somebody has moved it meanwhile: then nothing is stored.
    """
    wanted = task_of(tx, task)
    _check_same(wanted, page)
    if wanted.done is not None:
        return Stored(wanted.done, already=True)
    engine.skip_job(tx, wanted.job, why, actor=actor)
    [stored] = keep(tx, [Keeping(wanted, page, actor)])
    told = {"match": wanted.key, "why": why, "partida": stored.partida}
    tx.tell("matches.promoted", f"task {task}", told, actor=actor)
    return stored


def promote_round(
    tx: Transaction, dead: DeadRound, found: list[MatchRef], why: str, *, actor: str
) -> int:
    """A round's page is read after all; its matches are looked for from now on."""
    engine.skip_job(tx, dead.job, why, actor=actor)
    new = runs.discovered(tx, dead.run, found)
    tx.tell("matches.promoted", f"scrape {dead.run}", {"why": why, "new": new}, actor=actor)
    return new


def _check_same(task: Task, page: MatchPage) -> None:
    of = Round(page.league, page.season, page.round)
    if (of, page.key) != (task.of, task.key):
        raise IllegalMove(
            say(
                "task {task} is {wanted} of {round}; the page is {found} of {other}",
                task=task.id,
                wanted=task.key,
                round=task.of.said,
                found=page.key,
                other=of.said,
            )
        )


# — seen —


def task_seen(tx: db.Transaction, task: int) -> ScrapeTask:
    """One task, by the document's names."""
    found = tx.one(SQL.show_task, into=ScrapeTask, task=task)
    if found is None:
        raise unknown(task)
    return found


def list_tasks(
    tx: db.Transaction, run: int, *, after: int, n: int, status: TaskStatus | None = None
) -> list[ScrapeTask]:
    told = None if status is None else str(status)
    return tx.all(SQL.list_tasks, into=ScrapeTask, run=run, after=after, status=told, n=n)


def unknown(task: int) -> NotFound:
    return NotFound(say("there is no task {task}", task=task))
