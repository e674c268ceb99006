"""Jobs submitted together, seen as one."""

from dataclasses import dataclass, field

from retoma.db import Database
from retoma.engine import insights
from retoma.engine.ports import Clock
from retoma.engine.states import ENDED, State

LOOK = 0.2  # seconds between two looks while somebody waits


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    counts: dict[State, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(n for state, n in self.counts.items() if state in ENDED)

    @property
    def share(self) -> float:
        return self.ended / self.total if self.total else 1.0

    @property
    def finished(self) -> bool:
        return self.ended == self.total


@dataclass(frozen=True, slots=True)
class Batch:
    """One ledger. Its state is computed from its counts, never stored."""

    id: int
    name: str
    kind: str
    submitted: int  # new jobs of this very submission
    already: int  # jobs that were there under the same keys, in their old batches
    _database: Database = field(repr=False)
    _clock: Clock = field(repr=False)

    async def counts(self) -> dict[State, int]:
        return await self._database.read(lambda tx: insights.count_jobs(tx, self.id))

    async def progress(self) -> Progress:
        return Progress(await self.counts())

    async def wait(self) -> Progress:
        """Return when every job of it has ended."""
        while True:
            progress = await self.progress()
            if progress.finished:
                return progress
            await self._clock.sleep(LOOK)
