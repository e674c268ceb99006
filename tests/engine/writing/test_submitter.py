"""Jobs submitted one by one at the same time: one commit, and each its own answer."""

import asyncio

import pytest

from retoma import Context, IdempotencyMismatch, Retoma
from retoma.db import BadRow, DatabaseError, adhoc, crashpoint
from retoma.db.crashpoint import Harm
from retoma.engine.rules.errors import Unsure
from tests.engine.aids import change, rows

REFUSE_SEVEN_UNKNOWN = adhoc(
    """CREATE TRIGGER no_seven BEFORE INSERT ON jobs
WHEN NEW.payload = '7' BEGIN SELECT json('no json'); END;""",
    """CREATE FUNCTION no_seven() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF CAST(NEW.payload AS text) = '7' THEN RAISE SQLSTATE 'XX123'; END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER no_seven BEFORE INSERT ON retoma.jobs
FOR EACH ROW EXECUTE FUNCTION no_seven();""",
)


def with_work(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def work(ctx: Context, n: int) -> int:
        return n

    return app


async def test_e7_a_hundred_at_once_are_a_hundred_jobs_each_with_its_own_id(database_url):
    async with with_work(database_url) as app:
        jobs = await asyncio.gather(*(app.submit("work", n) for n in range(100)))

        assert 100 == len({job.id for job in jobs})
        assert list(range(100)) == [int((await app.get(job.id)).payload) for job in jobs]
        assert [(100,)] == await rows(await app.database(), "SELECT count(*) FROM events")


async def test_a_hundred_at_once_take_few_commits(database_url):
    passed: list[str] = []
    async with with_work(database_url) as app:
        await app.submit("work", 0)  # whatever is done once is done
        crashpoint.on_pass = passed.append
        try:
            await asyncio.gather(*(app.submit("work", n) for n in range(100)))
        finally:
            crashpoint.on_pass = None

    if database_url.startswith("postgresql"):
        assert 1 <= passed.count("submit.after_commit") <= 3


async def test_e8_the_same_key_at_once_is_one_job_and_another_payload_is_refused(database_url):
    async with with_work(database_url) as app:
        jobs = await asyncio.gather(*(app.submit("work", 1, key="k") for _ in range(50)))

        assert 1 == len({job.id for job in jobs})
        with pytest.raises(IdempotencyMismatch):
            await app.submit("work", 2, key="k")
        assert [(1,)] == await rows(await app.database(), "SELECT count(*) FROM jobs")


async def test_a_row_the_database_refuses_fails_alone(database_url):
    async with with_work(database_url) as app:
        database = await app.database()
        await refuse_seven(database)

        ends = await asyncio.gather(
            *(app.submit("work", n) for n in range(10)), return_exceptions=True
        )

        assert [7] == [n for n, end in enumerate(ends) if isinstance(end, BadRow)]
        assert [(9,)] == await rows(database, "SELECT count(*) FROM jobs")


async def test_a_row_refused_for_a_reason_nobody_knows_fails_alone(database_url):
    """A state of SQL that no list has, and an error of SQLite that says nothing but "error"."""
    async with with_work(database_url) as app:
        database = await app.database()
        await database.write(lambda tx: tx.run(REFUSE_SEVEN_UNKNOWN), verb="trigger")

        ends = await asyncio.gather(
            *(app.submit("work", n) for n in range(10)), return_exceptions=True
        )

        assert [7] == [n for n, end in enumerate(ends) if isinstance(end, Exception)]
        assert [(9,)] == await rows(database, "SELECT count(*) FROM jobs")


async def test_after_a_lost_reply_everybody_without_a_key_is_told_so(database_url):
    async with with_work(database_url) as app:
        await app.upgrade()
        crashpoint.arm("submit.after_commit", Harm.REPLY_LOST)
        try:
            ends = await asyncio.gather(
                app.submit("work", 1),
                app.submit("work", 2, key="k"),
                return_exceptions=True,
            )
        finally:
            crashpoint.disarm()

        assert all(not isinstance(end, DatabaseError) for end in ends)
        assert isinstance(ends[0], Unsure) or 1 == int(ends[0].payload)  # type: ignore[union-attr]
        assert "k" == ends[1].key  # type: ignore[union-attr]
        assert [(2,)] == await rows(await app.database(), "SELECT count(*) FROM jobs")


async def test_whoever_stops_waiting_costs_nobody_else_an_answer(database_url):
    async with with_work(database_url) as app:
        await app.upgrade()
        asking = [asyncio.create_task(app.submit("work", n)) for n in range(5)]
        await asyncio.sleep(0)
        asking[2].cancel()

        ends = await asyncio.gather(*asking, return_exceptions=True)

        assert isinstance(ends[2], asyncio.CancelledError)
        assert 4 == sum(1 for end in ends if not isinstance(end, BaseException))


async def refuse_seven(database) -> None:
    if database.dialect == "sqlite":
        await change(
            database,
            "CREATE TRIGGER no_seven BEFORE INSERT ON jobs WHEN NEW.payload = '7'"
            " BEGIN SELECT RAISE(ABORT, 'no seven'); END",
        )
    else:
        check = "ALTER TABLE retoma.jobs ADD CHECK (CAST(payload AS text) <> '7')"
        await database.write(lambda tx: tx.run(adhoc(check)), verb="trigger")
