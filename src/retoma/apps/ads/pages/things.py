"""The pages of workers, proxies and writers: how they fare, and what people do to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import Response

from retoma.apps.ads.pages.presenters import (
    CONCERN,
    concern_of,
    explain_inactive,
    read_setting,
    worker_rows,
)
from retoma.apps.ads.pages.words import field_name
from retoma.apps.ads.service import resources
from retoma.apps.ads.service.inputs import CHANGED, MOST, NEW, SECRETS
from retoma.apps.ads.store import RECORDS, ProxyRecord, Record, Sort, WorkerRecord
from retoma.library import Retoma
from retoma.secret import STARS
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import CursorOf, filled, shaped
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Admin, Operator, Viewer
from retoma.words import Said, say

routes = page_router()

TITLES: Final = {
    Sort.WORKERS: say("Workers"),
    Sort.PROXIES: say("Proxies"),
    Sort.WRITERS: say("Writers"),
}

PAGE: Final = 50  # rows


@dataclass(frozen=True, slots=True)
class ThingsScreen(Screen):
    """A page of workers, proxies or writers, by their ids."""

    sort: Sort
    cursor: str | None = None
    concern: Concern = CONCERN

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor(self.sort, "")
        [after] = stamp.read(self.cursor, str) or [""]
        found = await resources.list_records(
            self.pages.house.retoma, RECORDS[self.sort], after=after, limit=PAGE + 1
        )
        rows = await self._rows(found[:PAGE])
        following = stamp.write(found[PAGE - 1].id if len(found) > PAGE else None)
        html = self.pages.render(
            f"ads/{self.sort}_card.html",
            self.view,
            rows=rows.values(),
            titled=False,
            operated=True,
            following=following and address(self.sort, following),
            first=self.cursor and address(self.sort),
        )
        return [drawn(self.sort, html, rows)]

    async def _rows(self, found: Sequence[Record]) -> dict[str, Markup]:
        retoma = self.pages.house.retoma
        if self.sort is Sort.WRITERS:
            return {f"writer-{each.id}": self._row(writer=each) for each in found}
        if self.sort is Sort.WORKERS:
            proxies = await resources.list_records(retoma, ProxyRecord)
            names = {each.id: each.name for each in proxies}
            limit = await read_setting(self.pages, "session_limit")
            workers = [each for each in found if isinstance(each, WorkerRecord)]
            return worker_rows(self.pages, self.view, workers, names, limit, operated=True)
        workers = await resources.list_records(retoma, WorkerRecord)
        names = {each.id: each.name for each in workers}
        return {
            f"proxy-{each.id}": self._row(
                proxy=each,
                worker=names.get(each.in_use_by_worker_id or ""),
                why=explain_inactive(each),
            )
            for each in found
            if isinstance(each, ProxyRecord)
        }

    def _row(self, **given: Any) -> Markup:
        template = f"ads/{self.sort.one}_row.html"
        return self.pages.render(template, self.view, operated=True, **given)


def address(sort: Sort, cursor: str | None = None) -> str:
    return f"/ads/{sort}" + query_of({"cursor": cursor})


def _offer_list(sort: Sort) -> None:
    """A page of them, and how it moves."""
    here = address(sort)

    async def screen(who: ALooker, cursor: CursorOf = None) -> ThingsScreen:
        return ThingsScreen(who.pages, who.view, sort, cursor, await concern_of(who.pages))

    @routes.get(here)
    async def show(
        _: Viewer,
        who: ALooker,
        seen: ThingsScreen = Depends(screen),  # noqa: B008 — FastAPI's way
    ) -> Response:
        return await who.page(seen, f"ads/{sort}.html", sort=sort, changed=None)

    serve_screen(routes, here, screen)


def _offer_orders(sort: Sort) -> None:
    """One more; and what is done to those there are."""
    here = address(sort)

    @routes.post(here)
    async def add(actor: Admin, who: ALooker, request: Request) -> Response:
        form = await form_of(request)
        entered = filled(NEW[sort], _told(form, NEW[sort].model_fields))
        id_ = await resources.add_resource(who.house.retoma, entered, actor=actor.name)
        return did(who, who.view.tell(say("{id} is added", id=id_)), here)

    @routes.post(f"{here}/orders")
    async def order(actor: Admin, who: ALooker, request: Request) -> Response:
        """Activate, deactivate, test or delete what is ticked."""
        form = await form_of(request)
        said = await _ordered(
            who.house.retoma, sort, form.one("verb"), _named(form), actor.name
        )
        return did(who, who.view.tell(said), here)

    @routes.post(f"{here}/test")
    async def test(actor: Operator, who: ALooker, request: Request) -> Response:
        """One, or all there are."""
        one = (await form_of(request)).one("id")
        ids = None if one is None else [one]
        n = await resources.request_tests(who.house.retoma, sort, ids, actor=actor.name)
        return did(who, who.view.tell(say("tests requested: {n}", n=n)), here)


def _offer_changes(sort: Sort) -> None:
    """One of them, and what may be changed of it. After the orders: an id may be any word."""
    here = address(sort)

    @routes.get(f"{here}/{{id_}}")
    async def edit(id_: str, _: Admin, who: ALooker) -> Response:
        """What may be changed of it; secrets only go in."""
        found = await resources.get_record(who.house.retoma, RECORDS[sort], id_)
        fields = [name for name in CHANGED[sort].model_fields if name not in SECRETS]
        values = {name: getattr(found, name) for name in fields}
        if values.get("username") is not None:
            values["username"] = STARS
        return who.answer(
            "ads/thing.html",
            thing=found,
            values=values,
            secret=sort.secret,
            sort=sort,
            list_title=TITLES[sort],
            called=partial(field_name, who.view),
        )

    @routes.post(f"{here}/{{id_}}")
    async def change(id_: str, actor: Admin, who: ALooker, request: Request) -> Response:
        given = _told(await form_of(request), CHANGED[sort].model_fields)
        kept = {name: value for name, value in given.items() if name not in SECRETS or value}
        if kept.get("username") == STARS:  # as the form shows it: left as it is
            del kept["username"]
        entered = shaped(CHANGED[sort], kept)
        await resources.change_resource(who.house.retoma, sort, id_, entered, actor=actor.name)
        return did(who, who.view.tell(say("{id} is changed", id=id_)), here)


def _told(form: Form, names: Mapping[str, Any]) -> dict[str, Any]:
    """What a form says of these; a port is a number, if it is one."""
    given: dict[str, Any] = {name: form.one(name) for name in names}
    port = given.get("port")
    if port is not None and port.isascii() and port.isdigit():
        given["port"] = int(port)
    if "vendor" in given:
        given["vendor"] = given["vendor"] or ""
    return given


def _named(form: Form) -> list[str]:
    ids = [each for each in form.all("id") if each]
    if not 1 <= len(ids) <= MOST:
        raise Refusal("bad_input", say("nothing is named; nothing was changed"))
    return ids


async def _ordered(
    retoma: Retoma, sort: Sort, verb: str | None, ids: list[str], actor: str
) -> Said:
    match verb:
        case "on":
            await resources.activate_resources(retoma, sort, ids, actor=actor)
            return say("active: {names}", names=", ".join(ids))
        case "off":
            await resources.deactivate_resources(retoma, sort, ids, actor=actor)
            return say("deactivated: {names}; what runs is finished", names=", ".join(ids))
        case "delete":
            await resources.delete_resources(retoma, sort, ids, actor=actor)
            return say("deleted: {names}", names=", ".join(ids))
        case "test":
            n = await resources.request_tests(retoma, sort, ids, actor=actor)
            return say("tests requested: {n}", n=n)
        case _:
            raise Refusal("bad_input", say("nothing is named; nothing was changed"))


@routes.post("/ads/workers/reset")
async def reset(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Resetar"."""
    [id_] = _named(await form_of(request))[:1]
    await resources.reset_worker(who.house.retoma, id_, actor=actor.name)
    return did(who, who.view.tell(say("{id} is idle", id=id_)), "/ads/workers")


@routes.post("/ads/workers/relocate")
async def relocate(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Worker perdido: realocar"."""
    [id_] = _named(await form_of(request))[:1]
    await resources.relocate_worker(who.house.retoma, id_, actor=actor.name)
    said = say("{id} was declared lost; its mission continues on another worker", id=id_)
    return did(who, who.view.tell(said), "/ads/workers")


for each in Sort:
    _offer_list(each)
    _offer_orders(each)
    _offer_changes(each)
