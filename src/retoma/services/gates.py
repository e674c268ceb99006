"""What may hold jobs back: limits, pools, rates and breakers, and what people change of them."""

from collections.abc import Sequence

from retoma.engine.query import LimitSeen
from retoma.engine.store.breaker import BreakerSeen
from retoma.engine.store.pool import ItemSeen, PoolSeen
from retoma.engine.store.rate import RateSeen
from retoma.library import Retoma

__all__ = ["BreakerSeen", "ItemSeen", "LimitSeen", "PoolSeen", "RateSeen"]


async def list_limits(app: Retoma, after: str = "", limit: int = 50) -> list[LimitSeen]:
    """Every limit by its key: how many may run, and how many do."""
    return await app.limits.list(after=after, limit=limit)


async def set_limit(app: Retoma, key: str, cap: int | None = None, *, actor: str) -> None:
    """Let so many run at once, over what the code says."""
    await app.limits.set(key, cap, actor=actor)


# — pools —


async def list_pools(app: Retoma) -> Sequence[PoolSeen]:
    """Every pool: how many things it has, how many are on, how many are held."""
    return await app.pools.list()


async def show_pool(app: Retoma, name: str) -> Sequence[ItemSeen]:
    """The things of a pool: who holds them, how they fare. Not what they are."""
    return await app.pools.items(name)


async def list_things(app: Retoma, pool: str, after: str, limit: int) -> Sequence[ItemSeen]:
    """A page of the things of a pool, by their names."""
    return await app.pools.items(pool, after=after, limit=limit)


async def switch_on(
    app: Retoma, name: str, things: list[str], why: str, *, actor: str
) -> list[PoolSeen]:
    """Switch things of a pool on, all of them or none."""
    await app.pools.switch(name, things, on=True, reason=why, actor=actor)
    return await _pool(app, name)


async def switch_off(
    app: Retoma, name: str, things: list[str], why: str, *, actor: str
) -> list[PoolSeen]:
    """Switch things of a pool off, all of them or none: nobody is given them."""
    await app.pools.switch(name, things, on=False, reason=why, actor=actor)
    return await _pool(app, name)


async def free_thing(app: Retoma, name: str, thing: str, *, actor: str) -> list[PoolSeen]:
    """Say that the use of a thing has ended, whoever holds it."""
    await app.pools.declare_free(name, thing, actor=actor)
    return await _pool(app, name)


async def _pool(app: Retoma, name: str) -> list[PoolSeen]:
    return [each for each in await app.pools.list() if each.name == name]


# — rates —


async def list_rates(app: Retoma) -> Sequence[RateSeen]:
    """Every rate by its key."""
    return await app.rates.list()


async def set_rate(
    app: Retoma, key: str, per_second: float, burst: float | None = None, *, actor: str
) -> RateSeen:
    """Let so many calls a second through, from now on."""
    await app.rates.set(key, per_second, burst=burst, actor=actor)
    [rate] = [each for each in await app.rates.list() if each.key == key]
    return rate


# — breakers —


async def list_breakers(app: Retoma) -> Sequence[BreakerSeen]:
    """Every breaker: open or closed, since when, why, when it is tried next."""
    return await app.breakers.list()


async def open_breaker(app: Retoma, name: str, why: str, *, actor: str) -> list[BreakerSeen]:
    """Let nobody through; one job tries it after its rest, and closes it if that works."""
    await app.breakers.open(name, why, actor=actor)
    return await _breaker(app, name)


async def close_breaker(app: Retoma, name: str, *, actor: str) -> list[BreakerSeen]:
    """Let all through again, now."""
    await app.breakers.close(name, actor=actor)
    return await _breaker(app, name)


async def _breaker(app: Retoma, name: str) -> list[BreakerSeen]:
    return [each for each in await app.breakers.list() if each.name == name]
