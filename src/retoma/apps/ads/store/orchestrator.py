"""Whether the orchestrator is to work: a wish, and the sessions that follow from it."""

from dataclasses import dataclass

from retoma import db
from retoma.apps.ads.store.rows import SESSION, SESSIONS, verb
from retoma.db import seconds_until
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction
from retoma.words import say

BEGIN_SESSION = verb("begin_session")
COUNT_MISSIONS = verb("count_missions")
FREE_WORKERS = verb("free_workers")
GET_WISH = verb("get_wish")
OFFERED_SESSIONS = verb("offered_sessions")
OPEN_WORK = verb("open_work")
READY_WORKERS = verb("ready_workers")
SET_SESSION_JOB = verb("set_session_job")
SET_WISH = verb("set_wish")


@dataclass(frozen=True, slots=True)
class OrchestratorState:
    """Whether the orchestrator is to work, and what is left to do (§6.7)."""

    wish: str
    changed_by: str
    queued_count: int
    running_count: int
    session_count: int


def get_state(tx: db.Transaction) -> OrchestratorState:
    found = tx.one(COUNT_MISSIONS, into=OrchestratorState)
    if found is None:
        raise BadInput(say("the ads application is not installed here"))
    return found


def start(tx: Transaction, *, actor: str) -> bool:
    """ "Iniciar": whether that is new. Said twice it changes nothing."""
    changed = tx.one(SET_WISH, wish="started", actor=actor) is not None
    if changed:
        tx.tell("ads.started", "orchestrator", actor=actor)
        _offer_again(tx, actor=actor)
    open_sessions(tx)
    return changed


def stop(tx: Transaction, *, actor: str) -> bool:
    """ "Parar": what runs is finished, then the sessions end."""
    changed = tx.one(SET_WISH, wish="stopped", actor=actor) is not None
    if changed:
        tx.tell("ads.stopped", "orchestrator", actor=actor)
    offered = tx.all(OFFERED_SESSIONS, into=str)
    if offered:  # what waits stays where it is
        tx.switch_things(SESSIONS, offered, on=False, reason="stopped", actor=actor)
    return changed


def _offer_again(tx: Transaction, *, actor: str) -> None:
    """Sessions that are ready, have not done their share and have not ended since it was stopped."""
    workers = tx.all(READY_WORKERS, into=str, most=tx.knob("ads.session_limit"))
    if workers:
        tx.switch_things(SESSIONS, workers, on=True, reason="ready", actor=actor)


def works(tx: db.Transaction) -> bool:
    """Whether it is to work."""
    return tx.one(GET_WISH, into=str) == "started"


def lacks_sessions(tx: db.Transaction) -> bool:
    """Whether it works, missions wait, and a worker without a session could have them."""
    return _wanted(tx) and bool(tx.all(FREE_WORKERS))


def _wanted(tx: db.Transaction) -> bool:
    return works(tx) and bool(tx.one(OPEN_WORK, into=bool))


def open_sessions(tx: Transaction) -> None:
    """A session for every worker that has none, if the orchestrator works and missions wait."""
    if not _wanted(tx):
        return
    for worker, rests_until, now in tx.all(FREE_WORKERS):
        session = tx.one(BEGIN_SESSION, into=int, worker=worker)
        if session is None:
            continue
        delay = seconds_until(rests_until, now) or 0.0
        job = tx.submit(SESSION, session, key=str(session), delay=delay)
        tx.run(SET_SESSION_JOB, session=session, job=job.id)
