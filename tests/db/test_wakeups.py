"""Processes that share a SQLite file wake each other, whoever they are and wherever they run."""

import os
import pwd
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retoma import db
from retoma.db import EVERYTHING, Transaction, adhoc, wakeups
from retoma.engine.run.runner_options import TICK
from tests import nursery

MAKE = adhoc("CREATE TABLE notes (id integer PRIMARY KEY, text text)")
ADD = adhoc("INSERT INTO notes (text) VALUES (:text)")
LISTEN = """
import os, sys
if int(sys.argv[2]) != os.geteuid():
    os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2]))
from retoma import db
from retoma.db import adhoc
database = db.open(sys.argv[1])
database.wait_bell(0)
print("deaf" if database.deaf() else "listens", flush=True)
for line in sys.stdin:
    if line == "commit\\n":
        add = adhoc("INSERT INTO notes (text) VALUES ('by another')")
        database.write_now(lambda tx: [tx.ring("documents"), tx.run(add)], verb="add")
        print("committed", flush=True)
    else:
        print(sorted(database.wait_bell(60)), flush=True)
database.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def sqlite(path, open_database) -> db.Database:
    database: db.Database = open_database(f"sqlite:///{path}")
    database.write_now(lambda tx: tx.run(MAKE), verb="make")
    return database


def commit(database: db.Database, topic: str = "quotes") -> None:
    def add(tx: Transaction) -> int:
        tx.ring(topic)
        return tx.run(ADD, text="note")

    assert 1 == database.write_now(add, verb="add")


@contextmanager
def listener(path: Path, user: int | None = None, **environment: str) -> Iterator[Any]:
    """Another process that listens: `ask("wait")` gives the topics it hears."""
    user = os.geteuid() if user is None else user
    group = pwd.getpwuid(user).pw_gid
    with nursery.Born(
        [sys.executable, "-c", LISTEN, f"sqlite:///{path}", str(user), str(group)],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert "listens" == said(process)
            yield process
        finally:
            process.kill()


def said(process: Any) -> str:
    line: str = process.stdout.readline()
    return line.strip()


def tell(process: Any, what: str) -> None:
    process.stdin.write(f"{what}\n")
    process.stdin.flush()


def folder_of(path: Path) -> Path:
    return Path(f"{path}-wake")


# — who is woken —


def test_a_process_with_another_temp_folder_is_woken(sqlite, path, tmp_path):
    """As in another container, or under systemd's PrivateTmp."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with listener(path, TMPDIR=str(elsewhere), XDG_RUNTIME_DIR=str(elsewhere)) as other:
        tell(other, "wait")
        commit(sqlite)

        assert "['quotes']" == said(other)
        assert [] == list(elsewhere.iterdir())


def test_a_path_longer_than_that_of_a_socket_hinders_nobody(tmp_path, open_database):
    deep = tmp_path / ("x" * 200)
    deep.mkdir()
    database = open_database(f"sqlite:///{deep / 'work.db'}")
    database.write_now(lambda tx: tx.run(MAKE), verb="make")

    assert not database.deaf()
    with listener(deep / "work.db") as other:
        tell(other, "wait")
        commit(database)

        assert "['quotes']" == said(other)


