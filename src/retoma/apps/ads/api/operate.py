"""What is done to workers, proxies and writers over the API: one of them, some, or all."""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import Field, StrictStr

from retoma.apps.ads import store
from retoma.apps.ads.api.how import routes, secrets_of
from retoma.apps.ads.api.things import ThingId, WorkerShown, one_of
from retoma.apps.ads.store import Sort
from retoma.engine.run.transaction import Transaction
from retoma.web import Admin, AHouse, House, Operator
from retoma.web.wire import Body, Shown

MOST: Final = 200  # named in one body

Ids = Annotated[
    list[Annotated[StrictStr, Field(min_length=1, max_length=100)]],
    Field(min_length=1, max_length=MOST),
]


class Named(Body):
    """Some of them, by their ids."""

    ids: Ids


class NamedOrAll(Body):
    """Some of them, by their ids; without any, all there are."""

    ids: Ids | None = None


class Done(Shown):
    """To which it was done."""

    ids: list[str]


class Testing(Shown):
    """How many health tests were asked for; how each went is seen beside what was tested."""

    tests: int


async def activate(house: House, sort: Sort, ids: list[str], actor: str) -> Done:
    return await _do(house, ids, lambda tx: store.activate(tx, sort, ids, actor=actor))


async def deactivate(house: House, sort: Sort, ids: list[str], actor: str) -> Done:
    return await _do(house, ids, lambda tx: store.deactivate(tx, sort, ids, actor=actor))


async def delete(house: House, sort: Sort, ids: list[str], actor: str) -> Done:
    secrets = await secrets_of(house, actor)
    return await _do(house, ids, lambda tx: store.delete(tx, sort, ids, secrets))


async def ask_tests(house: House, sort: Sort, ids: list[str] | None, actor: str) -> Testing:
    n = await house.retoma.write(lambda tx: store.ask_tests(tx, sort, ids, actor=actor))
    return Testing(tests=n)


async def _do(house: House, ids: list[str], fn: Callable[[Transaction], None]) -> Done:
    await house.retoma.write(fn)
    return Done(ids=ids)


def _offer(sort: Sort) -> None:
    """The routes that are the same for each sort."""

    @routes.post(f"/api/{sort}/activate")
    async def activate_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Activate them, all or none. A proxy begins anew: its `fail_count` is 0."""
        return await activate(house, sort, body.ids, who.name)

    @routes.post(f"/api/{sort}/deactivate")
    async def deactivate_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Deactivate them, all or none: what runs is finished, then they are given nothing more."""
        return await deactivate(house, sort, body.ids, who.name)

    @routes.post(f"/api/{sort}/test", status_code=202)
    async def test_some(body: NamedOrAll, who: Operator, house: AHouse) -> Testing:
        """Have them tested, or all of them: a job for each, and its result beside it."""
        return await ask_tests(house, sort, body.ids, who.name)

    @routes.post(f"/api/{sort}/delete")
    async def delete_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Delete them, all or none: only what nobody uses."""
        return await delete(house, sort, body.ids, who.name)

    @routes.post(f"/api/{sort}/{{id}}/activate")
    async def activate_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Activate it. A worker needs a storage_domain for that."""
        return await activate(house, sort, [id_], who.name)

    @routes.post(f"/api/{sort}/{{id}}/deactivate")
    async def deactivate_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Deactivate it: what runs is finished, then it is given nothing more."""
        return await deactivate(house, sort, [id_], who.name)

    @routes.post(f"/api/{sort}/{{id}}/test", status_code=202)
    async def test_one(id_: ThingId, who: Operator, house: AHouse) -> Testing:
        """Have it tested by a job; its result stands beside it."""
        return await ask_tests(house, sort, [id_], who.name)

    @routes.delete(f"/api/{sort}/{{id}}")
    async def delete_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Delete it, if nobody uses it; what was told of it stays."""
        return await delete(house, sort, [id_], who.name)


for each in Sort:
    _offer(each)


@routes.post("/api/workers/{id}/reset")
async def reset(id_: ThingId, who: Operator, house: AHouse) -> WorkerShown:
    """ "Resetar": a worker in error is idle at once, without waiting for the end of its rest."""
    await house.retoma.write(lambda tx: store.reset_worker(tx, id_, actor=who.name))
    return WorkerShown(**await one_of(house, Sort.WORKERS, id_))


@routes.post("/api/workers/{id}/relocate")
async def relocate(id_: ThingId, who: Operator, house: AHouse) -> WorkerShown:
    """ "Worker perdido: realocar": its session is declared over; its mission goes on elsewhere."""
    await house.retoma.write(lambda tx: store.relocate(tx, id_, actor=who.name))
    return WorkerShown(**await one_of(house, Sort.WORKERS, id_))
