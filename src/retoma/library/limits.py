"""`app.limits`: how many jobs of one key run at once."""

from dataclasses import dataclass

from retoma.engine import query, store
from retoma.engine.rules.gates import check_cap, check_key
from retoma.engine.run.submission import ACTOR
from retoma.library.connection import Connection


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps that a person sets over what the code says."""

    _connection: Connection

    async def list(self, *, after: str = "", limit: int = 50) -> list[query.LimitSeen]:
        """By their keys, a page at a time."""
        return await self._connection.read(
            lambda tx: query.list_limits(tx, after=after, limit=limit)
        )

    async def set(self, key: str, cap: int | None, *, actor: str = ACTOR) -> None:
        """Let so many jobs of this key run at once from now on, whatever the code says; None: what
        the code says holds again."""
        wanted = check_key(key)
        most = None if cap is None else check_cap(cap)
        await self._connection.write(
            lambda tx: store.set_limit(tx, wanted, most, actor=actor), verb="set_limit"
        )
