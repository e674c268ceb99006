"""A process that migrates and dies at a given statement; or several that migrate at once.

python crash_migration.py URL crash N    at every n-th statement a process dies; prints how many
python crash_migration.py URL together N  N processes begin at the same moment; exits 0 if all can
"""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from retoma import db
from retoma.db import Statement, Transaction, migrations


class Mortal:
    """A database whose process is killed before its n-th statement."""

    def __init__(self, inner: db.Database, n: int) -> None:
        self.dialect = inner.dialect
        self.read = inner.read
        self.left = n
        self._inner = inner

    async def write(self, fn: Callable[[Transaction], Any], *, verb: str) -> Any:
        return await self._inner.write(lambda tx: fn(_Counting(tx, self)), verb=verb)  # type: ignore[arg-type]


class _Counting:
    def __init__(self, tx: Transaction, mortal: Mortal) -> None:
        self.dialect = tx.dialect
        self._tx = tx
        self._mortal = mortal

    def run(self, statement: Statement, **params: Any) -> int:
        self._pass()
        return self._tx.run(statement, **params)

    def one(self, statement: Statement, **params: Any) -> Any:
        self._pass()
        return self._tx.one(statement, **params)

    def all(self, statement: Statement, **params: Any) -> Any:
        self._pass()
        return self._tx.all(statement, **params)

    def _pass(self) -> None:
        self._mortal.left -= 1
        if self._mortal.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def crash(url: str, stride: int) -> int:
    """Die at every `stride`-th statement until a process commits; how many those were.

    The migrations of an empty database are one transaction: `run` sees that nothing of it was left.
    """
    n = 1
    while die(url, n) and not count_applied(url):
        n += stride
    return n // stride


def die(url: str, n: int) -> bool:
    """Whether there was an n-th statement to die at."""
    status = ended(fork(partial(run, url, n)))
    if status not in (0, signal.SIGKILL):
        sys.exit(f"dying at statement {n} left half of it behind")
    return status != 0


def count_applied(url: str) -> int:
    return os.waitstatus_to_exitcode(ended(fork(partial(tell_applied, url))))


def tell_applied(url: str) -> None:
    database = db.open(url)
    applied = asyncio.run(migrations.status(database)).applied
    os._exit(len(applied))


def together(url: str, n: int) -> None:
    read, write = os.pipe()

    def when_told() -> None:
        os.close(write)
        os.read(read, 1)
        run(url, -1)

    children = [fork(when_told) for _ in range(n)]
    os.close(write)
    if any([ended(child) for child in children]):  # noqa: C419  # wait for each of them
        sys.exit("not every process could start")


def run(url: str, n: int) -> None:
    asyncio.run(migrate(url, n))


async def migrate(url: str, n: int) -> None:
    database = db.open(url)
    status = await migrations.status(database)
    assert status.applied == status.known[: len(status.applied)]  # each whole, or not at all
    await migrations.ready(Mortal(database, n))  # type: ignore[arg-type]
    database.close()


def fork(work: Callable[[], None]) -> int:
    """Quicker than a new program, and safe: there is one thread and nothing is open here."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:  # noqa: BLE001  # told by the exit code
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    for driver in ("sqlite", "postgres"):
        importlib.import_module(f"retoma.db.{driver}")  # once, not in every fork
    address, what, *rest = sys.argv[1:]
    if what == "crash":
        print(crash(address, int(rest[0])))
    else:
        together(address, int(rest[0]))
