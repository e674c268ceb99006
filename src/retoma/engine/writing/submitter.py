"""Jobs that are submitted one by one at the same time share a commit.

As in the group writer no timer decides: what waits when the last commit ends goes out next,
each job a statement of its own, all of them in one transaction and one round trip. On SQLite the
database's own thread does the same for whatever is written there.
"""

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from retoma.db import BadRow, Database, Row, from_driver
from retoma.engine import store
from retoma.engine.rules.job import Job
from retoma.engine.store import NewJob, Submission

TOGETHER = 200  # jobs in one transaction


@dataclass(slots=True, eq=False)
class _Asked:
    about: Submission
    job: NewJob
    answer: "asyncio.Future[Job | None]"


class Submitter:
    """One per database, for any number of event loops: each shares its commits with itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # A future and a task belong to one loop: whoever asks on another is never woken by it.
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def submit(self, about: Submission, job: NewJob) -> Job | None:
        """The new job, committed; None where its key is known already."""
        if self._database.dialect == "sqlite":
            return await self._alone(about, job)
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop) or self._queues.setdefault(loop, _Queue(self._database))
        return await queue.submit(about, job)

    async def _alone(self, about: Submission, job: NewJob) -> Job | None:
        [rows] = await self._database.write(
            lambda tx: store.submit_together(tx, [(about, job)]), verb="submit"
        )
        return store.submitted(about, job, rows)


class _Queue:
    """What one event loop wants to submit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Asked] = []
        self._busy: asyncio.Task[None] | None = None

    async def submit(self, about: Submission, job: NewJob) -> Job | None:
        loop = asyncio.get_running_loop()
        asked = _Asked(about, job, loop.create_future())
        self._waiting.append(asked)
        if self._busy is None or self._busy.done():
            self._busy = loop.create_task(self._submit_until_empty())
        return await asked.answer

    async def _submit_until_empty(self) -> None:
        group: list[_Asked] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                await self._commit(group)
        except BaseException:  # stopped with its loop: nobody is left waiting
            for asked in (*group, *self._waiting):
                asked.answer.cancel()
            self._waiting.clear()
            raise
        finally:
            self._busy = None  # it refers to the loop, which must be free to go

    async def _commit(self, group: list[_Asked]) -> None:
        """Everybody in the group gets an answer, whatever happens."""
        try:
            answers = await self._together(group)
        except Exception as error:  # noqa: BLE001 — told to those who asked
            if len(group) == 1 or not (isinstance(error, BadRow) or from_driver(error)):
                _fail(group, error)
                return
            for (
                asked
            ) in group:  # the one that the database refuses, for whatever reason, fails alone
                await self._commit([asked])
        else:
            for asked, rows in zip(group, answers, strict=True):
                made = store.submitted(asked.about, asked.job, rows)
                if not asked.answer.done():
                    asked.answer.set_result(made)

    async def _together(self, group: list[_Asked]) -> list[list[Row]]:
        return await self._database.write(
            lambda tx: store.submit_together(tx, [(each.about, each.job) for each in group]),
            verb="submit",
        )


def _fail(group: list[_Asked], error: BaseException) -> None:
    for asked in group:
        if not asked.answer.done():
            asked.answer.set_exception(error)
