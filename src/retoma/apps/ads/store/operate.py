"""Workers, proxies and writers, as people operate them: switched, changed, deleted, given up.

Deactivated is not stopped: who has a thing finishes with it, and nobody gets it after that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.ads.model import AWAY, WorkerStatus
from retoma.apps.ads.store.orchestrator import open_sessions
from retoma.apps.ads.store.rows import PROXIES, SQL, Sort, numbers
from retoma.apps.ads.store.sessions import (
    GONE,
    end_session,
    lose_session,
    withdraw,
)
from retoma.apps.ads.store.things import Secrets
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import pool
from retoma.secret import Secret
from retoma.words import say

OFF_BY: Final = "deactivated by "  # with which the reason begins why a person's proxy is off
OPEN: Final = ("waiting", "running", "parked")  # states of a job that is still somebody's

SWITCH = {Sort.WORKERS: SQL.switch_worker, Sort.WRITERS: SQL.switch_writer}
CHANGE = {
    Sort.WORKERS: SQL.change_worker,
    Sort.PROXIES: SQL.change_proxy,
    Sort.WRITERS: SQL.change_writer,
}
DELETE = {
    Sort.WORKERS: SQL.delete_worker,
    Sort.PROXIES: SQL.delete_proxy,
    Sort.WRITERS: SQL.delete_writer,
}


@dataclass(frozen=True, slots=True)
class ThingSeen:
    """What decides whether something may be done to a worker, a proxy or a writer."""

    name: str
    active: bool
    storage_domain: str | None
    used: bool


def look_at_thing(tx: Transaction, sort: Sort, id_: str) -> ThingSeen:
    found = tx.one(SQL.look_at_thing, into=ThingSeen, sort=sort, id=id_)
    if found is None:
        raise NotFound(say("there is no {id}; nothing was changed", id=id_))
    return found


# — switched —


def activate(tx: Transaction, sort: Sort, ids: Sequence[str], *, actor: str) -> None:
    """All of them or none. A proxy begins anew, without failures."""
    for id_ in ids:
        seen = look_at_thing(tx, sort, id_)
        if sort is Sort.WORKERS and seen.storage_domain is None:
            raise BadInput(
                say(
                    "{id} has no storage_domain: nobody could fetch what it finds; nothing was"
                    " changed",
                    id=id_,
                )
            )
    if sort is Sort.PROXIES:
        tx.switch_things(PROXIES, ids, on=True, reason=f"activated by {actor}", actor=actor)
        return
    for id_ in ids:
        if tx.one(SWITCH[sort], id=id_, active=True) is not None:
            tx.tell(f"ads.{sort.one}_activated", id_, actor=actor)
    open_sessions(tx)


def deactivate(tx: Transaction, sort: Sort, ids: Sequence[str], *, actor: str) -> None:
    """All of them or none. What runs is finished; a session goes to no further mission, and ends."""
    for id_ in ids:
        look_at_thing(tx, sort, id_)
    if sort is Sort.PROXIES:
        tx.switch_things(PROXIES, ids, on=False, reason=f"{OFF_BY}{actor}", actor=actor)
        _withdraw_sessions(tx, ids)
        return
    for id_ in ids:
        if tx.one(SWITCH[sort], id=id_, active=False) is None:
            continue
        tx.tell(f"ads.{sort.one}_deactivated", id_, actor=actor)
        if sort is Sort.WORKERS:
            withdraw(tx, id_, "deactivated")


def _withdraw_sessions(tx: Transaction, proxies: Sequence[str]) -> None:
    for proxy in proxies:
        worker = tx.one(SQL.session_by_proxy, into=str, proxy=proxy)
        if worker is not None:
            withdraw(tx, worker, "proxy deactivated")


# — deleted —


def delete(tx: Transaction, sort: Sort, ids: Sequence[str], secrets: Secrets) -> None:
    """Only what nobody uses, all of them or none; the rows stay for what was told of them."""
    for id_ in ids:
        seen = look_at_thing(tx, sort, id_)
        if sort is Sort.PROXIES:
            tx.switch_things(PROXIES, [id_], on=False, reason="deleted", actor=secrets.actor)
        if tx.one(DELETE[sort], id=id_) is None:
            raise IllegalMove(
                say(
                    "{id} is in use: deactivate it, and delete it when it has finished;"
                    " nothing was changed",
                    id=id_,
                )
            )
        secrets.remove(tx, f"ads_{sort}", sort.secret, id_)
        tx.tell(f"ads.{sort.one}_deleted", id_, {"name": seen.name}, actor=secrets.actor)


# — changed —


def change_worker(tx: Transaction, secrets: Secrets, id_: str, told: Mapping[str, Any]) -> None:
    """`told`: what is to be other than it is."""
    domain = "storage_domain" in told
    row = tx.one(
        CHANGE[Sort.WORKERS],
        id=id_,
        name=told.get("name"),
        url=told.get("url"),
        storage_domain=told.get("storage_domain"),
        domain_told=int(domain),
    )
    if row is None:
        seen = look_at_thing(tx, Sort.WORKERS, id_)
        if domain and told["storage_domain"] is None and seen.active:
            raise BadInput(
                say("{id} is active: it keeps a storage_domain; nothing was changed", id=id_)
            )
        raise _in_use(id_)
    _changed(tx, secrets, Sort.WORKERS, id_, told)


def change_proxy(tx: Transaction, secrets: Secrets, id_: str, told: Mapping[str, Any]) -> None:
    """`told`: what is to be other than it is. Without a user name there is no password."""
    numbers(tx, "PRX", 0)  # one at a time: two of one name would be refused by the database
    row = tx.one(
        CHANGE[Sort.PROXIES],
        id=id_,
        name=told.get("name"),
        host=told.get("host"),
        port=told.get("port"),
        port_told=int("port" in told),
        username=told.get("username"),
        username_told=int("username" in told),
        vendor=told.get("vendor"),
    )
    if row is None:
        look_at_thing(tx, Sort.PROXIES, id_)
        if tx.one(SQL.other_called, name=told.get("name"), id=id_) is not None:
            raise IllegalMove(say("there is already a proxy called {name}", name=told["name"]))
        raise _in_use(id_)
    if "username" in told and told["username"] is None:
        secrets.remove(tx, "ads_proxies", Sort.PROXIES.secret, id_)
    if told.get("vendor") is not None:
        things = {id_: id_}
        tx.put_things(PROXIES, things, vendor=told["vendor"], actor=secrets.actor)
    _changed(tx, secrets, Sort.PROXIES, id_, told)


def change_writer(tx: Transaction, secrets: Secrets, id_: str, told: Mapping[str, Any]) -> None:
    """`told`: what is to be other than it is."""
    asked = {"name": told.get("name"), "url": told.get("url")}
    if tx.one(CHANGE[Sort.WRITERS], id=id_, **asked) is None:
        look_at_thing(tx, Sort.WRITERS, id_)
        raise _in_use(id_)
    _changed(tx, secrets, Sort.WRITERS, id_, told)


Change = Callable[[Transaction, Secrets, str, Mapping[str, Any]], None]
CHANGES: Final[Mapping[Sort, Change]] = {
    Sort.WORKERS: change_worker,
    Sort.PROXIES: change_proxy,
    Sort.WRITERS: change_writer,
}


def _changed(
    tx: Transaction, secrets: Secrets, sort: Sort, id_: str, told: Mapping[str, Any]
) -> None:
    """The line of the audit log names what was changed, never to what: it may be a secret."""
    secret = told.get(sort.secret)
    if isinstance(secret, Secret):
        secrets.put(tx, f"ads_{sort}", sort.secret, id_, secret)
    tx.tell(f"ads.{sort.one}_changed", id_, {"changed": sorted(told)}, actor=secrets.actor)


def _in_use(id_: str) -> IllegalMove:
    return IllegalMove(
        say(
            "{id} is in use: its address changes when it has finished; deactivate it first;"
            " nothing was changed",
            id=id_,
        )
    )


# — given up —


def reset_worker(tx: Transaction, worker: str, *, actor: str) -> None:
    """ "Resetar": a worker in error is idle at once, and takes up what waits."""
    look_at_thing(tx, Sort.WORKERS, worker)
    held = tx.one(SQL.hold_session, worker=worker)
    if held is not None:
        _end_rest(tx, worker, held, actor)
    if tx.one(SQL.reset_worker, worker=worker) is None:
        raise IllegalMove(say("{id} is not in error; nothing was changed", id=worker))
    tx.tell("ads.worker_reset", worker, actor=actor)
    open_sessions(tx)


def _end_rest(tx: Transaction, worker: str, held: Sequence[Any], actor: str) -> None:
    """The session that only waits for the end of a rest gives way to one that begins now."""
    session, proxy, job, state, status = held
    if status != WorkerStatus.ERROR:
        return
    if proxy is not None:
        raise IllegalMove(
            say(
                "the session of {id} has not been seen to end: wait, or declare the worker lost;"
                " nothing was changed",
                id=worker,
            )
        )
    if state == "waiting":
        tx.cancel(job, actor=actor)
        tx.run(SQL.drop_session, session=session)


def relocate(tx: Transaction, worker: str, *, actor: str) -> None:
    """ "Worker perdido: realocar": a person says that its session is over, which nobody saw.

    Its proxy may go to another, and its mission goes on elsewhere by the way of ERROR202.
    """
    look_at_thing(tx, Sort.WORKERS, worker)
    held = tx.one(SQL.hold_session, worker=worker)
    if held is None:
        raise IllegalMove(say("{id} has no session; nothing was changed", id=worker))
    session, proxy, job, state, _ = held
    if proxy is None and state in OPEN:
        raise IllegalMove(
            say("the session of {id} was not asked for yet; nothing was changed", id=worker)
        )
    if state in OPEN:
        tx.cancel(job, actor=actor)
    lose_session(tx, session, AWAY)
    tx.run(
        SQL.leave_scrapes, session=session
    )  # also where it was lost for another reason before
    kept = tx.one(SQL.held_proxy, into=str, job=job)
    if kept is not None:
        pool.declare_free(tx, PROXIES, kept, actor=actor)
    end_session(tx, session, GONE)
    tx.tell("ads.worker_relocated", worker, {"session": session, "proxy": proxy}, actor=actor)
