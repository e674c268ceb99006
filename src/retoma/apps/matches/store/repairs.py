"""What a person does about a round: a match put right, deleted, asked for again; one that never was; a size.

Each is one transaction with its line in the audit: who, why, and what it was before.
"""

from typing import Final

from retoma.apps.matches.model import REFRESH
from retoma.apps.matches.schemas import MatchPage
from retoma.apps.matches.store import games, runs, tasks
from retoma.apps.matches.store.games import Refresh
from retoma.apps.matches.store.rows import SQL, Round
from retoma.apps.matches.store.tasks import ScrapeTask, Stored, Task
from retoma.codec import encode
from retoma.engine import store as engine
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.reasons import check_reason
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.words import say

MOST_TASKS: Final = 1_000  # of one scrape: more than a round has matches


def accept(tx: Transaction, task: int, page: MatchPage, why: str, *, actor: str) -> Stored:
    """A match that failed, as a person says it is. What is stored already is corrected instead."""
    said = check_reason(why)
    wanted = tasks.task_of(tx, task)
    if runs.job_seen(tx, wanted.run).ended_at is not None:
        raise IllegalMove(
            say(
                "scrape {run} is over, and a later one has taken its place: repair that one",
                run=wanted.run,
            )
        )
    stored = tasks.promote(tx, task, page, said, actor=actor)
    if stored.already:
        raise IllegalMove(
            say(
                "the match of task {task} is stored already, as match {partida};"
                " nothing was changed",
                task=task,
                partida=stored.partida,
            )
        )
    return stored


# — what is stored —


def correct(
    tx: Transaction, partida: int, revision: int, page: MatchPage, why: str, *, actor: str
) -> list[str]:
    """A stored match as a person says it is, whole: the names of what is told otherwise now."""
    said = check_reason(why)
    before = games.match_seen(tx, partida)
    changed = games.replace(tx, partida, revision, page, actor)
    if changed:
        told = {"why": said, "changed": changed, "before": games.plain(before)}
        tx.tell("matches.corrected", f"match {partida}", told, actor=actor)
    return changed


def delete(tx: Transaction, partida: int, revision: int, why: str, *, actor: str) -> list[int]:
    """A match is stored no longer: its tasks have failed, and no round with them is complete. Their scrapes."""
    said = check_reason(why)
    before = games.remove(tx, partida, revision)
    error = encode({"code": "DELETED", "message": said, "by": actor})
    touched = sorted({*tx.all(SQL.unlink_tasks, into=int, partida=partida, error=error)})
    for run in touched:
        tx.run(SQL.reopen_run, run=run)
    told = {"why": said, "scrapes": touched, "before": games.plain(before)}
    tx.tell("matches.deleted", f"match {partida}", told, actor=actor)
    return touched


def refresh(tx: Transaction, partida: int, why: str, *, actor: str) -> int:
    """Its site is asked for a stored match again; it stays as it is until that was read: the job."""
    said = check_reason(why)
    games.match_seen(tx, partida)
    job = tx.submit(REFRESH, Refresh(partida, actor, said), actor=actor)
    tx.tell("matches.refresh", f"match {partida}", {"why": said, "job": job.id}, actor=actor)
    return int(job.id)


# — what was found —


def drop(tx: Transaction, task: int, why: str, *, actor: str) -> ScrapeTask:
    """A match that never was: it is expected no longer, in this scrape and in all that follow."""
    said = check_reason(why)
    wanted = tasks.task_of(tx, task)
    if wanted.done is not None:
        raise IllegalMove(
            say(
                "the match of task {task} is stored, as match {partida}: delete it first",
                task=task,
                partida=wanted.done,
            )
        )
    _hold(tx, wanted.of)
    which = {**wanted.of.parameters(), "match_key": wanted.key}
    if (
        tx.one(SQL.drop_match, **which, why=said, actor=actor) is not None
    ):  # else dropped before
        _leave(tx, wanted, said, actor)
        _resize(tx, wanted.of, said, actor)
        tx.tell("matches.dropped", f"task {task}", {**which, "why": said}, actor=actor)
    return tasks.task_seen(tx, task)


