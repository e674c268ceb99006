"""List, add, change, switch, test, delete, reset and relocate workers, proxies and writers."""

from collections.abc import Sequence
from typing import Final, TypeVar

from retoma.apps.ads import store
from retoma.apps.ads.service.connections import read, secrets_for, tools_of
from retoma.apps.ads.service.inputs import (
    Changed,
    ChangedProxy,
    ChangedWorker,
    ChangedWriter,
    Entered,
    NewProxy,
    NewWorker,
    NewWriter,
)
from retoma.apps.ads.store import Sort
from retoma.engine.rules.errors import NotFound
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.outbound import Policy
from retoma.toolkit.tools import Tools
from retoma.words import say

R = TypeVar("R", bound=store.Record)
ALL: Final = 1_000  # records in one list, where the caller names no number


async def list_records(
    retoma: Retoma, shape: type[R], *, after: str = "", limit: int = ALL
) -> list[R]:
    """List workers, proxies or writers after an id, in the order of their ids."""
    return await read(retoma, lambda tx: store.list_records(tx, shape, after=after, n=limit))


async def get_record(retoma: Retoma, shape: type[R], id_: str) -> R:
    found = await read(retoma, lambda tx: store.list_records(tx, shape, id_=id_, n=1))
    if not found:
        raise NotFound(say("there is no {id}", id=id_))
    return found[0]


async def add_resource(retoma: Retoma, entered: Entered, *, actor: str) -> str:
    """Check the address, add the worker, proxy or writer with its secret, and return its id."""
    await check_address(tools_of(retoma), entered)
    secrets = await secrets_for(retoma, actor)
    return await retoma.write(lambda tx: insert_resource(tx, secrets, entered))


def insert_resource(tx: Transaction, secrets: store.Secrets, entered: Entered) -> str:
    match entered:
        case NewWorker():
            return store.add_worker(tx, secrets, **entered.values)
        case NewProxy():
            return store.add_proxy(tx, secrets, **entered.values)
        case _:
            return store.add_writer(tx, secrets, **entered.values)


async def change_resource(
    retoma: Retoma, sort: Sort, id_: str, entered: Changed, *, actor: str
) -> None:
    """Check the new address, then change what is entered; everything else stays."""
    if isinstance(entered, ChangedProxy):
        now = await get_record(retoma, store.ProxyRecord, id_)
        await check_proxy(tools_of(retoma), entered.host or now.host, entered.port or now.port)
    else:
        await check_address(tools_of(retoma), entered)
    secrets = await secrets_for(retoma, actor)
    change = store.CHANGES[sort]
    await retoma.write(lambda tx: change(tx, secrets, id_, entered.values))


async def activate_resources(
    retoma: Retoma, sort: Sort, ids: Sequence[str], *, actor: str
) -> None:
    await retoma.write(lambda tx: store.activate(tx, sort, ids, actor=actor))


async def deactivate_resources(
    retoma: Retoma, sort: Sort, ids: Sequence[str], *, actor: str
) -> None:
    await retoma.write(lambda tx: store.deactivate(tx, sort, ids, actor=actor))


async def delete_resources(
    retoma: Retoma, sort: Sort, ids: Sequence[str], *, actor: str
) -> None:
    secrets = await secrets_for(retoma, actor)
    await retoma.write(lambda tx: store.delete(tx, sort, ids, secrets))


async def request_tests(
    retoma: Retoma, sort: Sort, ids: Sequence[str] | None, *, actor: str
) -> int:
    """Submit a health test for each id, or for all where none is named; return how many."""
    return await retoma.write(lambda tx: store.ask_tests(tx, sort, ids, actor=actor))


async def reset_worker(retoma: Retoma, worker: str, *, actor: str) -> None:
    await retoma.write(lambda tx: store.reset_worker(tx, worker, actor=actor))


async def relocate_worker(retoma: Retoma, worker: str, *, actor: str) -> None:
    """Declare the worker lost: its session ends, its mission continues on another worker."""
    await retoma.write(lambda tx: store.relocate(tx, worker, actor=actor))


# — addresses —


async def check_address(tools: Tools, entered: Entered) -> None:
    """Refuse an address that must not be called, before it is saved; it is checked again at each call."""
    if isinstance(entered, NewProxy):
        await check_proxy(tools, entered.host, entered.port)
    elif isinstance(entered, NewWorker | ChangedWorker) and entered.url is not None:
        await tools.out.check(Policy.toward("ads worker", entered.url), entered.url)
    elif isinstance(entered, NewWriter | ChangedWriter) and entered.url is not None:
        await tools.out.check(Policy.toward("ads writer", entered.url), entered.url)


async def check_proxy(tools: Tools, host: str, port: int | None) -> None:
    """Refuse a proxy at an address that must not be called. Its name is not resolved here: it may be
    known only to those who go out by it, so that the health test of the proxy resolves it."""
    at = f"[{host}]" if ":" in host else host
    url = f"http://{at}" if port is None else f"http://{at}:{port}"
    await tools.out.check(Policy.toward("ads proxy", url), url, names=False)
