"""What only PostgreSQL must show: connections that break anywhere, poolers, deadlocks, no room."""

import asyncio
import contextlib
from random import Random
from typing import Any

import psycopg
import pytest

from retoma import Context, Retoma, State, db
from retoma.db import (
    Away,
    BadRow,
    Busy,
    Call,
    Full,
    Interrupted,
    Lane,
    ReplyLost,
    Transaction,
    adhoc,
)
from tests.proxy import Proxy

MAKE = adhoc("CREATE TABLE notes (id integer PRIMARY KEY, text text)")
ADD = adhoc("INSERT INTO notes VALUES (:id, 'note') RETURNING id")
IDS = adhoc("SELECT id FROM notes ORDER BY id")
ME = adhoc("SELECT pg_backend_pid()")
BAD = adhoc("SELECT 1 / CAST(:n AS integer)")


async def prepare(database: db.Database) -> None:
    await database.write(lambda tx: tx.run(MAKE), verb="make")


def add(*ids: int) -> Any:
    return lambda tx: [tx.run(ADD, id=each) for each in ids]


def add_at_once(id_: int) -> Any:
    return lambda tx: tx.finish(Call(ADD, {"id": id_}))


async def ids(database: db.Database) -> list[int]:
    return [row[0] for row in await database.read(lambda tx: tx.all(IDS))]


def backend(tx: Transaction) -> int:
    row = tx.one(ME)
    assert row is not None
    return int(row[0])


@pytest.fixture
def admin(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def end_backend(admin: "psycopg.Connection[Any]", pid: int) -> None:
    admin.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])


# — connections that end —


@pytest.mark.parametrize("lane", list(Lane))
@pytest.mark.parametrize("write", [add, add_at_once])
async def test_a_lane_whose_connection_was_ended_is_mended(postgres, admin, lane, write):
    await prepare(postgres)
    pid = await postgres.write(backend, verb="who", lane=lane)
    end_backend(admin, pid)

    with contextlib.suppress(ReplyLost):  # with `finish` nobody can tell; asking is another's
        await postgres.write(write(1), verb="add", lane=lane)
    await postgres.write(write(2), verb="add", lane=lane)

    assert 2 in await ids(postgres)
    assert pid != await postgres.write(backend, verb="who", lane=lane)


@pytest.mark.parametrize("lane", list(Lane))
async def test_a_connection_ended_within_a_transaction_is_asked_again(postgres, admin, lane):
    await prepare(postgres)
    calls: list[int] = []

    def write(tx: Transaction) -> None:
        tx.run(ADD, id=1)
        calls.append(backend(tx))
        if len(calls) == 1:
            end_backend(admin, calls[0])
        tx.run(ADD, id=2)

    await postgres.write(write, verb="add", lane=lane)

    assert 2 == len(set(calls))
    assert [1, 2] == await ids(postgres)


async def test_an_error_of_ours_while_the_connection_breaks_is_still_ours(postgres, admin):
    await prepare(postgres)

    def write(tx: Transaction) -> None:
        tx.run(ADD, id=1)
        end_backend(admin, backend(tx))
        raise LookupError("ours")

    with pytest.raises(LookupError, match="ours"):
        await postgres.write(write, verb="add")

    assert [] == await ids(postgres)
    await postgres.write(add(2), verb="add")


async def test_a_question_whose_connection_ends_is_asked_again(postgres, admin):
    await prepare(postgres)
    asked: list[int] = []

    def ask(tx: Transaction) -> list[Any]:
        asked.append(backend(tx))
        if len(asked) == 1:
            end_backend(admin, asked[0])
        return tx.all(IDS)

    assert [] == await postgres.read(ask)
    assert 2 == len(asked)


async def test_a_broken_ear_hears_again_and_tells_that_it_missed_something(postgres, admin):
    await prepare(postgres)
    await asyncio.to_thread(postgres.wait_bell, 0)
    pid = await postgres.write(backend, verb="who", lane=Lane.PULSE)
    end_backend(admin, pid)

    topics: set[str] = set()
    for _ in range(20):
        topics |= await asyncio.to_thread(postgres.wait_bell, 0.2)
        if topics:
            break

    assert {"*"} == topics
    await postgres.write(lambda tx: (tx.ring("quotes"), tx.run(ADD, id=1)), verb="add")
    assert {"quotes"} == await asyncio.to_thread(postgres.wait_bell, 20)


async def test_a_server_that_restarts_is_waited_for(durable_postgres, open_database):
    database = open_database(durable_postgres.dsn)
    await prepare(database)
    writing = asyncio.create_task(keep_writing(database))
    await asyncio.sleep(0.1)

    await asyncio.to_thread(durable_postgres.restart, "immediate")

    sure, unsure = await writing
    there = set(await ids(database))
    assert sure <= there <= sure | unsure
    assert 50 == len(sure | unsure)
    assert len(unsure) <= 1


