"""Lists of quotes: by lote, status and worker, whole and in order; by an index, however many have ended."""

import json
import re
from typing import Any

from retoma import Retoma
from retoma.apps.quotes import APP, store
from retoma.apps.quotes.model import QuoteStatus
from retoma.db import Database, Statement, Transaction
from retoma.db.migrations import ENGINE, Room
from retoma.db.statements import Text
from tests.apps.people import people
from tests.apps.quotes.aids import world
from tests.databases import EMPTY, migrate
from tests.engine.aids import change

MANY = 20_000
ROOMS = (ENGINE, Room("quotes", "retoma.apps.quotes.migrations"))
BOOT = (
    "INSERT INTO runners (boot, name, host, pid, pid_started, version, state, since, beat_at,"
    " lease_until, slots, knows) VALUES ('b', 'worker-1', 'h', 1, '1', '', 'alive',"
    " (SELECT clock()), (SELECT clock()), clock_in(60), 9, '[]')"
)
COUNT = (
    "INSERT INTO counts (batch, kind, state, code, n) SELECT {batch}, kind, state, '', count(*)"
    " FROM jobs GROUP BY {by}kind, state"
)
TAKE_OVER = (
    "INSERT INTO quotes (kind, description, created_by, created_at, was)"
    " SELECT 'auto', 'x', 'ana', (SELECT clock()), '{was}' FROM quotes LIMIT {n}"
)
# Of each status some, and of each way in which a quote can be in it.
MOVES = {
    "state = 'done', turn = NULL": "< 5",
    "state = 'dead', turn = NULL, code = 'no_price'": "= 5",
    "state = 'canceled', turn = NULL": "= 6",
    "state = 'skipped', turn = NULL": "= 7",
    "state = 'parked', turn = NULL": "= 8",
    "state = 'parked', turn = NULL, started_at = (SELECT clock())": "= 9",
    "turn = NULL, run_at = clock_in(60), started_at = (SELECT clock())": "= 10",
    "started_at = (SELECT clock())": "= 11",
    "aside = 'budget:batch:1', started_at = (SELECT clock())": "= 12",
    "lost = 2": "= 13",
    "state = 'running', runner = 'b', epoch = 1, turn = NULL, started_at = (SELECT clock())": "= 14",
}


async def settled(database: Database, every: int) -> None:
    await change(database, BOOT)
    for what, which in MOVES.items():
        made = f"UPDATE jobs SET {what} WHERE id % {every} {which}"  # noqa: S608 — words of ours
        await change(database, made)
    await change(database, "DELETE FROM tallies")
    await change(database, COUNT.format(batch="-1", by=""))
    await change(database, COUNT.format(batch="batch", by="batch, "))


async def taken_over(database: Database, n: int) -> None:
    """Quotes of the past: they have no job."""
    for status in ("DONE", "ERROR"):
        was = json.dumps({"status": status, "processing_checkpoint": "COMPLETED"})
        await change(database, TAKE_OVER.format(was=was, n=n))


