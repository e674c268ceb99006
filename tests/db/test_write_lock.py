"""One process at a time writes a SQLite file; a process that never lets go does not hold others up unseen."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from retoma import db
from retoma.db import Busy, adhoc
from retoma.db.write_lock import WriteLock

KEEP = """
import sys
from pathlib import Path
from retoma.db.write_lock import WriteLock

lock = WriteLock(Path(sys.argv[1]), 5.0)
lock.take()
print("taken", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "work.db").touch()
    return tmp_path / "work.db"


@pytest.fixture
def keeper(path):
    """A process that keeps the lock until it reads a line."""
    with subprocess.Popen(
        [sys.executable, "-c", KEEP, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "taken\n" == process.stdout.readline()
        yield process
        process.kill()


def test_who_waits_longer_than_its_patience_is_told_which_process_has_the_lock(path, keeper):
    os.kill(keeper.pid, signal.SIGSTOP)
    with closing(WriteLock(path, 0.2)) as lock:
        for _ in range(2):  # the second attempt finds the first one still waiting
            with pytest.raises(Busy, match=f"process {keeper.pid} has kept others"):
                lock.take()

        os.kill(keeper.pid, signal.SIGCONT)
        print("go on", file=keeper.stdin, flush=True)
        assert "released\n" == keeper.stdout.readline()
        lock.take()
        with closing(WriteLock(path, 0.2)) as other:
            with pytest.raises(Busy):
                other.take()
            lock.release()
            other.take()


def test_a_lock_that_came_too_late_is_given_back(path):
    with closing(WriteLock(path, 5)) as first, closing(WriteLock(path, 0.1)) as late:
        first.take()
        with pytest.raises(Busy):
            late.take()
        first.release()

        with closing(WriteLock(path, 5)) as third:
            third.take()


def test_a_lock_that_is_closed_while_it_waits_holds_up_nobody(path):
    with closing(WriteLock(path, 5)) as first:
        first.take()
        late = WriteLock(path, 0.1)
        with pytest.raises(Busy):
            late.take()
        late.close()
        first.release()

        first.take()


@pytest.mark.parametrize("patience", [0.001, 5.0])
def test_two_never_have_it_at_once(path, patience):
    inside, most, taken = 0, 0, 0

    def write_often() -> None:
        nonlocal inside, most, taken
        with closing(WriteLock(path, patience)) as lock:
            for _ in range(300):
                try:
                    lock.take()
                except Busy:
                    continue
                inside += 1
                most = max(most, inside)
                taken += 1
                threading.Event().wait(0.0005)
                inside -= 1
                lock.release()

    threads = [threading.Thread(target=write_often) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert 1 == most
    assert 300 <= taken
    if patience > 1:
        assert 1200 == taken


async def test_a_write_goes_on_when_the_frozen_process_does(path, keeper):
    os.kill(keeper.pid, signal.SIGSTOP)
    with closing(db.open(f"sqlite:///{path}")) as database:
        making = asyncio.create_task(
            database.write(lambda tx: tx.run(adhoc("CREATE TABLE made (id int)")), verb="make")
        )
        assert not (await asyncio.wait({making}, timeout=0.5))[0]

        os.kill(keeper.pid, signal.SIGCONT)
        print("go on", file=keeper.stdin, flush=True)
        await making
        assert [] == await database.read(lambda tx: tx.all(adhoc("SELECT id FROM made")))
