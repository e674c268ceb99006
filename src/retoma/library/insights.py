"""`app.insights`: counts and durations over all jobs."""

from dataclasses import dataclass
from typing import Any

from retoma.engine import query
from retoma.engine.rules.states import State
from retoma.library.checks import state_of
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Insights:
    """How much there is, where it stands, and how fast it moves."""

    _connection: Connection
    _timezone: str

    async def counts(self) -> dict[State, int]:
        """How many jobs are in each state."""
        return await self._connection.read(query.count_jobs)

    async def counts_by_kind(self, batch: int | None = None) -> dict[str, dict[State, int]]:
        return await self._connection.read(lambda tx: query.count_kinds(tx, batch))

    async def funnel(self, kind: str | None = None) -> list[query.Stand]:
        """How many run, or are parked, at which checkpoint, and since when."""
        return await self._connection.read(lambda tx: query.funnel(tx, kind))

    async def stuck(
        self,
        *,
        quiet: Any = query.QUIET,
        kind: str | None = None,
        batch: int | None = None,
        limit: int = 50,
    ) -> list[query.Stuck]:
        """Jobs that run without progress for that long, or on a runner whose lease is over."""
        return await self._connection.read(
            lambda tx: query.stuck(tx, quiet=quiet, kind=kind, batch=batch, limit=limit)
        )

    async def count_stuck(
        self,
        *,
        quiet: Any = query.QUIET,
        kind: str | None = None,
        batch: int | None = None,
    ) -> int:
        """How many jobs `stuck` would find."""
        return await self._connection.read(
            lambda tx: query.count_stuck(tx, quiet=quiet, kind=kind, batch=batch)
        )

    async def throughput(
        self, *, last: Any = "1h", kind: str | None = None
    ) -> list[query.Minute]:
        """How many jobs came to which state, minute by minute."""
        return await self._connection.read(
            lambda tx: query.throughput(tx, last=last, kind=kind)
        )

    async def durations(
        self, *, last: Any = "1h", kind: str | None = None, state: State | str = State.DONE
    ) -> list[query.Durations]:
        """How long attempts that ended in this state took, for each kind."""
        ended = state_of(state)
        return await self._connection.read(
            lambda tx: query.durations(tx, last=last, kind=kind, state=ended)
        )

    async def metrics(self) -> query.Meter:
        """Everything that is counted, for a monitor that asks again and again."""
        return await self._connection.read(lambda tx: query.read_meter(tx, self._timezone))

    async def disk(self) -> query.Disk:
        """How much room each table takes, and what the last pass of retention deleted."""
        return await self._connection.read(query.disk)
