"""The document's own questions of `queue_jobs` walk an index, whatever the view makes of its columns."""

import re

import pytest

from retoma import Retoma
from retoma.db import Database, Transaction
from retoma.db.statements import Text
from tests.db.test_plans import ANALYZE, alone
from tests.engine import aids

KIND = "embeddings.document"
JOBS = 4_000
FILL = (
    """UPDATE jobs SET payload = '{"document":1}'""",
    "UPDATE jobs SET state = 'done', turn = NULL WHERE id % 100 <> 0",
    "UPDATE jobs SET state = 'running', runner = 'worker-1', epoch = 1, turn = NULL"
    " WHERE id % 200 = 0",
)
QUESTIONS = [
    (
        "SELECT id FROM queue_jobs WHERE status = 'pending'"
        """ AND ("lockExpiresAt" IS NULL OR "lockExpiresAt" < (SELECT clock())) LIMIT 10""",
        "embeddings_jobs_status",
    ),
    (
        "SELECT id FROM queue_jobs WHERE status = 'processing'"
        """ AND "lockExpiresAt" < (SELECT clock())""",
        "jobs_held|embeddings_jobs_status",
    ),
    ("""SELECT id FROM queue_jobs WHERE "lockedBy" = 'worker-1'""", "jobs_held"),
]


@pytest.mark.parametrize(("question", "index"), QUESTIONS)
async def test_the_documents_questions_walk_an_index(database_url, rooms, question, index):
    async with Retoma(database_url) as app:
        database = await app.database()
        await fill(database)

        def plan(tx: Transaction) -> str:
            ask = "EXPLAIN QUERY PLAN" if tx.dialect == "sqlite" else "EXPLAIN (COSTS off)"
            return "\n".join(
                str(row[-1]) for row in tx.all(alone(Text(f"{ask} {question}", True)))
            )

        found = await database.read(plan)

        assert re.search(index, found), found
        # PostgreSQL says Seq Scan, SQLite SCAN, of whatever is read from end to end.
        assert "Seq Scan on jobs" not in found, found
        assert "SCAN j" not in found.replace("SCAN j USING INDEX", ""), found


async def fill(database: Database) -> None:
    for n in range(20):
        await aids.boot(database, f"worker-{n}", knows=(f"{KIND}@1",))
    await aids.submit(database, JOBS, kind=KIND)
    for sql in FILL:
        await aids.change(database, sql)
    await database.write(lambda tx: tx.run(ANALYZE), verb="test")
