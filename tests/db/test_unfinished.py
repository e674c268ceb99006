"""A connection to PostgreSQL breaks while its commit is under way: nothing is done twice, nothing is lost."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from retoma import db
from retoma.db import Away, Call, ReplyLost, Transaction, adhoc
from tests import services
from tests.db.conftest import Opener
from tests.proxy import Proxy
from tests.standby import connected, standby_gone, until_it_waits

MAKE = adhoc("CREATE TABLE notes (id integer)")
ADD = adhoc("INSERT INTO notes VALUES (:id) RETURNING id")
IDS = adhoc("SELECT id FROM notes ORDER BY id")
XID = "SELECT CAST(pg_current_xact_id() AS text)"
ME = adhoc("SELECT pg_backend_pid(), CAST(pg_current_xact_id() AS text)")
SOON = 30.0  # seconds of a loaded machine

POOLED = pytest.mark.parametrize("query", ["", "?pooler=transaction"], ids=["direct", "pooled"])


@pytest.fixture(scope="module")
def server() -> Iterator[services.PostgresServer]:
    """One of our own: its standbys come and go, and it crashes."""
    with services.PostgresServer(services.FAST) as running:
        yield running


@pytest.fixture
def url(server: services.PostgresServer) -> str:
    with connected(server) as admin:
        admin.execute("DROP SCHEMA IF EXISTS retoma CASCADE; DROP TABLE IF EXISTS notes")
    return server.dsn


@pytest.fixture
def cable(url: str) -> Iterator[Proxy]:
    with Proxy(url) as proxy:
        yield proxy


async def ids(database: db.Database) -> list[int]:
    return [row[0] for row in await database.read(lambda tx: tx.all(IDS))]


def add(tx: Transaction) -> str:
    tx.run(ADD, id=1)
    return "added"


def add_at_once(tx: Transaction) -> str:
    tx.finish(Call(ADD, {"id": 1}))
    return "added"


async def prepare(open_database: Opener, address: str) -> db.Database:
    database = open_database(address)
    await database.write(lambda tx: tx.run(MAKE), verb="make")
    await ids(database)  # both connections are there now
    return database


@POOLED
async def test_a_commit_that_happened_is_answered_and_not_repeated(
    server, cable, open_database, query
):
    database = await prepare(open_database, f"{cable.url}{query}")

    with connected(server) as admin, standby_gone(admin):
        writing = asyncio.create_task(database.write(add, verb="add"))
        await until_it_waits(admin, "SyncRep")
        await asyncio.to_thread(cable.cut, leave_server=True)
        # Whoever is committing now waits as well: only looks are made until the standby is back.
        told = await asyncio.wait_for(writing, SOON)

    assert "added" == told
    assert [1] == await ids(database)


@POOLED
async def test_what_is_asked_after_a_lost_answer_is_never_overtaken_by_the_commit(
    server, cable, open_database, query
):
    """The first look over any connection already sees what the broken one had under way."""
    database = await prepare(open_database, f"{cable.url}{query}")

    with connected(server) as admin, standby_gone(admin):
        writing = asyncio.create_task(database.write(add_at_once, verb="add", patience=0))
        await until_it_waits(admin, "SyncRep")
        await asyncio.to_thread(cable.cut, leave_server=True)
        with pytest.raises(ReplyLost):
            await writing
        first_look = await asyncio.wait_for(ids(database), SOON)

    assert [1] == first_look


@POOLED
async def test_a_commit_that_did_not_happen_is_repeated(server, cable, open_database, query):
    """The commit waits for a lock in a deferred trigger, and is rolled back when its process ends."""
    database = await prepare(open_database, f"{cable.url}{query}")
    with connected(server) as admin:
        admin.execute(WAIT_IN_COMMIT)
        admin.execute("SELECT pg_advisory_lock(1)")
        writing = asyncio.create_task(database.write(add, verb="add"))
        await until_it_waits(admin, "advisory")

        await asyncio.to_thread(cable.cut, leave_server=True)
        await until_it_waits(admin, "advisory")
        admin.execute("SELECT pg_advisory_unlock(1)")

        assert "added" == await asyncio.wait_for(writing, SOON)
        assert [1] == await ids(database)


WAIT_IN_COMMIT = """
CREATE OR REPLACE FUNCTION public.wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1); RETURN NULL; END$$;
CREATE CONSTRAINT TRIGGER wait_in_commit AFTER INSERT ON public.notes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.wait_in_commit();
"""


def restart(server: services.PostgresServer, pid: int) -> None:
    server.restart("immediate")


def kill_one_process(server: services.PostgresServer, pid: int) -> None:
    """The server ends all others and recovers, without a start of its own."""
    until = time.monotonic() + SOON
    with connected(server) as witness:
        os.kill(pid, signal.SIGKILL)
        # Until the server has noticed, it would still let us in.
        while answers(witness) and time.monotonic() < until:
            time.sleep(0.02)  # noqa: TID251 — the server is a process of its own
    while time.monotonic() < until:
        try:
            with connected(server):
                return
        except psycopg.OperationalError:
            time.sleep(0.02)  # noqa: TID251 — the server recovers in a process of its own


def answers(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.parametrize("crash", [restart, kill_one_process])
async def test_after_a_crash_the_id_of_another_transaction_is_not_taken_for_ours(
    server, cable, open_database, crash
):
    """What was not on disk is lost with its transaction id, and the server hands that out again."""
    database = await prepare(open_database, cable.url)
    lost: list[str] = []

    def write(tx: Transaction) -> None:
        [(pid, xid)] = tx.all(ME)
        lost.append(xid)
        tx.run(ADD, id=1)
        cable.refuse()
        crash(server, pid)
        take_ids_until(server, int(xid))
        cable.refuse(False)

    with pytest.raises(ReplyLost):
        await database.write(write, verb="add")

    assert 1 == len(lost)
    assert [] == await ids(database)


def take_ids_until(server: services.PostgresServer, lost: int) -> None:
    with connected(server) as admin:
        taken = 0
        while taken < lost:
            admin.execute("BEGIN")
            [(taken,)] = admin.execute(
                "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
            ).fetchall()
            admin.execute("COMMIT")


async def test_after_a_crash_nobody_is_ended_who_got_the_id_of_a_broken_transaction(
    server, cable, open_database
):
    """Behind a pooler a transaction is known by its id alone, which the server hands out again."""
    database = await prepare(open_database, f"{cable.url}?pooler=transaction")
    with ExitStack() as stack:
        others: list[psycopg.Connection[Any]] = []

        def write(tx: Transaction) -> None:
            if others:
                return
            [(_, xid)] = tx.all(ME)
            tx.run(ADD, id=1)
            cable.refuse()
            server.restart("immediate")
            others.append(stack.enter_context(connected(server)))
            begin_as(others[0], xid)
            cable.refuse(False)

        await asyncio.wait_for(database.write(write, verb="add"), SOON)

        assert [] == await ids(database)
        others[0].execute("INSERT INTO notes VALUES (2)")
        others[0].commit()

    assert [2] == await ids(database)


def begin_as(connection: "psycopg.Connection[Any]", xid: str) -> None:
    """Begin transactions until one has this id."""
    connection.autocommit = False
    while connection.execute(XID).fetchall() != [(xid,)]:
        connection.commit()


async def test_a_standby_is_not_asked_what_its_primary_is_at(server, cable, open_database):
    """Nothing is looked up and nothing repeated while only a standby answers."""
    database = await prepare(open_database, cable.url)

    def write(tx: Transaction) -> None:
        tx.run(ADD, id=1)
        server.stop("immediate")
        (server.data / "standby.signal").touch()
        server.start()

    with pytest.raises(ReplyLost):
        await database.write(write, verb="add", patience=0)
    with pytest.raises(Away, match="only a standby answers"):
        await database.read(lambda tx: tx.all(IDS), patience=2.0)
    (server.data / "standby.signal").unlink()
    await asyncio.to_thread(server.restart)

    assert [] == await ids(database)
