"""`app.retention`: delete what has ended long ago, now."""

from dataclasses import dataclass
from typing import Any

from retoma.engine import store
from retoma.engine.ops.retention import Keep, Retired
from retoma.engine.ops.retention import Retention as RetentionPass
from retoma.engine.rules.duration import seconds
from retoma.engine.run.submission import ACTOR
from retoma.engine.writing.evidence import Keeper
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Retention:
    """Passes of retention that a person asks for; runners do theirs by their own settings."""

    _connection: Connection
    _keeper: Keeper

    async def run_once(
        self, *, done: Any = None, dead: Any = None, events: Any = None, actor: str = ACTOR
    ) -> Retired:
        """Delete now what ended longer ago than this; None keeps for ever."""
        lengths = {"done": done, "dead": dead, "events": events}
        keep = Keep(**{k: None if v is None else seconds(v) for k, v in lengths.items()})
        database = await self._connection.ready()
        return await RetentionPass(keep, actor, self._keeper).run_once(database)

    async def forget_answers(self) -> int:
        """Delete one slice of the answers whose Idempotency-Key is too old to be sent again; how many."""
        return await self._connection.write(store.forget_answers, verb="forget_answers")
