"""Whether the orchestrator is to work: a wish, and the sessions that follow from it."""

from dataclasses import dataclass

from retoma import db
from retoma.apps.ads.store.rows import SESSION, SESSIONS, SQL
from retoma.db import seconds_until
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.words import say


@dataclass(frozen=True, slots=True)
class OrchestratorState:
    """Whether the orchestrator is to work, and what is left to do (§6.7)."""

    wish: str
    changed_by: str
    queued_count: int
    running_count: int
    session_count: int


def get_state(tx: db.Transaction) -> OrchestratorState:
    found = tx.one(SQL.count_missions, into=OrchestratorState)
    if found is None:
        raise BadInput(say("the ads application is not installed here"))
    return found


def start(tx: Transaction, *, actor: str) -> bool:
    """ "Iniciar": whether that is new. Said twice it changes nothing."""
    changed = tx.one(SQL.set_wish, wish="started", actor=actor) is not None
    if changed:
        tx.tell("ads.started", "orchestrator", actor=actor)
        _offer_again(tx, actor=actor)
    open_sessions(tx)
    return changed


def stop(tx: Transaction, *, actor: str) -> bool:
    """ "Parar": what runs is finished, then the sessions end."""
    changed = tx.one(SQL.set_wish, wish="stopped", actor=actor) is not None
    if changed:
        tx.tell("ads.stopped", "orchestrator", actor=actor)
    offered = tx.all(SQL.offered_sessions, into=str)
    if offered:  # what waits stays where it is
        tx.switch_things(SESSIONS, offered, on=False, reason="stopped", actor=actor)
    return changed


def _offer_again(tx: Transaction, *, actor: str) -> None:
    """Sessions that are ready, have not done their share and have not ended since it was stopped."""
    workers = tx.all(SQL.ready_workers, into=str, most=tx.knob("ads.session_limit"))
    if workers:
        tx.switch_things(SESSIONS, workers, on=True, reason="ready", actor=actor)


def works(tx: db.Transaction) -> bool:
    """Whether it is to work."""
    return tx.one(SQL.get_wish, into=str) == "started"


def lacks_sessions(tx: db.Transaction) -> bool:
    """Whether it works, missions wait, and a worker without a session could have them."""
    return _wanted(tx) and bool(tx.all(SQL.free_workers))


def _wanted(tx: db.Transaction) -> bool:
    return works(tx) and bool(tx.one(SQL.open_work, into=bool))


def open_sessions(tx: Transaction) -> None:
    """A session for every worker that has none, if the orchestrator works and missions wait."""
    if not _wanted(tx):
        return
    for worker, rests_until, now in tx.all(SQL.free_workers):
        session = tx.one(SQL.begin_session, into=int, worker=worker)
        if session is None:
            continue
        delay = seconds_until(rests_until, now) or 0.0
        job = tx.submit(SESSION, session, key=str(session), delay=delay)
        tx.run(SQL.set_session_job, session=session, job=job.id)