async def keep_writing(database: db.Database) -> tuple[set[int], set[int]]:
    sure, unsure = set(), set()
    for n in range(50):
        try:
            await database.write(add(n), verb="add")
            sure.add(n)
        except ReplyLost:
            unsure.add(n)
        await asyncio.sleep(0.01)
    return sure, unsure


# — answers that get lost on real sockets —


@pytest.mark.parametrize("warm", [False, True])
async def test_the_lost_answer_to_a_commit_is_told_as_such(proxy, open_database, warm):
    """The commit happens; its answer never arrives: ReplyLost, never Away, never asked again."""
    database = open_database(proxy.url)
    await prepare(database)
    for n in range(10 * warm):  # statements prepared by now go over the wire otherwise
        await database.write(add_at_once(100 + n), verb="add")
    proxy.swallow_next_end()

    with pytest.raises(ReplyLost):
        await database.write(add_at_once(1), verb="add")

    assert proxy.swallowed.is_set()
    assert 1 in await ids(database)
    await database.write(add_at_once(2), verb="add")


async def test_the_lost_answer_to_a_commit_of_a_known_transaction_is_found(
    proxy, open_database
):
    """What takes more than one round trip has its transaction id before it commits."""
    database = open_database(proxy.url)
    await prepare(database)
    calls: list[int] = []

    def write(tx: Transaction) -> str:
        calls.append(1)
        tx.run(ADD, id=1)
        proxy.swallow_next_end()
        return "added"

    assert "added" == await database.write(write, verb="add")
    assert proxy.swallowed.is_set()
    assert [1] == calls
    assert [1] == await ids(database)


async def test_a_connection_cut_before_the_commit_is_asked_again(proxy, open_database):
    database = open_database(proxy.url)
    await prepare(database)
    calls: list[int] = []

    def write(tx: Transaction) -> None:
        calls.append(1)
        tx.run(ADD, id=1)
        if len(calls) == 1:
            proxy.cut()
        tx.run(ADD, id=2)

    await database.write(write, verb="add")

    assert [1, 1] == calls
    assert [1, 2] == await ids(database)


async def test_nobody_there_is_away_and_nothing_was_changed(proxy, open_database):
    database = open_database(proxy.url)
    await prepare(database)
    proxy.refuse()
    proxy.cut()

    with pytest.raises(Away) as caught:
        await database.write(lambda tx: tx.run(ADD, id=1), verb="add", patience=0.1)
    if isinstance(caught.value, ReplyLost):
        pytest.fail("nothing was sent, so nothing can be unsure")

    proxy.refuse(False)
    assert [] == await ids(database)


async def test_what_a_broken_connection_had_begun_ends_before_anything_is_asked_again(
    proxy, open_database, admin
):
    """The server does not know that we are gone: its half-done work would hold its locks."""
    database = open_database(proxy.url)
    await prepare(database)
    backends: list[int] = []

    def write(tx: Transaction) -> None:
        backends.append(backend(tx))
        tx.run(ADD, id=1)
        if len(backends) == 1:
            proxy.cut(leave_server=True)
        tx.run(ADD, id=2)

    began = asyncio.get_running_loop().time()
    await database.write(write, verb="add")

    assert asyncio.get_running_loop().time() - began < 4  # not by waiting for a lock
    assert [1, 2] == await ids(database)
    assert (
        []
        == admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE pid = %s", [backends[0]]
        ).fetchall()
    )


async def test_a_slow_network_only_takes_longer(proxy, open_database):
    database = open_database(proxy.url)
    await prepare(database)
    proxy.delay(0.02)

    await asyncio.gather(*(database.write(add(n), verb="add") for n in range(5)))

    assert list(range(5)) == await ids(database)


async def test_jobs_get_through_a_network_that_keeps_breaking(proxy):
    """E5, E7, E11 with connections cut and answers swallowed throughout."""
    ran: list[int] = []
    app = Retoma(proxy.url)

    @app.job
    async def quote(ctx: Context, n: int) -> int:
        return await ctx.step("double", double, n)

    async def double(n: int) -> int:
        ran.append(n)
        await asyncio.sleep(0.1)
        return 2 * n

    async with app:
        batch = await app.submit_many(quote, range(60))
        harm = asyncio.create_task(keep_breaking(proxy))
        await asyncio.wait_for(app.run(until_idle=True, slots=5, tick=0.2), 60)
        await harm

        assert {State.DONE: 60} == await batch.counts()
        assert list(range(60)) == sorted(ran)
        for job in await app.jobs(limit=100):
            events = await app.events(job.id)
            assert list(range(1, len(events) + 1)) == [event.seq for event in events]
            told = [str(event.type) for event in events if event.epoch]
            assert ["claimed", "step_saved", "done"] == told  # no attempt is spent by a cut


