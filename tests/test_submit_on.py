"""A job in the open transaction of a caller's own psycopg connection (E7, E8). PostgreSQL only."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from retoma import BadInput, Context, IdempotencyMismatch, Retoma, State
from retoma.engine.rules.errors import UnknownKind
from retoma.engine.testing import drain
from tests.databases import EMPTY
from tests.engine.aids import eventually, running
from tests.engine.run.test_transaction import is_done


def new_app(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def ship(ctx: Context, order: Any) -> Any:
        return order

    return app


@contextmanager
def connected(url: str, **how: Any) -> Iterator[Any]:
    with psycopg.connect(url, **how) as connection:
        yield connection
        connection.rollback()


def roll_back() -> None:
    """As a caller says it inside `connection.transaction()`."""
    raise psycopg.Rollback


def path_of(connection: Any) -> str:
    return str(connection.execute("SHOW search_path").fetchone()[0])


async def test_the_job_is_there_when_the_caller_commits_and_not_before(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("CREATE TABLE orders (id integer)")
            connection.execute("INSERT INTO orders VALUES (7)")
            job = app.submit_on(connection, "ship", 7, key="order-7", priority=-1, delay=0)
            assert [] == await app.jobs()

            connection.commit()

        assert [(job.id, "order-7", -1)] == [
            (each.id, each.key, each.priority) for each in await app.jobs()
        ]
        await drain(app)
        assert State.DONE is (await app.get(job.id)).state
        assert ["submitted", "claimed", "done"] == [e.type for e in await app.events(job.id)]


async def test_a_rollback_of_the_caller_leaves_no_job_no_event_and_no_bell(postgres_url):
    async with new_app(postgres_url) as app:
        database = await app.database()
        while database.wait_bell(0.1):
            pass

        with connected(postgres_url) as connection:
            app.submit_on(connection, "ship", 1)
            connection.rollback()
            silence = database.wait_bell(0.3)
            app.submit_on(connection, "ship", 2)
            unheard = database.wait_bell(0.3)
            connection.commit()

        assert (set(), set(), {"ship"}) == (silence, unheard, database.wait_bell(20))
        assert ["2"] == [job.payload for job in await app.jobs()]
        assert {State.WAITING: 1} == await app.insights.counts()


async def test_an_idle_runner_hears_the_callers_commit(postgres_url):
    async with new_app(postgres_url) as app, running(app, tick=60.0):
        await asyncio.sleep(0.2)  # it is idle now, and its next look is a minute away
        with connected(postgres_url) as connection:
            job = app.submit_on(connection, "ship", 1)
            connection.commit()

            await eventually(lambda: is_done(app, job.id))


@pytest.mark.parametrize("temporary", ["", "TEMPORARY"])
async def test_a_caller_may_have_tables_of_our_names(postgres_url, temporary):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("SET search_path = public")
            for table in ("jobs", "events", "tallies", "retoma_migrations"):
                connection.execute(f"CREATE {temporary} TABLE {table} (title text)")
            job = app.submit_on(connection, "ship", 1, key="k")
            connection.execute("INSERT INTO jobs VALUES ('cook')")
            assert [("cook",)] == connection.execute("SELECT * FROM jobs").fetchall()
            connection.commit()

        assert [job.id] == [each.id for each in await app.jobs()]


async def test_the_search_path_is_put_back_whatever_happens(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("CREATE SCHEMA shop")
            connection.execute("SET search_path = shop, pg_catalog")
            connection.commit()
            before = path_of(connection)

            job = app.submit_on(connection, "ship", 1, key="k")
            after_success = path_of(connection)
            with pytest.raises(IdempotencyMismatch):
                app.submit_on(connection, "ship", 2, key="k")
            after_refusal = path_of(connection)
            connection.execute("SET LOCAL search_path = shop")
            app.submit_on(connection, "ship", 3)
            local = path_of(connection)
            connection.commit()

            assert (before, before, "shop") == (after_success, after_refusal, local)
            assert before == path_of(connection)
        assert {job.id} < {each.id for each in await app.jobs()}
        assert 2 == len(await app.jobs())


async def test_a_submission_the_database_refuses_leaves_the_callers_transaction_usable(
    postgres_url,
):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("CREATE TABLE orders (id integer)")
            connection.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'no jobs today'; END $$"
            )
            connection.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON retoma.jobs"
                " FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
            connection.commit()
            connection.execute("INSERT INTO orders VALUES (1)")
            before = path_of(connection)

            with pytest.raises(psycopg.Error, match="no jobs today"):
                app.submit_on(connection, "ship", 1)

            assert before == path_of(connection)
            connection.execute("INSERT INTO orders VALUES (2)")
            connection.commit()
            assert [(2,)] == connection.execute("SELECT count(*) FROM orders").fetchall()
        assert [] == await app.jobs()


async def test_e8_the_same_key_gives_the_same_job(postgres_url):
    async with new_app(postgres_url) as app:
        first = await app.submit("ship", 1, key="k")
        with connected(postgres_url) as connection:
            again = app.submit_on(connection, "ship", 1, key="k")
            new = app.submit_on(connection, "ship", 2, key="other")
            twice = app.submit_on(connection, "ship", 2, key="other")
            with pytest.raises(IdempotencyMismatch, match="another payload"):
                app.submit_on(connection, "ship", 3, key="other")
            connection.commit()

        assert (first.id, new.id) == (again.id, twice.id)
        assert 2 == len(await app.jobs())


async def test_the_callers_ways_of_reading_rows_are_no_matter(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(
            postgres_url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor
        ) as connection:
            connection.execute("SET timezone = 'America/Sao_Paulo'")
            first = app.submit_on(connection, "ship", {"a": 1}, key="k")
            again = app.submit_on(connection, "ship", {"a": 1}, key="k")
            connection.commit()
        with connected(postgres_url, autocommit=True) as connection, connection.transaction():
            inside = app.submit_on(connection, "ship", 2)

        assert (first.id, first.created_at) == (again.id, again.created_at)
        assert [inside.id, first.id] == [job.id for job in await app.jobs()]


async def test_what_a_savepoint_of_the_caller_undoes_is_undone(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            kept = app.submit_on(connection, "ship", 1)
            with connection.transaction():
                app.submit_on(connection, "ship", 2)
                roll_back()
            connection.commit()

        assert [kept.id] == [job.id for job in await app.jobs()]


async def test_a_connection_that_cannot_carry_a_job_is_refused(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with (
            sqlite3.connect(":memory:") as other,
            pytest.raises(BadInput, match=r"sqlite3\.Conn"),
        ):
            app.submit_on(other, "ship", 1)
        other.close()
        with pytest.raises(BadInput, match=r"builtins\.str is no connection of psycopg 3"):
            app.submit_on(postgres_url, "ship", 1)
        async with await psycopg.AsyncConnection.connect(postgres_url) as asynchronous:
            with pytest.raises(BadInput, match="AsyncConnection"):
                app.submit_on(asynchronous, "ship", 1)
        with (
            connected(postgres_url, autocommit=True) as connection,
            pytest.raises(BadInput, match="no transaction open"),
        ):
            app.submit_on(connection, "ship", 1)
        with connected(postgres_url) as connection:
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT nonsense")
            with pytest.raises(BadInput, match="roll it back first"):
                app.submit_on(connection, "ship", 1)
            connection.rollback()
            with pytest.raises(BadInput, match="priority"):
                app.submit_on(connection, "ship", 1, priority=9999)
            with pytest.raises(UnknownKind):
                app.submit_on(connection, "nobody", 1)
        with pytest.raises(BadInput, match="closed"):
            app.submit_on(connection, "ship", 1)

        assert [] == await app.jobs()


@EMPTY
async def test_a_database_without_our_schema_or_with_an_older_one_is_refused(postgres_url):
    async with new_app(postgres_url) as app:
        with connected(postgres_url) as connection:
            connection.execute("CREATE TABLE orders (id integer)")
            with pytest.raises(BadInput, match="no schema of retoma"):
                app.submit_on(connection, "ship", 1)
            connection.execute("INSERT INTO orders VALUES (1)")
            connection.commit()
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("DELETE FROM retoma.retoma_migrations WHERE number = 1")
            with pytest.raises(BadInput, match="this retoma needs"):
                app.submit_on(connection, "ship", 1)
            connection.execute(
                "INSERT INTO retoma.retoma_migrations VALUES ('engine', 9999, 'x', '', now())"
            )
            with pytest.raises(BadInput, match="run a newer retoma"):
                app.submit_on(connection, "ship", 1)


async def test_a_role_without_the_right_is_told_so(postgres_url):
    async with new_app(postgres_url) as app:
        await app.upgrade()
        with connected(postgres_url) as connection:
            connection.execute("CREATE ROLE guest_of_retoma")
            connection.execute("SET ROLE guest_of_retoma")
            with pytest.raises(BadInput, match="may not submit"):
                app.submit_on(connection, "ship", 1)


async def test_on_sqlite_there_is_no_such_connection(tmp_path):
    async with new_app(f"sqlite:///{tmp_path / 'work.db'}") as app:
        with pytest.raises(BadInput, match=r"needs PostgreSQL.*app\.write"):
            app.submit_on(object(), "ship", 1)