async def test_every_list_is_whole_and_has_each_quote_once(database_url, tmp_path):
    """Held against the document's table, row by row, at every size of a page."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        first, second = await there.lote(range(40)), await there.lote(range(40))
        database = await there.app.database()
        await settled(database, 16)
        await taken_over(database, 3)
        rows = await there.rows(
            "SELECT id, batch_request_id, status, worker_id FROM quote_requests ORDER BY id DESC"
        )

        async def listed(limit: int, **asked: Any) -> list[int]:
            found: list[int] = []
            query: dict[str, Any] = {"limit": limit, **asked}
            while True:
                page = (await who["viewer"].get("/api/quotes", params=query)).json()
                found += [each["id"] for each in page["items"]]
                if page["next"] is None:
                    return found
                query["cursor"] = page["next"]

        assert {*QuoteStatus} == {row[2] for row in rows}
        for status in (None, *QuoteStatus):
            for lote in (None, first.lote, second.lote):
                expected = [
                    id_
                    for id_, of, state, _ in rows
                    if status in (None, state) and lote in (None, of)
                ]
                asked = {"status": status and str(status), "lote": lote}
                told = {name: each for name, each in asked.items() if each is not None}
                for limit in (2, 100):
                    found = await listed(limit, **told)
                    assert expected == sorted(found, reverse=True), (told, limit)
        for lote in (first.lote, second.lote):
            told = (await who["viewer"].get(f"/api/lotes/{lote}")).json()
            of = [row[2] for row in rows if row[1] == lote]
            assert {each: of.count(each) for each in QuoteStatus} == told["by_status"]
        held = [id_ for id_, _, _, worker in rows if worker == "worker-1"]
        assert held == await listed(2, worker_id="worker-1")
        assert [] == await listed(2, worker_id="worker-2")
        assert held == await listed(100, worker_id="worker-1", status="PROCESSING")
        assert [] == await listed(100, worker_id="worker-1", status="DONE")


WALKS = {
    "list_quotes": (),
    "list_lote_quotes": ("quotes_lote",),
    "export_quotes": ("quotes_lote",),
    "list_history": ("quotes_history",),
    "waiting_quotes": ("jobs_waiting", "jobs_not_due", "jobs_aside"),
    "quotes_by_job": ("quotes_job",),
    "quotes_of_jobs": ("quotes_job",),
    "quotes_at": ("jobs_held",),
    "lote_checkpoints": ("jobs_held",),
    "get_quote": (),
    "count_begun": ("jobs_batch",),
    "expire_old": ("jobs_waiting", "jobs_not_due"),
}


OF_LOTES = ("list_lote_quotes", "export_quotes", "lote_checkpoints", "count_begun")


@EMPTY  # a plan depends on how large indices have once been
async def test_no_list_reads_what_it_does_not_show(database_url):
    """The questions that the document's indices served, and the others: with statistics or without."""
    migrate(database_url, ROOMS)
    async with Retoma(database_url) as app:
        app.install(APP)
        wanted = [store.NewQuote("x")] * MANY
        await app.write(lambda tx: store.add_lote(tx, wanted, actor="ana"))
        added = await app.write(lambda tx: store.add_lote(tx, wanted[:50], actor="ana"))
        database = await app.database()
        await change(database, "UPDATE jobs SET state = 'done', turn = NULL WHERE id % 100 > 0")
        await settled(database, 1600)
        await taken_over(database, 2_000)
        asked: dict[str, Any] = {"lote": added.lote, "before": None, "after": 0, "n": 50}
        asked |= {"status": "DONE", "begun": True, "worker": "worker-1", "quote": 7}
        asked |= {"jobs": json.dumps([*range(1, 51)]), "seconds": 86_400.0}

        for _ in range(2):
            for verb, indices in WALKS.items():
                whose = {} if verb in OF_LOTES else {"lote": None}
                plan = await plan_of(database, verb, asked | whose)
                for index in indices:
                    assert index in plan, f"{verb} does not use {index}:\n{plan}"
                assert "Seq Scan on jobs" not in plan, f"{verb}:\n{plan}"
                assert "Seq Scan on quotes" not in plan, f"{verb}:\n{plan}"
                scans = re.findall(r"SCAN (?:jobs|quotes|j|q)\b(?! USING).*", plan)
                assert not scans, f"{verb}:\n{plan}"
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")


ANALYZE = Statement("analyze", *((Text("ANALYZE", answers=False),),) * 2)


async def plan_of(database: Database, verb: str, asked: dict[str, Any]) -> str:
    made = getattr(store.SQL, verb)

    def explained(tx: Transaction) -> str:
        text = getattr(made, database.dialect)[0].sql
        ask = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN (COSTS off)"
        one = Text(f"{ask} {text}", answers=True)
        used = {
            name: each
            for name, each in asked.items()
            if f":{name}" in text or f"%({name})" in text
        }
        return "\n".join(
            str(row[-1]) for row in tx.all(Statement(verb, (one,), (one,)), **used)
        )

    return await database.read(explained)
