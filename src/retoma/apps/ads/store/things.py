"""Workers, proxies and writers, as people handle them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from retoma import db
from retoma.apps.ads.model import WorkerStatus
from retoma.apps.ads.store.orchestrator import open_sessions
from retoma.apps.ads.store.rows import PROXIES, SQL, Sort, numbers
from retoma.db import Statement
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.run.transaction import Transaction
from retoma.secret import Secret
from retoma.vault import Sealer, SecretSlot
from retoma.words import say


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker without its key, with its last health test and its open session."""

    id: str
    name: str
    url: str
    storage_domain: str | None
    status: WorkerStatus
    session_count: int
    current_mission_id: str | None
    current_proxy_id: str | None
    active: bool
    last_test_at: datetime | None
    last_test_ok: bool | None
    last_test_ms: int | None
    last_test_error: str | None
    rests_until: datetime | None
    session: int | None
    session_job: int | None
    session_state: str | None
    note: str | None  # what keeps its session from ending
    silent_since: datetime | None


@dataclass(frozen=True, slots=True)
class ProxyRecord:
    """A proxy without its password, with its last health test and the worker that uses it."""

    id: str
    name: str
    host: str
    port: int | None
    username: str | None
    vendor: str
    active: bool
    in_use_by_worker_id: str | None
    fail_count: int
    reason: str | None
    last_used_at: datetime | None
    last_test_at: datetime | None
    last_test_ok: bool | None
    last_test_ms: int | None
    last_test_error: str | None


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """A writer without its key, with its last health test; `away_since`: it is given no ads."""

    id: str
    name: str
    url: str
    active: bool
    last_test_at: datetime | None
    last_test_ok: bool | None
    last_test_ms: int | None
    last_test_error: str | None
    away_since: datetime | None
    away_reason: str | None


Record = WorkerRecord | ProxyRecord | WriterRecord
R = TypeVar("R", bound=Record)
RECORDS: Final[Mapping[Sort, type[Record]]] = {
    Sort.WORKERS: WorkerRecord,
    Sort.PROXIES: ProxyRecord,
    Sort.WRITERS: WriterRecord,
}
LISTS: Final[Mapping[type, Statement]] = {
    WorkerRecord: SQL.list_workers,
    ProxyRecord: SQL.list_proxies,
    WriterRecord: SQL.list_writers,
}


@dataclass(frozen=True, slots=True)
class Secrets:
    """How a secret is put in together with the row it belongs to."""

    sealer: Sealer
    actor: str

    def put(self, tx: Transaction, table: str, column: str, row: str, value: Secret) -> None:
        place = SecretSlot(table, column, row)
        self.sealer.put(tx, place, value, actor=self.actor)

    def remove(self, tx: Transaction, table: str, column: str, row: str) -> None:
        """Nothing is left of it, if there was anything."""
        place = SecretSlot(table, column, row)
        self.sealer.remove(tx, place, actor=self.actor)


def list_records(
    tx: db.Transaction, shape: type[R], *, after: str = "", id_: str | None = None, n: int
) -> list[R]:
    """The workers, proxies or writers after an id, in the order of their ids; or the one named."""
    return tx.all(LISTS[shape], into=shape, after=after, id=id_, n=n)


def add_worker(
    tx: Transaction,
    secrets: Secrets,
    *,
    name: str,
    url: str,
    api_key: Secret,
    storage_domain: str | None = None,
) -> str:
    """One without a storage_domain is kept, but takes nothing up: nobody could fetch what it finds."""
    [id_] = numbers(tx, "WRK", 1)
    told = {"name": name, "url": url, "storage_domain": storage_domain}
    tx.run(SQL.add_worker, id=id_, active=storage_domain is not None, **told)
    secrets.put(tx, "ads_workers", "api_key", id_, api_key)
    tx.tell("ads.worker_added", id_, {"name": name}, actor=secrets.actor)
    open_sessions(tx)
    return id_


def add_proxy(
    tx: Transaction,
    secrets: Secrets,
    *,
    host: str,
    port: int | None = None,
    name: str | None = None,
    username: str | None = None,
    password: Secret | None = None,
    vendor: str = "",
) -> str:
    [id_] = numbers(tx, "PRX", 1)
    called = name or (host if port is None else f"{host}:{port}")
    told = {"host": host, "port": port, "username": username, "vendor": vendor}
    if tx.one(SQL.add_proxy, id=id_, name=called, **told) is None:
        raise IllegalMove(say("there is already a proxy called {name}", name=called))
    if password is not None:
        secrets.put(tx, "ads_proxies", "password", id_, password)
    tx.tell("ads.proxy_added", id_, {"name": called}, actor=secrets.actor)
    tx.put_things(PROXIES, {id_: id_}, vendor=vendor, actor=secrets.actor)
    return id_


def add_writer(
    tx: Transaction, secrets: Secrets, *, name: str, url: str, api_key: Secret
) -> str:
    [id_] = numbers(tx, "WRT", 1)
    tx.run(SQL.add_writer, id=id_, name=name, url=url, active=True)
    secrets.put(tx, "ads_writers", "api_key", id_, api_key)
    tx.tell("ads.writer_added", id_, {"name": name}, actor=secrets.actor)
    return id_
