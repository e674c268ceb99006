"""Sessions, as their stories move them."""

from dataclasses import dataclass
from typing import Final

from retoma import db
from retoma.apps.ads.model import AWAY, ERRORS, NO_PROXY, Event, WorkerStatus
from retoma.apps.ads.store.failures import in_portuguese
from retoma.apps.ads.store.orchestrator import open_sessions, works
from retoma.apps.ads.store.rows import PROXIES, SESSION, SESSIONS, SQL, milliseconds, tell
from retoma.db import seconds_between
from retoma.engine.rules.errors import NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import pool
from retoma.words import say

REST: Final = 15.0  # seconds a worker rests after a session that failed, doubled up to
LONGEST_REST: Final = 900.0
PROXIES_TRIED: Final = 3  # one after the other, before it is the worker that rests
GONE: Final = "declared_gone"  # why a session has ended that nobody saw end


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """Where a session stands."""

    worker: str
    proxy: str | None
    proxy_name: str | None
    lost: str | None
    ended: bool
    served: int
    ready: bool
    age: float  # seconds since it was asked for
    silent: float  # seconds since its worker last answered
    status: WorkerStatus
    wanted: bool  # its worker and its proxy are active, and the orchestrator works
    offered: bool  # missions may have it
    held: bool  # a mission has it
    work: bool  # missions wait, or are under way
    given_up: bool  # its worker has been silent for too long, or a person has declared it lost
    next_ready: bool  # a later session of its worker was ready
    next_comes: (
        bool  # its worker is active, and the orchestrator works: a later session will come
    )


def look_at_session(tx: db.Transaction, session: int) -> SessionSeen:
    row = tx.one(SQL.look_at_session, session=session, away=AWAY, gone=GONE)
    if row is None:
        raise NotFound(say("there is no session {session}", session=session))
    worker, proxy, name, lost, ended, served, ready, opened, silent, status, *rest = row
    active, wish, offered, held, work, now, given_up, next_ready, worker_active = rest
    return SessionSeen(
        worker=worker,
        proxy=proxy,
        proxy_name=name,
        lost=lost,
        ended=bool(ended),
        served=served,
        ready=bool(ready),
        age=seconds_between(opened, now) or 0.0,
        silent=seconds_between(silent, now) or 0.0,
        status=WorkerStatus(status),
        wanted=bool(active) and wish == "started",
        offered=bool(offered),
        held=bool(held),
        work=bool(work),
        given_up=bool(given_up),
        next_ready=bool(next_ready),
        next_comes=bool(worker_active) and wish == "started",
    )


def last_proxy(tx: db.Transaction, worker: str, session: int) -> str | None:
    """By which the worker's session before this one went out: the next goes by another."""
    return tx.one(SQL.last_proxy, into=str, worker=worker, session=session)


def wait_for_proxy(tx: Transaction, session: int) -> None:
    """ERROR501: told once where the wait begins, and once where it ends (§2.2.2)."""
    worker = tx.one(SQL.wait_for_proxy, into=str, session=session)
    if worker is None:
        return
    told = {"worker_id": worker, "error_code": NO_PROXY, "proxy_name": None}
    tell(tx, Event.SESSION_FAILED, told, session=session)
    tx.tell("ads.no_proxy", worker, {"error_code": NO_PROXY}, actor=SESSION)


def open_session(tx: Transaction, session: int, worker: str, proxy: str) -> None:
    """It has a proxy, and is asked for next (§2.2.3)."""
    _, name, *_ = tx.one(SQL.get_proxy, proxy=proxy) or (proxy, proxy)
    before = tx.one(SQL.last_proxy, worker=worker, session=session)
    waited = tx.one(SQL.open_session, session=session, proxy=proxy, name=name)
    if waited is not None and waited[0] is not None:
        tx.tell("ads.proxy_found", worker, {"waited_ms": milliseconds(*waited)}, actor=SESSION)
    tx.run(SQL.move_worker, worker=worker, status=str(WorkerStatus.INITIALIZING))
    old, old_name, reason = before or (proxy, None, None)
    if old != proxy:
        told = {"old_proxy": old_name, "new_proxy": name, "proxy_name": old_name}
        tell(tx, Event.PROXY_ROTATED, {**told, "reason": reason}, session=session)
    told = {"worker_id": worker, "proxy_id": proxy, "proxy_name": name}
    tell(tx, Event.SESSION_STARTED, told, session=session)