def test_a_database_is_the_same_by_a_link_to_it(sqlite, path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    with listener(tmp_path / "link.db") as other:
        tell(other, "wait")
        commit(sqlite)

        assert "['quotes']" == said(other)


def nobody() -> int:
    """Another user where we may become one; else ourselves."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()


@pytest.fixture
def shared_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder into which other users may go too."""
    above = [each for each in tmp_path.parents if each.stat().st_uid == os.geteuid()]
    closed = [each for each in (tmp_path, *above) if not each.stat().st_mode & stat.S_IXOTH]
    before = {each: each.stat().st_mode for each in closed}
    for each in closed:
        each.chmod(before[each] | stat.S_IXOTH)
    yield tmp_path
    for each, mode in before.items():
        each.chmod(mode)


def test_root_and_the_owner_of_the_file_wake_each_other(shared_folder, open_database):
    """Whoever was there first: what root makes beside the file belongs to its owner."""
    path = shared_folder / "data" / "work.db"
    path.parent.mkdir()
    path.touch(mode=0o600)
    for each in (path.parent, path):
        os.chown(each, nobody(), -1)
    database = open_database(f"sqlite:///{path}")
    database.write_now(lambda tx: tx.run(MAKE), verb="make")
    assert {EVERYTHING} == database.wait_bell(0)

    with listener(path, nobody()) as other:
        tell(other, "wait")
        commit(database)
        assert "['quotes']" == said(other)
        tell(other, "commit")
        assert "committed" == said(other)
    assert {"quotes", "documents"} == database.wait_bell(20)
    assert {nobody()} == {each.stat().st_uid for each in path.parent.iterdir()}


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_who_may_write_the_file_may_wake_its_processes_and_nobody_else(path, sqlite, mode):
    path.chmod(mode)
    before = os.umask(0o077)
    try:
        sqlite.wait_bell(0)
    finally:
        os.umask(before)

    [socket] = folder_of(path).iterdir()
    assert [mode | mode >> 2 & 0o110, mode] == [
        stat.S_IMODE(each.stat().st_mode) for each in (folder_of(path), socket)
    ]


# — what is in the way —


def of_another_user(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, nobody(), -1)
    else:
        folder.chmod(0o500)  # as little ours to write


def open_to_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def led_elsewhere(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def a_file(folder: Path) -> None:
    folder.touch(mode=0o600)


@pytest.mark.parametrize("plant", [of_another_user, open_to_all, led_elsewhere, a_file])
def test_a_folder_that_others_have_made_is_not_used(path, sqlite, tmp_path, plant):
    plant(folder_of(path))
    before = sorted(tmp_path.rglob("*"))

    commit(sqlite)

    assert sqlite.deaf()
    sqlite.wait_bell(0)
    assert set() == sqlite.wait_bell(0.01)
    interrupter = threading.Timer(0.05, sqlite.wake)
    interrupter.start()
    assert set() == sqlite.wait_bell(60)
    interrupter.join()
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["retoma-{}", "retoma-loops-{}"])
def test_no_name_in_the_temp_folder_is_in_the_way(sqlite, path, tmp_path, monkeypatch, name):
    """Names of before, which any user could take from another."""
    (tmp_path / "temp").mkdir()
    (tmp_path / "temp" / name.format(os.getuid())).touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))

    sqlite.wait_bell(0)
    commit(sqlite)

    assert {"quotes"} == sqlite.wait_bell(20)


# — what is left —


def test_the_last_who_listens_takes_the_folder_along(path):
    database = db.open(f"sqlite:///{path}")
    with listener(path) as other:
        database.wait_bell(0)
        assert 2 == len(list(folder_of(path).iterdir()))
        other.stdin.close()
        assert 0 == other.wait(60)
        assert 1 == len(list(folder_of(path).iterdir()))
    database.close()

    assert not folder_of(path).exists()


def test_what_a_killed_process_left_goes_with_the_next_commit(sqlite, path):
    with listener(path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait(60)
    [left] = folder_of(path).iterdir()

    commit(sqlite)

    assert not left.exists()
    with listener(path) as again:
        tell(again, "wait")
        commit(sqlite)
        assert "['quotes']" == said(again)


def test_a_folder_that_is_taken_away_is_made_again(sqlite, path):
    sqlite.wait_bell(0)
    [mine] = folder_of(path).iterdir()
    mine.unlink()
    folder_of(path).rmdir()

    assert {EVERYTHING} == sqlite.wait_bell(0)  # something may have been missed
    commit(sqlite)

    assert {"quotes"} == sqlite.wait_bell(20)


def test_a_socket_that_is_taken_away_during_a_wait_is_made_again_within_a_tick(sqlite, path):
    sqlite.wait_bell(0)
    [mine] = folder_of(path).iterdir()
    taking = threading.Timer(0.2, mine.unlink)
    taking.start()

    assert wakeups.LOOK_AGAIN < TICK
    while EVERYTHING not in sqlite.wait_bell(60):
        pass  # it looks more often than it was told to wait
    taking.join()
    commit(sqlite)

    assert {"quotes"} == sqlite.wait_bell(20)


def test_who_comes_while_the_last_one_leaves_is_heard(path, sqlite, open_database):
    """One makes the folder that the other removes, thousands of times."""
    leaving = threading.Event()

    def come_and_go() -> None:
        while not leaving.is_set():
            other = db.open(f"sqlite:///{path}")
            other.wait_bell(0)
            other.close()

    beside = threading.Thread(target=come_and_go)
    beside.start()
    try:
        deaf = 0
        for _ in range(300):
            mine = db.open(f"sqlite:///{path}")
            deaf += mine.deaf()
            mine.close()
    finally:
        leaving.set()
        beside.join()

    assert 0 == deaf
    sqlite.wait_bell(0)
    commit(sqlite)
    assert {"quotes"} == sqlite.wait_bell(20)
