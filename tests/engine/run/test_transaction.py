"""A caller's own statements and submissions in one transaction: all of it, or nothing (E7, E8)."""

import asyncio
from operator import methodcaller
from typing import Any

import pytest

from retoma import BadInput, Context, IdempotencyMismatch, Retoma, State, Transaction, Unsure
from retoma.db import BadRow
from retoma.db.crashpoint import Harm
from retoma.engine.rules.errors import UnknownKind
from retoma.engine.run import transaction
from retoma.engine.testing import crash_at, drain
from tests.engine.aids import eventually, rows, running


def new_app(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def ship(ctx: Context, order: Any) -> Any:
        return order

    return app


async def with_orders(app: Retoma) -> None:
    await app.write(
        lambda tx: tx.run("CREATE TABLE orders (id integer PRIMARY KEY, item text NOT NULL)")
    )


async def orders(app: Retoma) -> list[Any]:
    return await app.write(lambda tx: tx.all("SELECT id, item FROM orders ORDER BY id"))


async def test_a_row_of_the_caller_and_its_job_are_committed_together(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)

        def order(tx: Transaction) -> int:
            n = tx.run("INSERT INTO orders VALUES (:id, :item)", id=7, item="a 50% : 'chair'")
            job = tx.submit("ship", 7, key="order-7", priority=-5, correlation="web")
            batch = tx.submit_many("ship", [1, 2, 3], name="three", keys=["a", "b", "c"])
            assert (1, 3) == (n, batch.submitted)
            return job.id

        id_ = await app.write(order)
        await drain(app)

        job = await app.get(id_)
        assert (State.DONE, "7", "order-7", -5, "web") == (
            job.state, job.result, job.key, job.priority, job.correlation,
        )  # fmt: skip
        assert [(7, "a 50% : 'chair'")] == await orders(app)
        assert {State.DONE: 4} == await app.insights.counts()
        [batch] = await app.batches.list()
        assert {State.DONE: 3} == await batch.counts()


async def test_d9_a_statement_with_much_in_it_is_not_kept(database_url):
    """Values belong into parameters; a text that holds them comes once, and is as large as they are."""
    kept = transaction._read
    async with new_app(database_url) as app:
        await with_orders(app)
        await app.write(lambda tx: tx.run("DELETE FROM orders WHERE id = 1"))
        before = kept.cache_info().currsize
        for n in range(3):
            text = f"INSERT INTO orders VALUES ({n}, '{'x' * transaction.LONGEST_KEPT}')"  # noqa: S608
            await app.write(methodcaller("run", text))

        assert before == kept.cache_info().currsize
        assert 3 == len(await orders(app))


async def test_a_submission_in_a_transaction_wakes_an_idle_runner(database_url):
    async with new_app(database_url) as app, running(app, tick=60.0):
        await asyncio.sleep(0.2)  # it is idle now, and its next look is a minute away

        job = await app.write(lambda tx: tx.submit("ship", 1))

        await eventually(lambda: is_done(app, job.id))


async def is_done(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state is State.DONE


@pytest.mark.parametrize("raised", [RuntimeError("no"), KeyboardInterrupt(), SystemExit(3)])
async def test_what_the_function_raises_undoes_everything(database_url, raised):
    """No row, no job, no batch, no event, no tally, no bell; and the next one is served."""
    async with new_app(database_url) as app:
        await with_orders(app)
        database = await app.database()
        await drain(app)
        database.wait_bell(0.2)
        while database.wait_bell(0.05):
            pass

        def order(tx: Transaction) -> None:
            tx.run("INSERT INTO orders VALUES (1, 'chair')")
            tx.submit("ship", 1)
            tx.submit_many("ship", [2, 3])
            raise raised

        with pytest.raises(type(raised)) as caught:
            await app.write(order)

        assert raised is caught.value
        assert set() == database.wait_bell(0.3)
        assert [] == await orders(app)
        for table in ("jobs", "batches", "events", "tallies"):
            assert [(0,)] == await rows(database, f"SELECT count(*) FROM {table}"), (  # noqa: S608
                table
            )
        assert 1 == await app.write(lambda tx: tx.run("INSERT INTO orders VALUES (2, 'b')"))


async def test_a_statement_that_failed_fails_the_whole_also_where_the_caller_looks_away(
    database_url,
):
    async with new_app(database_url) as app:
        await with_orders(app)

        def order(tx: Transaction) -> str:
            tx.run("INSERT INTO orders VALUES (1, 'chair')")
            tx.submit("ship", 1)
            with pytest.raises(Exception, match=r"(?i)unique"):
                tx.run("INSERT INTO orders VALUES (1, 'table')")
            return "all is well"

        with pytest.raises(BadRow, match=r"(?i)unique"):
            await app.write(order)

        assert [] == await orders(app)
        assert [] == await app.jobs()


async def test_e8_the_same_key_in_a_transaction_gives_the_same_job(database_url):
    async with new_app(database_url) as app:
        first = await app.submit("ship", 1, key="k")

        again, twice = await app.write(
            lambda tx: (tx.submit("ship", 1, key="k"), tx.submit("ship", 1, key="k"))
        )

        assert first.id == again.id == twice.id
        with pytest.raises(IdempotencyMismatch, match="another payload"):
            await app.write(lambda tx: (tx.submit("ship", 5), tx.submit("ship", 2, key="k")))
        assert [first.id] == [job.id for job in await app.jobs()]


async def test_the_same_batch_key_gives_the_same_batch(database_url):
    async with new_app(database_url) as app:
        first = await app.submit_many("ship", [1, 2], key="lote-1")

        again = await app.write(lambda tx: tx.submit_many("ship", [1, 2], key="lote-1"))

        assert (first.id, 0, 2) == (again.id, again.submitted, again.already)
        assert {State.WAITING: 2} == await again.counts()


async def test_a_caller_may_ask_and_write_by_name(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)

        def ask(tx: Transaction) -> None:
            insert = "INSERT INTO orders VALUES (:id, :item) -- not :this"
            assert 1 == tx.run(insert, id=1, item="x")
            assert 1 == tx.run(insert, id=2, item="y")
            assert 2 == tx.run("UPDATE orders SET item = item || :more", more="!")
            assert 0 == tx.run("UPDATE orders SET item = 'z' WHERE id = :id", id=9)
            assert 0 == tx.run("DELETE FROM orders WHERE id = 9")
            assert (2,) == tx.one("SELECT count(*) FROM orders")
            assert tx.one("SELECT id FROM orders WHERE id = :id", id=9) is None
            assert [] == tx.all("SELECT id FROM orders WHERE item = ':id'")
            assert [("x!",), ("y!",)] == tx.all("SELECT item FROM orders ORDER BY id;")
            assert (3,) == tx.one(
                "INSERT INTO orders VALUES (:id, :item) RETURNING id", id=3, item="set"
            )

        await app.write(ask)

        assert 3 == len(await orders(app))


@pytest.mark.parametrize(
    ("sql", "params", "gist"),
    [
        ("COMMIT", {}, "commits when fn returns"),
        (" -- end it\n rollback", {}, "commits when fn returns"),
        ("/* so */ SAVEPOINT x", {}, "commits when fn returns"),
        ("BEGIN", {}, "commits when fn returns"),
        ("INSERT INTO orders VALUES (1, 'a'); COMMIT", {}, "one statement at a time"),
        ("SELECT 1; SELECT 2", {}, "one statement at a time"),
        ("", {}, "empty"),
        (" -- nothing", {}, "empty"),
        ("SELECT :a", {}, "names a and was given nothing"),
        ("SELECT 1", {"a": 1}, "names nothing and was given a"),
    ],
)
async def test_a_statement_that_is_not_one_or_not_the_callers_is_refused(
    database_url, sql, params, gist
):
    async with new_app(database_url) as app:
        await with_orders(app)

        def order(tx: Transaction) -> None:
            tx.run("INSERT INTO orders VALUES (1, 'chair')")
            tx.submit("ship", 1)
            tx.run(sql, **params)

        with pytest.raises(BadInput, match=gist):
            await app.write(order)

        assert [] == await orders(app)
        assert [] == await app.jobs()


async def test_a_trigger_of_the_caller_is_one_statement_on_sqlite(tmp_path):
    async with new_app(f"sqlite:///{tmp_path / 'work.db'}") as app:
        await with_orders(app)

        await app.write(
            lambda tx: tx.run(
                "CREATE TRIGGER loud AFTER INSERT ON orders BEGIN"
                " UPDATE orders SET item = upper(item); END"
            )
        )
        await app.write(lambda tx: tx.run("INSERT INTO orders VALUES (1, 'chair')"))

        assert [(1, "CHAIR")] == await orders(app)


async def test_the_transaction_is_of_no_use_after_its_function(database_url):
    async with new_app(database_url) as app:
        kept = await app.write(lambda tx: tx)

        with pytest.raises(BadInput, match="has ended"):
            kept.submit("ship", 1)
        with pytest.raises(BadInput, match="has ended"):
            kept.run("SELECT 1")

        assert [] == await app.jobs()


async def test_an_async_function_is_refused(database_url):
    async with new_app(database_url) as app:

        async def order(tx: Transaction) -> None:
            tx.submit("ship", 1)

        given: list[Any] = [order, lambda tx: [order(tx)][0]]
        for each in given:
            with pytest.raises(BadInput, match="plain function"):
                await app.write(each)

        assert [] == await app.jobs()


async def test_bad_input_inside_is_refused_with_everything_else(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)
        asked: list[Any] = [
            lambda tx: tx.submit("nobody", 1),
            lambda tx: tx.submit("ship", 1, priority=9999),
            lambda tx: tx.submit("ship", 1, deadline=0),
            lambda tx: tx.submit_many("ship", [1], keys=["a", "b"]),
        ]
        for ask in asked:

            def order(tx: Transaction, ask: Any = ask) -> None:
                tx.run("INSERT INTO orders VALUES (1, 'chair')")
                ask(tx)

            with pytest.raises((BadInput, UnknownKind)):
                await app.write(order)

        assert [] == await orders(app)
        assert [] == await app.jobs()


async def test_a_commit_whose_reply_is_lost_is_unsure(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)

        with crash_at("write.after_commit", Harm.REPLY_LOST), pytest.raises(Unsure):
            await app.write(lambda tx: tx.submit("ship", 1))

        assert 1 == len(await app.jobs())


async def test_a_crash_before_the_commit_leaves_nothing(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)

        def order(tx: Transaction) -> None:
            tx.run("INSERT INTO orders VALUES (1, 'chair')")
            tx.submit("ship", 1)

        with crash_at("write.before_commit"), pytest.raises(Exception, match="before_commit"):
            await app.write(order)

        assert [] == await orders(app)
        assert [] == await app.jobs()


async def test_many_callers_at_once_each_get_their_own_answer(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)

        def order(n: int) -> Any:
            def write(tx: Transaction) -> int:
                tx.run("INSERT INTO orders VALUES (:n, 'x')", n=n)
                job = tx.submit("ship", n)
                if n % 3 == 0:
                    raise ValueError(n)
                return job.id

            return app.write(write)

        answers = await asyncio.gather(*map(order, range(30)), return_exceptions=True)

        failed = {str(each) for each in answers if isinstance(each, ValueError)}
        assert {str(n) for n in range(30) if n % 3 == 0} == failed
        made = {each for each in answers if isinstance(each, int)}
        assert 20 == len(made) == len(await orders(app))
        assert made == {job.id for job in await app.jobs()}


async def test_on_postgresql_the_callers_jobs_are_not_ours(postgres_url):
    async with new_app(postgres_url) as app:

        def order(tx: Transaction) -> None:
            tx.run("CREATE TABLE jobs (id integer, title text)")
            tx.submit("ship", 1)
            tx.run("INSERT INTO jobs VALUES (1, 'cook'), (2, 'cleaner')")
            tx.submit_many("ship", [2, 3])
            assert 2 == tx.run("UPDATE jobs SET title = upper(title)")
            assert [(1,), (2,)] == tx.all("SELECT id::integer FROM jobs ORDER BY id")
            tx.run("TRUNCATE jobs")

        await app.write(order)
        await drain(app)

        assert {State.DONE: 3} == await app.insights.counts()
        assert [(0,)] == await app.write(lambda tx: tx.all("SELECT count(*) FROM public.jobs"))


async def test_a_table_may_be_changed_between_two_writes(database_url):
    async with new_app(database_url) as app:
        await with_orders(app)
        for _ in range(4):
            await app.write(lambda tx: tx.all("SELECT * FROM orders"))

        await app.write(lambda tx: tx.run("ALTER TABLE orders ADD COLUMN paid integer"))
        await app.write(lambda tx: tx.run("INSERT INTO orders VALUES (1, 'chair', 1)"))

        assert [(1, "chair", 1)] == await app.write(lambda tx: tx.all("SELECT * FROM orders"))