def ready_session(tx: Transaction, session: int) -> None:
    """Missions may have it (§2.2.6)."""
    row = tx.one(SQL.ready_session, session=session)
    if row is None:
        return
    opened, ready, worker, proxy = row
    tx.run(SQL.move_worker, worker=worker, status=str(WorkerStatus.READY))
    told = {"worker_id": worker, "duration_ms": milliseconds(opened, ready)}
    tell(tx, Event.SESSION_READY, told, session=session)
    value = {"session": session, "worker": worker, "proxy": proxy}
    tx.put_things(SESSIONS, {worker: value}, actor=SESSION)
    on = works(tx)
    reason = "ready" if on else "stopped"
    tx.switch_things(SESSIONS, [worker], on=on, reason=reason, actor=SESSION)


def lose_session(
    tx: Transaction,
    session: int,
    code: str,
    message: str | None = None,
    rest: float | None = None,
) -> None:
    """It is of no use any more; who has it finds that out, and it is ended.

    `rest`: seconds for which its worker has asked to be left alone."""
    row = tx.one(SQL.lose_session, session=session, code=code, rest=rest)
    if row is None:
        return
    worker, proxy = row
    told = {"worker_id": worker, "error_code": code, "proxy_name": proxy}
    if message:
        told["error_message"] = in_portuguese(message)[:500]
    tell(tx, Event.SESSION_FAILED, told, session=session)
    tx.run(SQL.move_worker, worker=worker, status=str(WorkerStatus.ERROR))
    withdraw(tx, worker, code)
    if code == AWAY:
        tx.run(SQL.leave_scrapes, session=session)


def withdraw(tx: Transaction, worker: str, reason: str) -> None:
    """No mission gets it from now on."""
    known = tx.one(SQL.knows_session, worker=worker)
    if known is not None:
        tx.switch_things(SESSIONS, [worker], on=False, reason=reason, actor=SESSION)


def _keep_to_setting(tx: Transaction) -> None:
    """How many failures in a row switch a proxy off, from the next one on."""
    rules = pool.PoolRules(pick="random", off_after=tx.knob("ads.max_proxy_failures"))
    pool.put_pool(tx, PROXIES, rules, actor=SESSION)


def end_session(tx: Transaction, session: int, reason: str) -> None:
    """It is known to be over: the worker rests or is free, the proxy may go to another."""
    row = tx.one(SQL.end_session, session=session, reason=reason)
    if row is None:
        return
    worker, proxy, lost, asked_rest = row
    if reason != "unwanted":
        told = {"worker_id": worker, "reason": reason}
        tell(tx, Event.SESSION_TERMINATED, told, session=session)
    if lost is not None:
        _keep_to_setting(tx)
    failures = tx.one(SQL.worker_failures, into=int, worker=worker)
    before = failures or 0
    rest = asked_rest or min(REST * 2 ** min(before, 10), LONGEST_REST)
    told = {"counted": int(lost is not None), "rest": None if lost is None else rest}
    if asked_rest is not None:
        told["counted"] = 0  # it has only asked for time
    elif lost in ERRORS and ERRORS[lost].blames_proxy and before < PROXIES_TRIED:
        # Another proxy may do at once: one that is dead must not lay up every worker.
        free = tx.one(SQL.other_proxy, proxy=proxy)
        told["rest"] = None if free is not None else rest
    tx.run(SQL.rest_worker, worker=worker, **told)
    open_sessions(tx)