def restore(tx: Transaction, task: int, *, actor: str) -> ScrapeTask:
    """A match that was dropped is one of its round after all, and is looked for again."""
    wanted = tasks.task_of(tx, task)
    which = {**wanted.of.parameters(), "match_key": wanted.key}
    if tx.one(SQL.restore_match, **which) is None:
        raise IllegalMove(say("the match of task {task} was not dropped", task=task))
    _resize(tx, wanted.of, "restaurada", actor)
    runs.retry_missing(tx, wanted.of, actor=actor)
    tx.tell("matches.restored", f"task {task}", which, actor=actor)
    return tasks.task_seen(tx, task)


def confirm(tx: Transaction, of: Round, matches: int, why: str, *, actor: str) -> None:
    """How many matches a round has, whatever its league says; never fewer than were found and not dropped."""
    said = check_reason(why)
    _hold(tx, of)
    tx.run(SQL.confirm_size, **of.parameters(), matches=matches, why=said, actor=actor)
    _resize(tx, of, said, actor)
    told = {**of.parameters(), "matches": matches, "why": said}
    tx.tell("matches.confirmed", f"round {of}", told, actor=actor)


def hurry(tx: Transaction, task: int, *, actor: str) -> ScrapeTask:
    """What waits for a time is looked at now."""
    wanted = tasks.task_of(tx, task)
    told = tasks.task_seen(tx, task)
    if told.look_again_at is None or told.dropped is not None:
        raise IllegalMove(
            say(
                "task {task} is {status}: only what waits for a time can be looked at now",
                task=task,
                status=told.status,
            )
        )
    _hold(tx, wanted.of)
    _look_now(tx, wanted.job, actor)
    tx.tell("matches.hurried", f"task {task}", {"match": wanted.key}, actor=actor)
    return tasks.task_seen(tx, task)


def hurry_round(tx: Transaction, run: int, *, actor: str) -> list[int]:
    """All of a scrape that waits for a time, its discovery too: their jobs."""
    tx.run(SQL.lock_run, run=run)
    told = runs.job_seen(tx, run)
    waiting = [
        each.job
        for each in tasks.list_tasks(tx, run, after=0, n=MOST_TASKS)
        if each.job is not None and each.look_again_at is not None and each.dropped is None
    ]
    if told.discovery is not None and told.discovery_state == State.WAITING:
        waiting.append(told.discovery)
    for job in waiting:
        _look_now(tx, job, actor)
    tx.tell("matches.hurried", f"scrape {run}", {"jobs": waiting}, actor=actor)
    return waiting


def _look_now(tx: Transaction, job: int, actor: str) -> None:
    """Its waiting ends, and a new generation of it begins at once: both are in its history."""
    engine.skip_job(tx, job, "olhada agora", actor=actor)
    engine.again(tx, job, actor=actor)


def _leave(tx: Transaction, task: Task, why: str, actor: str) -> None:
    """Nobody looks for the match of a task any more."""
    state = engine.get_job(tx, task.job).state
    if state is State.RUNNING:
        raise IllegalMove(
            say("task {task} is being read now: drop it when that has ended", task=task.id)
        )
    if state in (State.WAITING, State.PARKED, State.DEAD):
        engine.skip_job(tx, task.job, why, actor=actor)


def _hold(tx: Transaction, of: Round) -> int | None:
    """The current scrape of a round: whoever else changes it waits, and comes to its jobs after us."""
    run = runs.current_run(tx, of)
    if run is not None:
        tx.run(SQL.lock_run, run=run)
    return run


def _resize(tx: Transaction, of: Round, why: str, actor: str) -> None:
    """What is expected of the current scrape of a round now; it may be complete by that."""
    run = _hold(tx, of)
    if run is None:
        return
    tx.run(SQL.resize_run, run=run, size=runs.size_of(tx, of) or 0)
    told = runs.job_seen(tx, run)
    short = told.discovery_state == State.DEAD and told.error_code == "ROUND_SHORT"
    job = told.discovery
    if short and job is not None and not told.unlisted:
        engine.skip_job(tx, job, why, actor=actor)
    runs.complete(tx, {run}, [])
