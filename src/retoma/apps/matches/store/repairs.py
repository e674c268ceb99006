"""A match as a person has put it right: stored whole with the state of its task, or not at all (R1)."""

from retoma.apps.matches.schemas import MatchPage
from retoma.apps.matches.store import runs, tasks
from retoma.apps.matches.store.tasks import Stored
from retoma.engine.batch import reason
from retoma.engine.errors import IllegalMove
from retoma.engine.transaction import Transaction
from retoma.words import say


def accept(tx: Transaction, task: int, page: MatchPage, why: str, *, actor: str) -> Stored:
    """Who and why is in the audit. What is stored already stays as it is (R6): that is refused."""
    said = reason(why)
    wanted = tasks.task_of(tx, task)
    if runs.job_seen(tx, wanted.run)["ended_at"] is not None:
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