async def keep_breaking(proxy: Proxy) -> None:
    for nth in range(14):
        await asyncio.sleep(0.15)
        if nth % 2:
            proxy.swallow_next_end()
        else:
            await asyncio.to_thread(proxy.cut)


# — behind a transaction pooler —


async def test_behind_a_transaction_pooler_jobs_flow_by_the_tick(postgres_url, admin):
    """Every transaction may meet another session: nothing may be kept in one, nobody is heard."""
    ran: list[int] = []
    with Proxy(postgres_url) as pooler:
        app = Retoma(f"{pooler.url}?pooler=transaction")

        @app.job
        async def quote(ctx: Context, n: int) -> int:
            return await ctx.step("double", double, n)

        async def double(n: int) -> int:
            ran.append(n)
            return 2 * n

        async with app:
            database = await app.database()
            assert database.deaf()
            running = asyncio.create_task(app.run(tick=0.2, slots=5))
            forgetting = asyncio.create_task(keep_forgetting(database))
            batch = await app.submit_many(quote, range(30))
            await asyncio.wait_for(batch.wait(), 30)
            assert set() == await asyncio.to_thread(database.wait_bell, 0.01)
            app.stop()
            await running
            forgetting.cancel()

            assert {State.DONE: 30} == await batch.counts()
            assert list(range(30)) == sorted(ran)
            listening = admin.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE query ILIKE 'listen%' AND datname = current_database()"
            ).fetchone()
            assert (0,) == listening


async def keep_forgetting(database: db.Database) -> None:
    """What a pooler does between two transactions of different clients."""
    for line in [*database._lines.values()] * 1_000:  # type: ignore[attr-defined]
        await asyncio.get_running_loop().run_in_executor(line.thread, forget, line)
        await asyncio.sleep(0.005)


def forget(line: Any) -> None:
    with line._mine:
        if line._connection is not None and not line._connection.closed:
            line._connection.execute("DISCARD ALL")


async def test_behind_a_pooler_a_finish_is_one_transaction_in_our_schema(
    postgres_url, open_database
):
    database = open_database(f"{postgres_url}?pooler=transaction")
    await prepare(database)
    where = adhoc("SELECT current_setting('search_path'), current_setting('enable_seqscan')")

    [row], added = await database.write(
        lambda tx: tx.finish(Call(where, {}), Call(ADD, {"id": 1})), verb="add"
    )

    assert ("retoma, public", "off") == row
    assert [(1,)] == added
    assert [1] == await ids(database)


# — refusals in the server's own words —


async def test_a_deadlock_is_busy_and_asked_again(postgres_url, open_database):
    ours, theirs = open_database(postgres_url), open_database(postgres_url)
    await prepare(ours)
    await ours.write(add(1, 2), verb="add")
    lock = adhoc("UPDATE notes SET text = 'locked' WHERE id = :id")
    met = asyncio.Event()
    loop = asyncio.get_running_loop()
    tried: list[str] = []

    def crosswise(name: str, first: int, second: int) -> Any:
        def write(tx: Transaction) -> None:
            tried.append(name)
            tx.run(lock, id=first)
            if len(tried) == 2:
                loop.call_soon_threadsafe(met.set)
            asyncio.run_coroutine_threadsafe(met.wait(), loop).result(10)
            tx.run(lock, id=second)

        return write

    await asyncio.gather(
        ours.write(crosswise("ours", 1, 2), verb="lock"),
        theirs.write(crosswise("theirs", 2, 1), verb="lock"),
    )

    assert 3 <= len(tried)


async def test_without_patience_a_deadlock_is_told(postgres, admin):
    raising = adhoc("SELECT 1", "DO $$BEGIN RAISE SQLSTATE '40P01'; END$$")

    with pytest.raises(Busy):
        await postgres.write(lambda tx: tx.run(raising), verb="lock", patience=0)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("08006", Away),
        ("22000", BadRow),
        ("40001", Busy),
        ("44000", BadRow),
        ("54000", BadRow),
        ("57014", Interrupted),
        ("57P03", Away),
        ("58030", Away),
    ],
)
async def test_a_refusal_of_the_server_is_told_by_its_kind(postgres, state, kind):
    raising = adhoc("SELECT 1", f"DO $$BEGIN RAISE SQLSTATE '{state}'; END$$")

    with pytest.raises(db.DatabaseError) as caught:
        await postgres.write(lambda tx: tx.run(raising), verb="refused", patience=0)

    assert kind is type(caught.value)
    await prepare(postgres)


async def test_a_row_too_large_for_an_index_is_a_bad_row(postgres):
    await postgres.write(
        lambda tx: tx.run(adhoc("CREATE TABLE wide (text text PRIMARY KEY)")), verb="make"
    )
    wide = Random(1).randbytes(5_000).hex()  # of which nothing can be spared

    with pytest.raises(BadRow, match="index row"):
        await postgres.write(
            lambda tx: tx.run(adhoc("INSERT INTO wide VALUES (:text)"), text=wide), verb="add"
        )


