"""`/api/pools`, `/api/rates`, `/api/limits`, `/api/breakers`: what may hold work back."""

from operator import attrgetter
from typing import Annotated

from fastapi import Path

from retoma.engine.store.pool import PoolSeen
from retoma.web.cursor import Cursor, turned
from retoma.web.house import AHouse, House
from retoma.web.route import router
from retoma.web.sign_in import Admin, Operator, Viewer
from retoma.web.wire import (
    BreakerShown,
    Limit,
    LimitShown,
    NewLimit,
    NewRate,
    NextPage,
    PageOf,
    PoolShown,
    RateShown,
    Reason,
    Switch,
    Thing,
    ThingShown,
)

routes = router("gates")

# A name may hold a slash: it is whatever stands before the verb.
PoolName = Annotated[str, Path(min_length=1, max_length=200, description="The name of a pool.")]
BreakerName = Annotated[
    str, Path(min_length=1, max_length=200, description="The name of a breaker.")
]


@routes.get("/api/pools")
async def list_pools(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[PoolShown]:
    """Every pool and how full it is; by their names."""
    seen = await house.retoma.pools.list()
    page, following = turned(Cursor("pools", None), cursor, limit, seen, attrgetter("name"))
    return PageOf(items=[_pool_shown(each) for each in page], next=following)


async def _pool(house: House, name: str) -> list[PoolShown]:
    seen = await house.retoma.pools.list()
    return [_pool_shown(each) for each in seen if each.name == name]


def _pool_shown(pool: PoolSeen) -> PoolShown:
    return PoolShown(name=pool.name, things=pool.items, on=pool.on, held=pool.held)


@routes.get("/api/pools/{pool:path}/things")
async def list_things(
    pool: PoolName, _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ThingShown]:
    """The things of a pool by name: who holds them, how they fare."""
    stamp = Cursor("things", pool)
    [after] = stamp.read(cursor, str) or [""]
    seen = await house.retoma.pools.items(pool, after=after, limit=limit + 1)
    shown = [ThingShown.model_validate(each) for each in seen[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].name if len(seen) > limit else None))


@routes.post("/api/pools/{pool:path}/switch")
async def switch_things(
    pool: PoolName, body: Switch, who: Admin, house: AHouse
) -> list[PoolShown]:
    """Switch things on or off, all of them or none, saying why."""
    await house.retoma.pools.switch(
        pool, body.things, on=body.on, reason=body.why, actor=who.name
    )
    return await _pool(house, pool)


@routes.post("/api/pools/{pool:path}/free")
async def free_thing(pool: PoolName, body: Thing, who: Admin, house: AHouse) -> list[PoolShown]:
    """Say that the use of a thing has ended, whoever holds it."""
    await house.retoma.pools.declare_free(pool, body.thing, actor=who.name)
    return await _pool(house, pool)


@routes.get("/api/rates")
async def list_rates(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[RateShown]:
    """How often something may be called, by all runners together; by their keys."""
    seen = await house.retoma.rates.list()
    page, following = turned(Cursor("rates", None), cursor, limit, seen, attrgetter("key"))
    return PageOf(items=[RateShown.model_validate(each) for each in page], next=following)


@routes.put("/api/rates")
async def set_rate(body: NewRate, who: Admin, house: AHouse) -> RateShown:
    """Let so many calls a second through from now on."""
    await house.retoma.rates.set(body.key, body.per_second, burst=body.burst, actor=who.name)
    [rate] = [each for each in await house.retoma.rates.list() if each.key == body.key]
    return RateShown.model_validate(rate)


@routes.get("/api/limits")
async def list_limits(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[LimitShown]:
    """How many may run under each key, and how many do; by their keys."""
    stamp = Cursor("limits", None)
    [after] = stamp.read(cursor, str) or [""]
    seen = await house.retoma.limits(after=after, limit=limit)
    shown = [LimitShown.model_validate(each) for each in seen]
    return PageOf(items=shown, next=stamp.write(shown[-1].key if len(shown) == limit else None))


@routes.put("/api/limits")
async def set_limit(body: NewLimit, who: Admin, house: AHouse) -> NewLimit:
    """Let so many run at once, whatever the code says; null: what the code says holds again."""
    await house.retoma.set_limit(body.key, body.cap, actor=who.name)
    return body


@routes.get("/api/breakers")
async def list_breakers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[BreakerShown]:
    """What guards services that may be down; by their names."""
    seen = await house.retoma.breakers.list()
    page, following = turned(Cursor("breakers", None), cursor, limit, seen, attrgetter("name"))
    return PageOf(items=[BreakerShown.model_validate(each) for each in page], next=following)


async def _breaker(house: House, name: str) -> list[BreakerShown]:
    seen = await house.retoma.breakers.list()
    return [BreakerShown.model_validate(each) for each in seen if each.name == name]


@routes.post("/api/breakers/{name:path}/open")
async def open_breaker(
    name: BreakerName, body: Reason, who: Operator, house: AHouse
) -> list[BreakerShown]:
    """Let nobody through until one job has tried it after its rest."""
    await house.retoma.breakers.open(name, body.why, actor=who.name)
    return await _breaker(house, name)


@routes.post("/api/breakers/{name:path}/close")
async def close_breaker(name: BreakerName, who: Operator, house: AHouse) -> list[BreakerShown]:
    """Let all through again, now."""
    await house.retoma.breakers.close(name, actor=who.name)
    return await _breaker(house, name)
