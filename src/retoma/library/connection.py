"""The database of one `Retoma`: opened when it is first asked for, once per process."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from retoma import db
from retoma.db import Database, Transaction, migrations
from retoma.db.migrations import ENGINE
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.run.submission import ACTOR
from retoma.engine.writing.submitter import Submitter
from retoma.library.registered import Registered

T = TypeVar("T")


class Connection:
    """Opens the database, brings in what the code declares, reads and writes."""

    def __init__(
        self, url: str, clock: Clock, patience: float | None, registered: Registered
    ) -> None:
        self.url = url
        self.registered = registered
        self._clock = clock
        self._patience = patience
        self._database: Database | None = None
        self._inherited: Database | None = None
        self._owner = 0
        # By process: a forked one inherits no lock that a thread of its parent may hold just then.
        self._opening: dict[int, threading.Lock] = {}
        self._ready = False

    def opened(self) -> Database:
        """The open database, whatever its schema."""
        me = os.getpid()
        if self._database is not None and self._owner == me:
            return self._database
        with self._opening.setdefault(me, threading.Lock()):  # several threads may ask first
            if self._owner != me:
                # Forked: the connections are our parent's, who would lose them if we closed them.
                self._inherited, self._database, self._ready = self._database, None, False
                self._owner = me
            if self._database is None:
                # A clock in the hand of a test moves the database's time too.
                fake = self._clock.moved() is not None
                moved = (lambda: self._clock.moved() or 0) if fake else None
                self._take(db.open(self.url, moved=moved, patience=self._patience))
            return cast("Database", self._database)

    async def ready(self) -> Database:
        """The open database, at the schema this program needs, with what the code declares."""
        database = self.opened()
        if not self._ready:
            for room in (ENGINE, *self.registered.rooms):
                await migrations.ready(database, room)
            if self._clock.moved() is not None:
                await database.write(lambda tx: tx.run(db.MOVABLE_CLOCK), verb="test")
            self._ready = True
        if self.registered.undeclared:
            await self._declare(database)
        return database

    async def read(self, fn: Callable[[Transaction], T]) -> T:
        return await (await self.ready()).read(fn)

    async def write(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        return await (await self.ready()).write(fn, verb=verb)

    async def submitter(self) -> Submitter:
        await self.ready()
        return self._submitter

    async def upgrade(self) -> migrations.Status:
        """Bring the schema to what this program needs."""
        database = self.opened()
        status = await migrations.upgrade(database)
        for room in self.registered.rooms:
            await migrations.upgrade(database, room=room)
        return status

    def use(self, database: Database, *, ready: bool = False) -> None:
        """Use this open database of this process. `ready`: it has the schema."""
        self._take(database)
        self._owner = os.getpid()
        self._ready = self._ready or ready

    def check_schema_again(self) -> None:
        """Another application is installed: its tables must be there too."""
        self._ready = False

    async def close(self) -> None:
        if self._database is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._database.close)
            self._database = None
            self._ready = False

    def _take(self, database: Database) -> None:
        self._submitter = Submitter(database)
        self._database = database

    async def _declare(self, database: Database) -> None:
        """What the code says of schedules and references, for every process to know."""
        plans = list(self.registered.plans.values())
        references = list(self.registered.references)

        def declare(tx: Transaction) -> None:
            store.declare_schedules(tx, plans, actor=ACTOR)
            store.keep_references(tx, references)

        await database.write(declare, verb="declare")
        self.registered.undeclared = False