async def test_a_statement_out_of_its_time_is_asked_again_unless_it_is_a_callers(postgres):
    """A caller's own may never come to an end; whoever asks again must know."""
    tries: list[int] = []
    limit = adhoc("SET LOCAL statement_timeout = '50ms'")
    sleep = adhoc("SELECT pg_sleep(10)")

    def ours(tx: Transaction) -> None:
        tries.append(1)
        if len(tries) == 1:
            tx.run(limit)
            tx.one(sleep)

    def callers(tx: Transaction) -> None:
        tx.run(limit)
        tx.for_caller(sleep)

    await postgres.write(ours, verb="slow")
    with pytest.raises(Interrupted) as caught:
        await postgres.write(callers, verb="slow", patience=0)

    assert 2 == len(tries)
    assert caught.value.callers


async def test_a_statement_that_the_server_has_forgotten_is_asked_on_a_new_connection(
    postgres,
):
    """As where somebody else on the way to the server has forgotten all that was prepared."""
    await prepare(postgres)
    tries: list[int] = []

    def write(tx: Transaction) -> None:
        tries.append(backend(tx))
        tx.run(ADD, id=1)
        if len(tries) == 1:
            tx.run(adhoc("EXECUTE forgotten"))

    await postgres.write(write, verb="add")

    assert 2 == len(set(tries))
    assert [1] == await ids(postgres)


async def test_no_room_on_the_server_is_full_and_recovers(postgres, admin):
    """F8, MECHANICS 18: SQLSTATE 53100 raised by a trigger."""
    await prepare(postgres)
    no_room(admin, "notes")

    with pytest.raises(Full):
        await postgres.write(add(1), verb="add")
    with pytest.raises(Full):
        await postgres.write(add_at_once(1), verb="add")

    admin.execute("DROP TRIGGER no_room ON notes")
    await postgres.write(add(1), verb="add")
    assert [1] == await ids(postgres)


async def test_a_runner_waits_while_the_server_has_no_room_and_then_goes_on(
    postgres_url, admin
):
    """F8: jobs are neither lost nor failed, and no step runs twice."""
    ran: list[int] = []
    all_ran = asyncio.Event()
    app = Retoma(postgres_url)

    @app.job
    async def quote(ctx: Context, n: int) -> int:
        return await ctx.step("double", double, n)

    async def double(n: int) -> int:
        ran.append(n)
        if len(ran) == 10:
            all_ran.set()
        return 2 * n

    async with app:
        batch = await app.submit_many(quote, range(10))
        no_room(admin, "retoma.steps")
        running = asyncio.create_task(app.run(until_idle=True, tick=0.2))
        await asyncio.wait_for(all_ran.wait(), 20)
        await asyncio.sleep(0.2)
        assert {State.RUNNING: 10} == await batch.counts()

        admin.execute("DROP TRIGGER no_room ON retoma.steps")
        await asyncio.wait_for(running, 20)

        assert {State.DONE: 10} == await batch.counts()
        assert list(range(10)) == sorted(ran)


def no_room(admin: "psycopg.Connection[Any]", table: str) -> None:
    admin.execute(
        "CREATE OR REPLACE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE SQLSTATE '53100' USING MESSAGE = 'could not extend file'; END$$"
    )
    admin.execute(
        f"CREATE TRIGGER no_room BEFORE INSERT ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.no_room()"
    )


async def test_no_error_message_shows_a_password(proxy, open_database):
    proxy.refuse()
    database = open_database(proxy.url)

    with pytest.raises(Away) as caught:
        await database.write(add(1), verb="add", patience=0)

    secret = proxy.url.split("@")[0].rpartition(":")[2]
    assert secret not in str(caught.value)


async def test_d6_a_connection_outlives_any_number_of_groups_that_failed(postgres):
    """What a broken-off pipeline was to prepare is forgotten each time, not only the first."""
    await postgres.write(lambda tx: tx.run(MAKE), verb="make")
    good = [adhoc(f"SELECT {n} + CAST(:n AS integer)") for n in range(3)]

    def group(tx: Transaction, *, fails: bool) -> Any:
        calls = [Call(each, {"n": 1}) for each in good]
        return tx.finish(*calls, *([Call(BAD, {"n": 0})] if fails else []))

    for _ in range(4):  # the first fails before anything is prepared
        with pytest.raises(BadRow):
            await postgres.write(lambda tx: group(tx, fails=True), verb="bad")
        for _ in range(3):
            answers = await postgres.write(lambda tx: group(tx, fails=False), verb="good")
            assert [[(1,)], [(2,)], [(3,)]] == answers
