"""What a story holds of a pool, and how it lets go."""

from collections.abc import Generator
from typing import Any, Protocol

from retoma.codec import decode
from retoma.engine.store.pool import Item, Scope


class Keeper(Protocol):
    """Who takes and frees on behalf of an attempt."""

    async def take(self, pool: str, scope: Scope) -> Item: ...
    async def free(self, item: Item, *, worked: bool, by: str | None) -> bool: ...


class Hold:
    """A thing that is held; nobody else has it until it is let go."""

    def __init__(self, keeper: Keeper, item: Item, holds: "set[Hold]") -> None:
        self.name = item.name
        self.value = decode(item.value)
        self._keeper = keeper
        self._item = item
        self._holds = holds

    async def release(self, *, worked: bool = True, by: str | None = None) -> bool:
        """Let go of it; `worked=False` counts against it, `by` says in whose hands it failed.

        Failures in one and the same hands count once: a bad user must not empty a pool.
        """
        self._holds.discard(self)
        return await self._keeper.free(self._item, worked=worked, by=by)


class Use:
    """`await` it to hold a thing, or enter it to hold it for as long as the block lasts."""

    def __init__(self, keeper: Keeper, holds: set[Hold], pool: str, scope: Scope) -> None:
        self._keeper = keeper
        self._holds = holds
        self._pool = pool
        self._scope = scope
        self._hold: Hold | None = None

    def __await__(self) -> Generator[Any, None, Hold]:
        return self._taken().__await__()

    async def __aenter__(self) -> Hold:
        self._hold = await self._taken()
        return self._hold

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._hold is not None and self._scope is Scope.ATTEMPT:
            await self._hold.release(worked=not isinstance(error, Exception))

    async def _taken(self) -> Hold:
        item = await self._keeper.take(self._pool, self._scope)
        hold = Hold(self._keeper, item, self._holds)
        if self._scope is Scope.ATTEMPT:
            self._holds.add(hold)
        return hold
