"""The promises of the seam, one list, run on both databases."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from retoma import db
from retoma.console.processes import Held
from retoma.db import (
    Away,
    BadRow,
    Busy,
    Call,
    Full,
    Lane,
    ReplyLost,
    Transaction,
    Unfit,
    adhoc,
    crashpoint,
)
from retoma.db.crashpoint import Harm
from tests.descriptors import files_left

MAKE = adhoc(
    "CREATE TABLE notes (id integer PRIMARY KEY, text text NOT NULL CHECK (text <> 'bad'))"
)
ADD = adhoc("INSERT INTO notes VALUES (:id, :text)")
ADD_AND_TELL = adhoc("INSERT INTO notes VALUES (:id, :text) RETURNING id, text")
IDS = adhoc("SELECT id FROM notes ORDER BY id")
CHANGE = adhoc("UPDATE notes SET text = :text WHERE id <= :id")


@pytest.fixture(autouse=True)
def nothing_armed():
    yield
    crashpoint.disarm()


async def prepare(database: db.Database) -> None:
    await database.write(lambda tx: tx.run(MAKE), verb="make")


def add(*ids: int) -> Any:
    def write(tx: Transaction) -> int:
        return sum(tx.run(ADD, id=each, text=f"note {each}") for each in ids)

    return write


async def ids(database: db.Database) -> list[int]:
    return [row[0] for row in await database.read(lambda tx: tx.all(IDS))]


# — writing —


async def test_nothing_is_opened_until_it_is_asked_something(database_url, tmp_path):
    db.open(database_url).close()

    assert [] == list(tmp_path.iterdir())


async def test_a_write_is_committed_when_it_returns(database_url, open_database):
    ours, theirs = open_database(database_url), open_database(database_url)
    await prepare(ours)

    assert 2 == await ours.write(add(1, 2), verb="add")

    assert [1, 2] == await ids(theirs)


async def test_an_error_undoes_the_whole_transaction_and_is_raised_as_it_was(database):
    await prepare(database)

    def half(tx: Transaction) -> None:
        tx.run(ADD, id=1, text="kept?")
        raise LookupError("changed my mind")

    with pytest.raises(LookupError, match="changed my mind"):
        await database.write(half, verb="add")

    assert [] == await ids(database)


async def test_an_error_in_one_of_many_concurrent_asks_costs_only_itself(database):
    await prepare(database)
    await database.write(add(1000), verb="add")

    def of(n: int) -> Any:
        def write(tx: Transaction) -> None:
            tx.run(ADD, id=n, text=f"note {n}")
            if n % 10 == 3:
                raise LookupError(n)
            if n % 10 == 7:
                tx.run(ADD, id=1000, text="there already")

        return write

    told = await asyncio.gather(
        *(database.write(of(n), verb="add") for n in range(100)), return_exceptions=True
    )

    kept = [n for n in range(100) if n % 10 not in (3, 7)]
    assert [*kept, 1000] == await ids(database)
    assert kept == [n for n, error in enumerate(told) if error is None]
    assert {LookupError} == {type(told[n]) for n in range(3, 100, 10)}
    assert {BadRow} == {type(told[n]) for n in range(7, 100, 10)}


async def test_finish_sends_its_calls_and_the_commit_together(database):
    await prepare(database)

    answers = await database.write(
        lambda tx: tx.finish(
            Call(ADD_AND_TELL, {"id": 1, "text": "one"}),
            Call(ADD, {"id": 2, "text": "two"}),
            Call(IDS, {}),
        ),
        verb="add",
    )

    assert [[(1, "one")], [], [(1,), (2,)]] == answers
    assert [1, 2] == await ids(database)


async def test_finish_of_a_single_call_commits_it_too(database):
    await prepare(database)

    [[row]] = await database.write(
        lambda tx: tx.finish(Call(ADD_AND_TELL, {"id": 1, "text": "one"})), verb="add"
    )

    assert (1, "one") == row
    assert [1] == await ids(database)


async def test_finish_ends_what_was_begun_before_it(database):
    await prepare(database)

    def write(tx: Transaction) -> Any:
        tx.run(ADD, id=1, text="one")
        return tx.finish(Call(ADD, {"id": 2, "text": "two"}), Call(IDS, {}))

    assert [[], [(1,), (2,)]] == await database.write(write, verb="add")
    assert [1, 2] == await ids(database)


@pytest.mark.parametrize("before", [True, False])
async def test_an_error_among_the_calls_of_finish_undoes_them_all(database, before):
    await prepare(database)

    def write(tx: Transaction) -> Any:
        if before:
            tx.run(ADD, id=1, text="one")
        return tx.finish(
            Call(ADD, {"id": 2, "text": "two"}),
            Call(ADD, {"id": 2, "text": "two again"}),
            Call(ADD, {"id": 3, "text": "three"}),
        )

    with pytest.raises(BadRow):
        await database.write(write, verb="add")

    assert [] == await ids(database)
    assert 1 == await database.write(add(4), verb="add")  # and the next asker is not hurt


async def test_run_tells_how_many_rows_it_changed(database):
    await prepare(database)
    await database.write(add(1, 2, 3), verb="add")

    assert 2 == await database.write(lambda tx: tx.run(CHANGE, id=2, text="x"), verb="change")
    assert 0 == await database.write(lambda tx: tx.run(CHANGE, id=0, text="x"), verb="change")


async def test_zero_rows_is_an_answer(database):
    await prepare(database)

    assert await database.read(lambda tx: tx.one(IDS)) is None
    assert [] == await database.read(lambda tx: tx.all(IDS))


@pytest.mark.parametrize("lane", list(Lane))
async def test_every_lane_writes(database, lane):
    await prepare(database)

    await database.write(add(1), verb="add", lane=lane)

    assert [1] == await ids(database)


async def test_a_thread_may_write_without_a_loop(database):
    await prepare(database)

    assert 1 == await asyncio.to_thread(database.write_now, add(1), verb="add")

    assert [1] == await ids(database)


async def test_together_sends_many_statements_and_gives_each_its_answer(database):
    await prepare(database)
    made: list[int] = []

    def calls() -> Iterator[Call]:
        for n in range(20):
            made.append(n)
            yield Call(ADD_AND_TELL, {"id": n, "text": f"note {n}"})

    def write(tx: Transaction) -> list[list[Any]]:
        tx.run(ADD, id=100, text="before")
        answers = tx.together(calls())
        tx.run(ADD, id=101, text="after")
        return answers

    answers = await database.write(write, verb="add")

    assert [[(n, f"note {n}")] for n in range(20)] == answers
    assert [*range(20), 100, 101] == await ids(database)


async def test_an_error_among_statements_sent_together_undoes_them_all(database):
    await prepare(database)

    def write(tx: Transaction) -> None:
        tx.together(Call(ADD, {"id": each, "text": "note"}) for each in (1, 2, 2, 3))

    for _ in range(3):  # and the connection is as good as before
        with pytest.raises(BadRow):
            await database.write(write, verb="add")

    assert [] == await ids(database)
    await database.write(add(1, 2, 3), verb="add")
    assert [1, 2, 3] == await ids(database)


# — reading —


async def test_a_read_sees_one_moment_whatever_is_committed_meanwhile(
    database_url, open_database
):
    ours, theirs = open_database(database_url), open_database(database_url)
    await prepare(ours)
    await ours.write(add(1), verb="add")
    loop = asyncio.get_running_loop()

    def twice(tx: Transaction) -> tuple[list[Any], list[Any]]:
        first = tx.all(IDS)
        write = theirs.write(add(2), verb="add")
        asyncio.run_coroutine_threadsafe(write, loop).result(10)
        return first, tx.all(IDS)

    first, second = await ours.read(twice)

    assert [(1,)] == first == second
    assert [1, 2] == await ids(ours)


async def test_a_question_cannot_change_anything(database):
    await prepare(database)

    with pytest.raises(Exception, match=r"read-?only"):
        await database.read(add(1))

    assert [] == await ids(database)


async def test_a_failed_question_leaves_the_next_one_alone(database):
    await prepare(database)

    def ask(tx: Transaction) -> None:
        tx.all(IDS)
        raise LookupError

    with pytest.raises(LookupError):
        await database.read(ask)

    assert [] == await ids(database)


# — when the answer is missing —


async def test_a_lost_answer_to_a_commit_is_told_and_not_asked_again(database):
    await prepare(database)
    calls: list[int] = []
    crashpoint.arm("add.after_commit", Harm.REPLY_LOST)

    def write(tx: Transaction) -> None:
        calls.append(1)
        add(1)(tx)

    with pytest.raises(ReplyLost):
        await database.write(write, verb="add")

    assert [1] == calls
    assert [1] == await ids(database)
    await database.write(add(2), verb="add")


async def test_a_lost_answer_to_finish_is_told_too(database):
    await prepare(database)
    crashpoint.arm("add.after_commit", Harm.REPLY_LOST)

    with pytest.raises(ReplyLost):
        await database.write(
            lambda tx: tx.finish(Call(ADD, {"id": 1, "text": "one"})), verb="add"
        )

    assert [1] == await ids(database)


async def test_an_error_before_the_commit_changes_nothing(database):
    await prepare(database)
    crashpoint.arm("add.before_commit", Harm.EXCEPTION)

    with pytest.raises(Exception, match=r"add\.before_commit"):
        await database.write(add(1), verb="add")

    assert [] == await ids(database)


async def test_one_lost_answer_among_many_askers_is_one_askers_own(database):
    await prepare(database)
    crashpoint.arm("add.after_commit", Harm.REPLY_LOST, 3)

    told = await asyncio.gather(
        *(database.write(add(n), verb="add") for n in range(10)), return_exceptions=True
    )

    assert [ReplyLost] == [type(error) for error in told if isinstance(error, Exception)]
    assert list(range(10)) == await ids(database)


# — patience —


async def test_what_lost_a_race_is_asked_again(database):
    await prepare(database)
    calls: list[int] = []

    def write(tx: Transaction) -> None:
        add(1)(tx)
        calls.append(1)
        if len(calls) < 3:
            raise Busy("somebody was first")

    await database.write(write, verb="add")

    assert 3 == len(calls)
    assert [1] == await ids(database)


async def test_without_patience_it_is_asked_once(database):
    await prepare(database)
    calls: list[int] = []

    def write(tx: Transaction) -> None:
        calls.append(1)
        raise Busy("somebody was first")

    with pytest.raises(Busy):
        await database.write(write, verb="add", patience=0)

    assert [1] == calls


@pytest.mark.parametrize("error", [BadRow, Full, Unfit])
async def test_what_asking_again_cannot_mend_is_asked_once(database, error):
    await prepare(database)
    calls: list[int] = []

    def write(tx: Transaction) -> None:
        calls.append(1)
        raise error("no")

    with pytest.raises(error):
        await database.write(write, verb="add")

    assert [1] == calls


async def test_a_database_that_is_away_is_asked_until_patience_ends(
    database_url, open_database, tmp_path
):
    (tmp_path / "folder").mkdir()
    with closing(Held("127.0.0.1", 0)) as held:  # nobody listens there
        away = (
            f"sqlite:///{tmp_path / 'folder'}"
            if database_url.startswith("sqlite")
            else f"postgresql://nobody@127.0.0.1:{held.port}/none"
        )
        database = open_database(away)
        began = asyncio.get_running_loop().time()

        with pytest.raises(Away):
            await database.write(add(1), verb="add", patience=0.3)

    assert 0.1 < asyncio.get_running_loop().time() - began < 5


# — the bell —


def drained(database: db.Database) -> None:
    """Whatever connecting itself rings is heard and forgotten."""
    database.wait_bell(0)


async def test_a_ring_is_heard_by_every_process_after_its_commit(database_url, open_database):
    ours, theirs = open_database(database_url), open_database(database_url)
    await prepare(ours)
    drained(ours)
    drained(theirs)

    def write(tx: Transaction) -> set[str]:
        tx.ring("quotes")
        tx.ring("quotes")
        tx.ring("mail")
        add(1)(tx)
        heard_early: set[str] = theirs.wait_bell(0.05)
        return heard_early

    assert set() == await ours.write(write, verb="add"), "rung before the commit"

    assert {"quotes", "mail"} == await heard(theirs, 2)
    assert {"quotes", "mail"} == await heard(ours, 2)


async def test_finish_rings_too(database_url, open_database):
    ours, theirs = open_database(database_url), open_database(database_url)
    await prepare(ours)
    drained(theirs)

    def write(tx: Transaction) -> Any:
        tx.ring("quotes")
        return tx.finish(Call(ADD, {"id": 1, "text": "one"}))

    await ours.write(write, verb="add")

    assert {"quotes"} == await heard(theirs, 1)


async def test_nothing_rings_after_a_rollback(database):
    await prepare(database)
    drained(database)

    def write(tx: Transaction) -> None:
        tx.ring("quotes")
        add(1)(tx)
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(write, verb="add")

    assert set() == await asyncio.to_thread(database.wait_bell, 0.1)


async def test_of_two_askers_in_one_commit_only_the_one_that_succeeds_rings(database):
    await prepare(database)
    drained(database)

    def write(topic: str, n: int) -> Any:
        def ring(tx: Transaction) -> None:
            tx.ring(topic)
            add(n)(tx)
            if n == 2:
                raise LookupError

        return ring

    await asyncio.gather(
        *(database.write(write(f"topic {n}", n), verb="add") for n in (1, 2, 3)),
        return_exceptions=True,
    )

    assert {"topic 1", "topic 3"} == await heard(database, 2)
    assert set() == await asyncio.to_thread(database.wait_bell, 0.05)


async def test_a_bell_that_rang_before_anybody_waited_is_still_heard(database):
    await prepare(database)
    drained(database)

    await database.write(lambda tx: (tx.ring("quotes"), add(1)(tx)), verb="add")

    assert {"quotes"} == await heard(database, 1)


async def test_waiting_for_the_bell_ends_by_itself_and_by_waking(database):
    await prepare(database)
    drained(database)
    assert set() == await asyncio.to_thread(database.wait_bell, 0.01)
    waiting = asyncio.create_task(asyncio.to_thread(database.wait_bell, 60))
    await asyncio.sleep(0.05)

    database.wake()

    assert set() == await asyncio.wait_for(waiting, 20)


async def test_a_wake_before_the_waiting_is_not_lost(database):
    await prepare(database)
    drained(database)

    database.wake()

    waiting = asyncio.to_thread(database.wait_bell, 60)
    assert set() == await asyncio.wait_for(waiting, 20)


async def test_either_database_can_be_heard(database):
    assert not database.deaf()


async def heard(database: db.Database, topics: int) -> set[str]:
    """What rings until so many topics were heard, or twenty seconds have passed."""
    all_: set[str] = set()
    until = asyncio.get_running_loop().time() + 20
    while len(all_) < topics and asyncio.get_running_loop().time() < until:
        all_ |= await asyncio.to_thread(database.wait_bell, 0.5)
    return all_


# — values and refusals —


async def test_bytes_and_times_come_back_as_they_were(database):
    at = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
    content = bytes(range(256))
    give_back = adhoc(
        "SELECT :content, :at", "SELECT CAST(:content AS bytea), CAST(:at AS timestamptz)"
    )

    row = await database.read(lambda tx: tx.one(give_back, content=content, at=at))

    assert row is not None
    assert content == bytes(row[0])
    assert at == db.moment(row[1])


async def test_a_time_before_1970_comes_back_too(database):
    at = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    give_back = adhoc("SELECT :at", "SELECT CAST(:at AS timestamptz)")

    row = await database.read(lambda tx: tx.one(give_back, at=at))

    assert row is not None
    assert at == db.moment(row[0])


@pytest.mark.parametrize(
    ("id_", "text"), [(1, "taken"), (2, None), (2, "bad")], ids=["unique", "not null", "check"]
)
async def test_a_row_that_cannot_be_stored_is_a_bad_row(database, id_, text):
    await prepare(database)
    await database.write(add(1), verb="add")

    with pytest.raises(BadRow):
        await database.write(lambda tx: tx.run(ADD, id=id_, text=text), verb="add")

    assert [1] == await ids(database)


@pytest.mark.parametrize(
    "url",
    [
        "work.db",
        "mysql://localhost/work",
        "sqlite://work.db",
        "sqlite:///",
        "sqlite:///a.db?synchronous=off",
    ],
)
def test_an_address_nobody_can_use_is_refused_with_how_to_write_one(url):
    with pytest.raises(Unfit, match=r"sqlite:///work\.db|synchronous is one of"):
        db.open(url)


# — where no thread can be started —


async def test_what_no_thread_is_found_for_is_refused_and_never_done_later(database_url):
    """Its caller has been told that it failed, and asks again."""
    database = db.open(database_url)
    called: list[str] = []

    def write(tx: Transaction) -> None:
        called.append("write")

    usual = threading.stack_size(1 << 46)  # bytes: no system has them
    try:
        for ask in (
            database.write(write, verb="test", patience=0),
            database.read(lambda _: called.append("read"), patience=0),
        ):
            with pytest.raises(Away, match="can't start new thread"):
                await ask
    finally:
        threading.stack_size(usual)

    async with asyncio.timeout(30):
        await prepare(database)
        await database.write(add(1), verb="add")
        found = await ids(database)
    await asyncio.to_thread(database.close)

    assert ([1], []) == (found, called)


# — leaving —


async def test_close_leaves_no_thread_behind(database_url):
    before = {each for each in threading.enumerate() if "retoma" in each.name}
    database = db.open(database_url)
    await prepare(database)
    await ids(database)
    await asyncio.to_thread(database.wait_bell, 0)

    database.close()

    after = {each for each in threading.enumerate() if "retoma" in each.name}
    assert before == after


async def test_what_was_asked_before_the_close_is_still_answered(database_url, open_database):
    database = db.open(database_url)
    await prepare(database)
    asked = [asyncio.create_task(database.write(add(n), verb="add")) for n in range(20)]
    await asyncio.sleep(0)

    await asyncio.to_thread(database.close)
    told = await asyncio.gather(*asked, return_exceptions=True)

    kept = [n for n, error in enumerate(told) if not isinstance(error, BaseException)]
    assert kept == await ids(open_database(database_url))


# — when a thread meets what nobody expects


class Left(BaseException):
    """Not an error of any kind that somebody would catch, as SystemExit in a function of a user."""


async def test_a_write_that_raises_even_that_is_told_it_and_others_still_write(database):
    await prepare(database)

    def leave(tx: Transaction) -> None:
        tx.run(ADD, id=9, text="never")
        raise Left

    async with asyncio.timeout(20):
        functions = [add(1), leave, add(2)]
        told = await asyncio.gather(
            *(database.write(each, verb="add") for each in functions), return_exceptions=True
        )
        with pytest.raises(Left):
            await database.write(leave, verb="leave")
        await database.write(add(3), verb="add")

    assert [int, Left, int] == [type(each) for each in told]
    assert [1, 2, 3] == await ids(database)


async def test_without_a_file_to_open_the_database_is_away_until_there_is_one(database_url):
    """However few are left: a connection needs more than one, and any of them may be the last."""
    before = db.open(database_url)
    await prepare(before)
    await asyncio.to_thread(before.close)
    seen: list[type[Any]] = []
    written: list[int] = []
    for many in range(8):
        database = db.open(database_url)
        with files_left(many):
            seen += [await outcome(database.read(lambda tx: tx.all(IDS), patience=0))]
            seen += [await outcome(database.write(add_and_ring(many), verb="add", patience=0))]
        written += [many] if seen[-1] is type(None) else []
        async with asyncio.timeout(20):
            assert written == await ids(database)
        await asyncio.to_thread(database.close)

    assert {Away, type(None)} == set(seen)


def add_and_ring(id_: int) -> Any:
    def write(tx: Transaction) -> None:
        tx.run(ADD, id=id_, text="a note")
        tx.ring("notes")

    return write


async def outcome(asked: Awaitable[Any]) -> type[Any]:
    try:
        await asked
    except Exception as error:  # noqa: BLE001 — told by its kind
        return type(error)
    return type(None)


def test_what_is_left_on_the_disk_of_a_file_is_told(database, tmp_path):
    free = database.free_space()

    if database.dialect == "sqlite":
        assert free == pytest.approx(shutil.disk_usage(tmp_path).free, abs=1 << 30)
    else:
        assert free is None  # its disk is a server's
