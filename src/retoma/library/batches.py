"""`app.batches`: batches that were submitted before."""

from dataclasses import dataclass

from retoma.engine import query
from retoma.engine.ops.batches import Batch
from retoma.engine.ports import Clock
from retoma.engine.run.submission import Submitted
from retoma.library.checks import check_id
from retoma.library.connection import Connection
from retoma.library.submissions import batch_in


@dataclass(frozen=True, slots=True)
class Batches:
    """Find a batch again; what is done with it are verbs of `Batch`."""

    _connection: Connection
    _clock: Clock

    async def list(self, *, before: int | None = None, limit: int = 50) -> list[Batch]:
        """Newest first."""
        seen = await self._connection.read(
            lambda tx: query.list_batches(tx, before=before, limit=limit)
        )
        return [self._batch(each) for each in seen]

    async def get(self, batch: int) -> Batch:
        check_id("batch", batch)
        return self._batch(await self._connection.read(lambda tx: query.get_batch(tx, batch)))

    def _batch(self, seen: query.BatchSeen) -> Batch:
        known = Submitted(seen.id, seen.name, seen.kind, 0, 0)
        return batch_in(self._connection.opened(), self._clock, known)
