"""`/api/pools`, `/api/rates`, `/api/limits`, `/api/breakers`: what may hold work back."""

from operator import attrgetter
from typing import Annotated

from fastapi import Path

from retoma.services import gates
from retoma.services.gates import LimitSeen, PoolSeen, RateSeen
from retoma.web.cursor import Cursor, cut, turned
from retoma.web.house import AHouse
from retoma.web.route import router
from retoma.web.sign_in import Admin, Operator, Viewer
from retoma.web.wire import (
    BreakerShown,
    Limit,
    NewLimit,
    NewRate,
    NextPage,
    PageOf,
    PoolShown,
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
    seen = await gates.list_pools(house.retoma)
    page, following = turned(Cursor("pools", None), cursor, limit, seen, attrgetter("name"))
    return PageOf(items=[_pool_shown(each) for each in page], next=following)


def _pool_shown(pool: PoolSeen) -> PoolShown:
    return PoolShown(name=pool.name, things=pool.items, on=pool.on, held=pool.held)


@routes.get("/api/pools/{pool:path}/things")
async def list_things(
    pool: PoolName, _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ThingShown]:
    """The things of a pool by name: who holds them, how they fare."""
    stamp = Cursor("things", pool)
    [after] = stamp.read(cursor, str) or [""]
    seen = await gates.list_things(house.retoma, pool, after, limit + 1)
    page, following = cut(stamp, seen, limit, lambda each: [each.name])
    return PageOf(items=[ThingShown.model_validate(each) for each in page], next=following)


@routes.post("/api/pools/{pool:path}/switch")
async def switch_things(
    pool: PoolName, body: Switch, who: Admin, house: AHouse
) -> list[PoolShown]:
    """Switch things on or off, all of them or none, saying why."""
    switch = gates.switch_on if body.on else gates.switch_off
    found = await switch(house.retoma, pool, body.things, body.why, actor=who.name)
    return [_pool_shown(each) for each in found]


@routes.post("/api/pools/{pool:path}/free")
async def free_thing(pool: PoolName, body: Thing, who: Admin, house: AHouse) -> list[PoolShown]:
    """Say that the use of a thing has ended, whoever holds it."""
    found = await gates.free_thing(house.retoma, pool, body.thing, actor=who.name)
    return [_pool_shown(each) for each in found]


@routes.get("/api/rates")
async def list_rates(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[RateSeen]:
    """How often something may be called, by all runners together; by their keys."""
    seen = await gates.list_rates(house.retoma)
    page, following = turned(Cursor("rates", None), cursor, limit, seen, attrgetter("key"))
    return PageOf(items=page, next=following)


@routes.put("/api/rates")
async def set_rate(body: NewRate, who: Admin, house: AHouse) -> RateSeen:
    """Let so many calls a second through from now on."""
    return await gates.set_rate(house.retoma, **body.model_dump(), actor=who.name)


@routes.get("/api/limits")
async def list_limits(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[LimitSeen]:
    """How many may run under each key, and how many do; by their keys."""
    stamp = Cursor("limits", None)
    [after] = stamp.read(cursor, str) or [""]
    seen = await gates.list_limits(house.retoma, after, limit)
    return PageOf(items=seen, next=stamp.write(seen[-1].key if len(seen) == limit else None))


@routes.put("/api/limits")
async def set_limit(body: NewLimit, who: Admin, house: AHouse) -> NewLimit:
    """Let so many run at once, whatever the code says; null: what the code says holds again."""
    await gates.set_limit(house.retoma, body.key, body.cap, actor=who.name)
    return body


@routes.get("/api/breakers")
async def list_breakers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[BreakerShown]:
    """What guards services that may be down; by their names."""
    seen = await gates.list_breakers(house.retoma)
    page, following = turned(Cursor("breakers", None), cursor, limit, seen, attrgetter("name"))
    return PageOf(items=[BreakerShown.model_validate(each) for each in page], next=following)


@routes.post("/api/breakers/{name:path}/open")
async def open_breaker(
    name: BreakerName, body: Reason, who: Operator, house: AHouse
) -> list[BreakerShown]:
    """Let nobody through until one job has tried it after its rest."""
    found = await gates.open_breaker(house.retoma, name, body.why, actor=who.name)
    return [BreakerShown.model_validate(each) for each in found]


@routes.post("/api/breakers/{name:path}/close")
async def close_breaker(name: BreakerName, who: Operator, house: AHouse) -> list[BreakerShown]:
    """Let all through again, now."""
    found = await gates.close_breaker(house.retoma, name, actor=who.name)
    return [BreakerShown.model_validate(each) for each in found]
