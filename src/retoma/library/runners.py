"""`app.runners`: who runs jobs on this database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine import query, store
from retoma.engine.run.submission import ACTOR, checked
from retoma.engine.store import Drained
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Runners:
    """Runner instances of every process that works on this database."""

    _connection: Connection

    async def list(self) -> list[query.RunnerSeen]:
        return await self._connection.read(query.list_runners)

    async def drain(self, boot: str, *, actor: str = ACTOR) -> Drained:
        """Ask a runner to leave as on SIGTERM: it claims nothing more, finishes or gives back what
        it has, and its process ends. It learns of it at once, or with its next heartbeat."""
        who = checked("actor", actor) or ACTOR
        return await self._connection.write(
            lambda tx: store.drain_runner(tx, boot, actor=who), verb="drain_runner"
        )

    async def take_back(
        self,
        *,
        actor: str = ACTOR,
        count: Callable[[Transaction, Sequence[int]], int] | None = None,
    ) -> int:
        """Declare runners lost whose lease is over and take their jobs back, now; how many. Every
        runner does so at its next tick: this is for callers that cannot wait, or have no runner.

        `count`: how many of these jobs are to be counted; None: all.
        """
        database = await self._connection.ready()

        def take(tx: Transaction) -> tuple[int, int]:
            store.declare_lost(tx, actor=actor)
            back = [held.job for held, _ in store.take_back(tx, actor)]
            return len(back), len(back) if count is None else count(tx, back)

        slice_, taken = await database.write(take, verb="take_back")
        while slice_ == store.BITE:
            slice_, more = await database.write(take, verb="take_back")
            taken += more
        return taken

    async def refused_writes(self) -> int:
        """How many writes of runners were rejected because another runner had the job by then."""
        return await self._connection.read(query.refused_writes)
