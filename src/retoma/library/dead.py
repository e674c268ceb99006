"""`app.dead`: jobs that have failed permanently."""

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.engine import query, store
from retoma.engine.rules.job import Job
from retoma.engine.rules.reasons import check_reason
from retoma.engine.run.submission import ACTOR
from retoma.library.checks import check_id
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters, and of what they died."""

    _connection: Connection

    async def list(
        self,
        *,
        kind: str | None = None,
        batch: int | None = None,
        code: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Dead letters that nobody has discarded, newest first, a page at a time."""
        return await self._connection.read(
            lambda tx: query.list_dead(
                tx, kind=kind, batch=batch, code=code, before=before, limit=limit
            )
        )

    async def causes(self, jobs: Sequence[int]) -> dict[int, query.Cause]:
        """Why each of these jobs died the last time."""
        found = await self._connection.read(lambda tx: query.dead_causes(tx, jobs))
        return {each.job: each for each in found}

    async def groups(self, search: query.Search) -> query.DeadGroups:
        """The newest dead letters, those with the same cause together."""
        return await self._connection.read(lambda tx: query.dead_groups(tx, search))

    async def codes(self, batch: int | None = None) -> dict[str, int]:
        """How many are dead by which code, the most first."""
        return await self._connection.read(lambda tx: query.count_codes(tx, batch))

    async def discard(self, job: int, why: str | None = None, *, actor: str = ACTOR) -> Job:
        """Take a dead letter off the list; its history is kept, and it can be retried."""
        check_id("job", job)
        reason = None if why is None else check_reason(why)
        return await self._connection.write(
            lambda tx: store.discard_job(tx, job, reason, actor=actor), verb="discard"
        )
