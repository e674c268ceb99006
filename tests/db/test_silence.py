"""A network that swallows what is said on it: no answer, no end, nobody told. Only PostgreSQL has one."""

import asyncio

import pytest

from retoma import db
from retoma.db import Away, Call, ReplyLost, Unfit, adhoc, migrations
from retoma.engine import store
from retoma.engine.ports import Process
from retoma.engine.store import Boot
from tests.db.conftest import Opener
from tests.proxy import Proxy

ANSWER = 0.4  # seconds: what is said to these databases is short
MAKE = adhoc("CREATE TABLE notes (id integer PRIMARY KEY)")
ADD = adhoc("INSERT INTO notes VALUES (:id) RETURNING id")
IDS = adhoc("SELECT id FROM notes ORDER BY id")
SLOW = adhoc("SELECT pg_sleep(:seconds)")
BOOTED = adhoc("SELECT count(*) FROM audit WHERE verb = 'runner.booted'")
PATIENCE = 60.0  # seconds of a loaded machine: nobody waits that long who is not stuck


@pytest.fixture
def impatient(proxy: Proxy, open_database: Opener) -> db.Database:
    """Whoever asks it hears of silence soon."""
    return open_database(f"{proxy.url}?answer={ANSWER}")


async def prepare(database: db.Database) -> None:
    await database.write(lambda tx: tx.run(MAKE), verb="make")
    await ids(database)  # both lines are there now


async def ids(database: db.Database) -> list[int]:
    async with asyncio.timeout(PATIENCE):
        return [row[0] for row in await database.read(lambda tx: tx.all(IDS))]


async def add(database: db.Database, id_: int, *, patience: float | None = None) -> None:
    async with asyncio.timeout(PATIENCE):
        await database.write(
            lambda tx: tx.finish(Call(ADD, {"id": id_})), verb="add", patience=patience
        )


async def test_a_commit_whose_answer_never_comes_is_told_as_such(proxy, impatient):
    """E7: what was asked arrives and is done; that nobody answers ends the wait all the same."""
    await prepare(impatient)
    proxy.silence(requests=False)

    with pytest.raises(ReplyLost):
        await add(impatient, 1)

    proxy.speak()
    assert [1] == await ids(impatient)
    await add(impatient, 2)


async def test_a_connection_that_everybody_forgot_is_given_up_and_asked_anew(proxy, impatient):
    """As when a firewall has lost its table: the old connection is open for ever, and dead."""
    await prepare(impatient)
    proxy.silence()
    asked = asyncio.ensure_future(ids(impatient))
    await asyncio.sleep(0)
    proxy.speak()

    assert [] == await asked


async def test_what_the_server_is_still_at_may_take_its_time(proxy, impatient):
    """E2: long work is no silence. It is looked after several times, and left alone."""
    await prepare(impatient)

    def slow(tx: db.Transaction) -> None:
        tx.run(ADD, id=1)
        tx.one(SLOW, seconds=5 * ANSWER)

    async with asyncio.timeout(PATIENCE):
        await impatient.write(slow, verb="slow", patience=0)

    assert [1] == await ids(impatient)


async def test_a_beat_without_an_answer_ends_in_time(proxy, impatient):
    await prepare(impatient)
    await asyncio.to_thread(impatient.write_now, lambda tx: tx.run(ADD, id=1), verb="beat")
    proxy.silence()

    with pytest.raises(Away):
        await asyncio.wait_for(
            asyncio.to_thread(impatient.write_now, lambda tx: tx.run(ADD, id=2), verb="beat"),
            PATIENCE,
        )

    proxy.speak()
    await asyncio.to_thread(impatient.write_now, lambda tx: tx.run(ADD, id=3), verb="beat")
    assert [1, 3] == await ids(impatient)


async def test_nobody_waits_for_an_answer_when_the_house_is_closed(proxy):
    database = db.open(f"{proxy.url}?answer={ANSWER}")
    await prepare(database)
    proxy.silence()
    asked = asyncio.ensure_future(database.write(lambda tx: tx.run(ADD, id=1), verb="add"))
    await asyncio.sleep(0)
    asked.cancel()

    await asyncio.wait_for(asyncio.to_thread(database.close), PATIENCE)


async def test_a_session_asks_whether_its_client_is_there(postgres_url, open_database):
    """A host that vanished must not keep its connections, nor the rows it was at, for hours."""
    database = open_database(postgres_url)
    shown = {}
    for name in ("tcp_keepalives_idle", "idle_in_transaction_session_timeout"):
        asked = adhoc(f"SHOW {name}")
        row = await database.write(lambda tx, asked=asked: tx.one(asked), verb="show")
        shown[name] = row[0] if row else None

    assert {
        "tcp_keepalives_idle": "10",
        "idle_in_transaction_session_timeout": "20s",
    } == shown


async def test_what_the_address_says_of_the_wire_holds(postgres_url, open_database):
    database = open_database(f"{postgres_url}?keepalives_idle=77&answer=3")

    connection = await database.write(
        lambda tx: tx._connection.info.get_parameters(), verb="who"
    )

    assert ("77", "5") == (connection["keepalives_idle"], connection["keepalives_interval"])


@pytest.mark.parametrize("told", ["0", "-1", "soon", "inf", ""])
def test_an_answer_is_waited_for_so_many_seconds(postgres_url, told):
    if told == "":
        db.open(f"{postgres_url}?answer=").close()  # left out
        return
    with pytest.raises(Unfit, match=f"answer={told}"):
        db.open(f"{postgres_url}?answer={told}")


async def test_a_boot_whose_answer_was_lost_is_one_boot(database_url, open_database):
    """E4: it is asked again, and is there already."""
    database = open_database(database_url)
    await migrations.upgrade(database)
    me = Boot(id="me", name="me", process=Process.this(), version="", slots=1, knows=[])

    for _ in range(2):
        await database.write(lambda tx: store.boot_runner(tx, me, 60.0), verb="boot")

    row = await database.read(lambda tx: tx.one(BOOTED))
    assert (1,) == tuple(row or ())
