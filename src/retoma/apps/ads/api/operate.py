"""What is done to workers, proxies and writers over the API: one of them, some, or all."""

from typing import Annotated

from pydantic import Field, StrictStr

from retoma.apps.ads.api.things import WorkerShown, show_worker
from retoma.apps.ads.api.wire import ThingId, routes
from retoma.apps.ads.service import resources
from retoma.apps.ads.service.inputs import MOST
from retoma.apps.ads.store import Sort
from retoma.web import Admin, AHouse, Operator
from retoma.web.wire import Body, Shown

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


def _offer(sort: Sort) -> None:
    """The routes that are the same for each sort."""

    @routes.post(f"/api/{sort}/activate")
    async def activate_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Activate them, all or none. A proxy begins anew: its `fail_count` is 0."""
        await resources.activate_resources(house.retoma, sort, body.ids, actor=who.name)
        return Done(ids=body.ids)

    @routes.post(f"/api/{sort}/deactivate")
    async def deactivate_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Deactivate them, all or none: what runs is finished, then they are given nothing more."""
        await resources.deactivate_resources(house.retoma, sort, body.ids, actor=who.name)
        return Done(ids=body.ids)

    @routes.post(f"/api/{sort}/test", status_code=202)
    async def test_some(body: NamedOrAll, who: Operator, house: AHouse) -> Testing:
        """Have them tested, or all of them: a job for each, and its result beside it."""
        n = await resources.request_tests(house.retoma, sort, body.ids, actor=who.name)
        return Testing(tests=n)

    @routes.post(f"/api/{sort}/delete")
    async def delete_some(body: Named, who: Admin, house: AHouse) -> Done:
        """Delete them, all or none: only what nobody uses."""
        await resources.delete_resources(house.retoma, sort, body.ids, actor=who.name)
        return Done(ids=body.ids)

    @routes.post(f"/api/{sort}/{{id}}/activate")
    async def activate_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Activate it. A worker needs a storage_domain for that."""
        await resources.activate_resources(house.retoma, sort, [id_], actor=who.name)
        return Done(ids=[id_])

    @routes.post(f"/api/{sort}/{{id}}/deactivate")
    async def deactivate_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Deactivate it: what runs is finished, then it is given nothing more."""
        await resources.deactivate_resources(house.retoma, sort, [id_], actor=who.name)
        return Done(ids=[id_])

    @routes.post(f"/api/{sort}/{{id}}/test", status_code=202)
    async def test_one(id_: ThingId, who: Operator, house: AHouse) -> Testing:
        """Have it tested by a job; its result stands beside it."""
        n = await resources.request_tests(house.retoma, sort, [id_], actor=who.name)
        return Testing(tests=n)

    @routes.delete(f"/api/{sort}/{{id}}")
    async def delete_one(id_: ThingId, who: Admin, house: AHouse) -> Done:
        """Delete it, if nobody uses it; what was told of it stays."""
        await resources.delete_resources(house.retoma, sort, [id_], actor=who.name)
        return Done(ids=[id_])


for each in Sort:
    _offer(each)


@routes.post("/api/workers/{id}/reset")
async def reset(id_: ThingId, who: Operator, house: AHouse) -> WorkerShown:
    """ "Resetar": a worker in error is idle at once, without waiting for the end of its rest."""
    await resources.reset_worker(house.retoma, id_, actor=who.name)
    return await show_worker(house, id_)


@routes.post("/api/workers/{id}/relocate")
async def relocate(id_: ThingId, who: Operator, house: AHouse) -> WorkerShown:
    """ "Worker perdido: realocar": its session is declared over; its mission goes on elsewhere."""
    await resources.relocate_worker(house.retoma, id_, actor=who.name)
    return await show_worker(house, id_)
