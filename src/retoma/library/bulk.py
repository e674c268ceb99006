"""`app.bulk`: one action on many jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.engine import query, store
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.reasons import check_reason
from retoma.engine.store import Command, Verb
from retoma.library.connection import Connection
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Bulk:
    """Bulk actions: prepared once, then applied to one slice of jobs after another."""

    _connection: Connection

    async def prepare(self, verb: Verb | str, *, why: str | None = None, actor: str) -> Command:
        """An action for jobs that stand where they stand by now; later changes are left alone."""
        if verb not in list(Verb):
            raise BadInput(
                say("a verb is one of {known}, not {verb!r}", known=", ".join(Verb), verb=verb)
            )
        wanted = Verb(verb)
        reason = None if why is None else check_reason(why)
        if wanted is Verb.SKIP and reason is None:
            raise BadInput(say("whoever skips says why"))
        since = await self._connection.read(store.now)
        return Command(verb=wanted, actor=actor, why=reason, since=since)

    async def apply(
        self, command: Command, jobs: Sequence[int], *, offset: int = 0
    ) -> store.Ordered:
        """Apply it to these jobs, in one transaction; applied again, it moves nothing twice."""
        return await self._connection.write(
            lambda tx: store.order_jobs(tx, command, jobs, offset), verb="order"
        )

    async def apply_page(
        self,
        command: Command,
        search: query.Search,
        *,
        before: int | None,
        offset: int,
        limit: int = query.PAGE,
    ) -> tuple[store.Ordered, int, int | None]:
        """Apply it to the next jobs that a search finds, newest first; how many were found, and
        where the next page begins."""
        found = await self._connection.read(
            lambda tx: query.search_ids(tx, search, before=before, limit=limit)
        )
        ordered = await self.apply(command, found.ids, offset=offset)
        return ordered, len(found.ids), found.next
