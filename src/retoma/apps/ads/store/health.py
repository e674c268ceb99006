"""Health tests of workers, proxies and writers: asked for as jobs, kept beside what was tested."""

from collections.abc import Sequence

from retoma.apps.ads.store.rows import HEALTH, SQL, Sort
from retoma.engine.rules.errors import NotFound
from retoma.engine.run.transaction import Transaction
from retoma.words import say

KEEP_TEST = {
    Sort.WORKERS: SQL.keep_worker_test,
    Sort.PROXIES: SQL.keep_proxy_test,
    Sort.WRITERS: SQL.keep_writer_test,
}
MESSAGE = 500  # characters of an error that are kept


def ask_tests(
    tx: Transaction, sort: Sort | None, ids: Sequence[str] | None = None, *, actor: str
) -> int:
    """Have these tested, or all there are: a job for each. All of them or none; how many."""
    known = [(str(each), id_) for each, id_ in tx.all(SQL.list_things, sort=sort)]
    wanted = known if ids is None else [(str(sort), id_) for id_ in dict.fromkeys(ids)]
    missing = sorted({id_ for _, id_ in wanted} - {id_ for _, id_ in known})
    if missing:
        raise NotFound(say("there is no {id}; nothing was changed", id=", ".join(missing[:10])))
    payloads = [{"sort": each, "id": id_} for each, id_ in wanted]
    if len(payloads) > 1:
        tx.submit_many(HEALTH, payloads, actor=actor)
    for payload in payloads if len(payloads) == 1 else ():
        tx.submit(HEALTH, payload, actor=actor)
    return len(payloads)


def keep_test(tx: Transaction, sort: Sort, id_: str, ms: int, error: str | None) -> bool:
    """How the test went; whether what was tested is still there."""
    text = None if error is None else error[:MESSAGE]
    told = {"ok": error is None, "ms": ms, "error": text}
    return tx.one(KEEP_TEST[Sort(sort)], id=id_, **told) is not None
