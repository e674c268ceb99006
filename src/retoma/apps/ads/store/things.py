"""Workers, proxies and writers, as people handle them."""

from dataclasses import dataclass

from retoma.apps.ads.store.orchestrator import open_sessions
from retoma.apps.ads.store.rows import PROXIES, numbers, verb
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.run.transaction import Transaction
from retoma.secret import Secret
from retoma.vault import Place as SecretPlace
from retoma.vault import Sealer
from retoma.words import say

ADD_PROXY = verb("add_proxy")
ADD_WORKER = verb("add_worker")
ADD_WRITER = verb("add_writer")
GET_PROXY = verb("get_proxy")
GET_WORKER = verb("get_worker")
GET_WRITER = verb("get_writer")
LIST_PROXIES = verb("list_proxies")
LIST_WORKERS = verb("list_workers")
LIST_WRITERS = verb("list_writers")
MOVE_WORKER = verb("move_worker")


@dataclass(frozen=True, slots=True)
class Secrets:
    """How a secret is put in together with the row it belongs to."""

    sealer: Sealer
    actor: str

    def put(self, tx: Transaction, table: str, column: str, row: str, value: Secret) -> None:
        place = SecretPlace(table, column, row)
        tx.inside(lambda raw: self.sealer.put(raw, place, value, actor=self.actor))

    def remove(self, tx: Transaction, table: str, column: str, row: str) -> None:
        """Nothing is left of it, if there was anything."""
        place = SecretPlace(table, column, row)
        tx.inside(lambda raw: self.sealer.remove(raw, place, actor=self.actor))


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
    tx.run(ADD_WORKER, id=id_, active=storage_domain is not None, **told)
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
    if tx.one(ADD_PROXY, id=id_, name=called, **told) is None:
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
    tx.run(ADD_WRITER, id=id_, name=name, url=url, active=True)
    secrets.put(tx, "ads_writers", "api_key", id_, api_key)
    tx.tell("ads.writer_added", id_, {"name": name}, actor=secrets.actor)
    return id_
