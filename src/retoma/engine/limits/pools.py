"""What a story holds of a pool, and how it lets go."""

from collections.abc import Generator
from typing import Any, Protocol

from retoma.codec import decode
from retoma.engine.rules.job import Item, Scope
from retoma.engine.writing.group_writer import Answer


class Keeper(Protocol):
    """Who takes and frees on behalf of an attempt."""

    async def take(self, pool: str, scope: Scope, shuns: str | None = None) -> Item: ...
    def free(self, item: Item, *, worked: bool | None, by: str | None = None) -> Answer: ...


class Hold:
    """A thing that is held; nobody else has it until it is let go."""

    def __init__(self, keeper: Keeper, item: Item) -> None:
        self.name = item.name
        self.value = decode(item.value)
        self._keeper = keeper
        self._item = item

    async def release(self, *, worked: bool = True, by: str | None = None) -> bool:
        """Let go of it; `worked=False` counts against it, `by` says in whose hands it failed.

        Failures in one and the same hands count once, unless other things of the pool work in these
        hands meanwhile: a bad user must not empty a pool.
        """
        return bool(await self._keeper.free(self._item, worked=worked, by=by))


class Use:
    """`await` it to hold a thing, or enter it to hold it for as long as the block lasts."""

    def __init__(
        self, keeper: Keeper, pool: str, scope: Scope, shuns: str | None = None
    ) -> None:
        self._keeper = keeper
        self._pool = pool
        self._scope = scope
        self._shuns = shuns
        self._item: Item | None = None

    def __await__(self) -> Generator[Any, None, Hold]:
        return self._taken().__await__()

    async def __aenter__(self) -> Hold:
        return await self._taken()

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._item is not None and self._scope is Scope.ATTEMPT:
            # Nobody waits for it: whatever the story asks for next goes out with it or after it.
            self._keeper.free(self._item, worked=_worked(error))

    async def _taken(self) -> Hold:
        self._item = await self._keeper.take(self._pool, self._scope, self._shuns)
        return Hold(self._keeper, self._item)


def _worked(error: BaseException | None) -> bool | None:
    """Whoever is stopped, or leaves to wait, says nothing of what it held."""
    if error is None:
        return True
    return False if isinstance(error, Exception) else None
