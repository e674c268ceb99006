"""`app.schedules`: schedules that are declared, by `app.schedule` or by another process."""

from dataclasses import dataclass

from retoma.engine import store
from retoma.engine.rules.job import Job
from retoma.engine.run.submission import ACTOR
from retoma.engine.store import Schedule
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Schedules:
    """Schedules by their names."""

    _connection: Connection

    async def list(self) -> list[Schedule]:
        return await self._connection.read(store.list_schedules)

    async def pause(self, name: str, *, actor: str = ACTOR) -> Schedule:
        """Submit nothing more by it until it is unpaused."""
        return await self._connection.write(
            lambda tx: store.pause_schedule(tx, name, actor=actor), verb="pause_schedule"
        )

    async def unpause(self, name: str, *, actor: str = ACTOR) -> Schedule:
        """Resume with its next tick; those of the pause are not made up for."""
        return await self._connection.write(
            lambda tx: store.unpause_schedule(tx, name, actor=actor), verb="unpause_schedule"
        )

    async def run(self, name: str, *, actor: str = ACTOR) -> Job:
        """Submit one job of it now, beside its ticks."""
        return await self._connection.write(
            lambda tx: store.run_schedule(tx, name, actor=actor), verb="run_schedule"
        )

    async def remove(self, name: str, *, actor: str = ACTOR) -> None:
        """Delete it; a process that declares it brings it back when it starts again."""
        await self._connection.write(
            lambda tx: store.remove_schedule(tx, name, actor=actor), verb="remove_schedule"
        )
