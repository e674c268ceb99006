"""The pages of workers, proxies and writers: which there are, how they fare, and one more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.apps.ads import api, store
from retoma.apps.ads.api import NewProxy, NewWorker, NewWriter
from retoma.apps.ads.pages.looks import CONCERN, filled, knob, worker_rows
from retoma.web.pages.kit import ALooker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Admin, Viewer
from retoma.words import say

routes = page_router()


@dataclass(frozen=True, slots=True)
class Screen:
    """What the three have in common."""

    pages: Pages = field(compare=False, repr=False)
    view: View

    @property
    def concern(self) -> Concern:
        return CONCERN


# — workers —


@dataclass(frozen=True, slots=True)
class WorkersScreen(Screen):
    """Every worker."""

    @property
    def key(self) -> "WorkersScreen":
        return self

    async def draw(self) -> Sequence[Region]:
        house = self.pages.house
        names = {each.id: each.name for each in await api.proxies_shown(house)}
        limit = await knob(self.pages, "session_limit")
        workers = await api.workers_shown(house)
        rows = worker_rows(self.pages, self.view, workers, names, limit)
        html = self.pages.render(
            "ads/workers_card.html", self.view, rows=rows.values(), titled=False
        )
        return [drawn("workers", html, rows)]


def workers_screen(who: ALooker) -> WorkersScreen:
    return WorkersScreen(who.pages, who.view)


AWorkers = Annotated[WorkersScreen, Depends(workers_screen)]


@routes.get("/ads/workers")
async def show_workers(_: Viewer, who: ALooker, screen: AWorkers) -> Response:
    return await who.page(screen, "ads/workers.html")


@routes.get("/live/ads/workers")
async def live_workers(_: Viewer, who: ALooker, request: Request, screen: AWorkers) -> Response:
    return await streamed(request, who, screen)


@routes.post("/ads/workers")
async def add_worker(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    told = {name: form.one(name) for name in NewWorker.model_fields}
    made = await api.add_worker(filled(NewWorker, told), actor, who.house)
    said = say("worker {id} is added", id=made.ids[0])
    return did(who, who.view.tell(said), "/ads/workers")


# — proxies —


@dataclass(frozen=True, slots=True)
class ProxiesScreen(Screen):
    """Every proxy."""

    @property
    def key(self) -> "ProxiesScreen":
        return self

    async def draw(self) -> Sequence[Region]:
        house = self.pages.house
        names = {each.id: each.name for each in await api.workers_shown(house)}
        rows = {
            f"proxy-{each.id}": self.pages.render(
                "ads/proxy_row.html",
                self.view,
                proxy=each,
                worker=names.get(each.in_use_by_worker_id or "", each.in_use_by_worker_id),
            )
            for each in await api.proxies_shown(house)
        }
        html = self.pages.render("ads/proxies_card.html", self.view, rows=rows.values())
        return [drawn("proxies", html, rows)]


def proxies_screen(who: ALooker) -> ProxiesScreen:
    return ProxiesScreen(who.pages, who.view)


AProxies = Annotated[ProxiesScreen, Depends(proxies_screen)]


@routes.get("/ads/proxies")
async def show_proxies(_: Viewer, who: ALooker, screen: AProxies) -> Response:
    return await who.page(screen, "ads/proxies.html")


@routes.get("/live/ads/proxies")
async def live_proxies(_: Viewer, who: ALooker, request: Request, screen: AProxies) -> Response:
    return await streamed(request, who, screen)


@routes.post("/ads/proxies")
async def add_proxy(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    told: dict[str, object] = {name: form.one(name) for name in NewProxy.model_fields}
    port = form.one("port")
    if port is not None and port.isascii() and port.isdigit():
        told["port"] = int(port)
    made = await api.add_proxy(filled(NewProxy, told), actor, who.house)
    said = say("proxy {id} is added", id=made.ids[0])
    return did(who, who.view.tell(said), "/ads/proxies")


@routes.post("/ads/proxies/switch")
async def switch_proxy(actor: Admin, who: ALooker, request: Request) -> Response:
    """ "Desativar": whoever has it ends with it, and nobody else gets it. "Ativar"."""
    form = await form_of(request)
    proxy, verb = form.one("proxy"), form.one("verb")
    if proxy is None or verb not in ("on", "off"):
        raise Refusal("bad_input", say("nothing is named; nothing was changed"))
    on = verb == "on"
    reason = "ativado na página" if on else "desativado na página"
    await who.house.retoma.pools.switch(
        store.PROXIES, [proxy], on=on, reason=reason, actor=actor.name
    )
    said = say("{proxy} is active", proxy=proxy)
    if not on:
        said = say("{proxy} is given to nobody any more", proxy=proxy)
    return did(who, who.view.tell(said), "/ads/proxies")


# — writers —


@dataclass(frozen=True, slots=True)
class WritersScreen(Screen):
    """Every writer."""

    @property
    def key(self) -> "WritersScreen":
        return self

    async def draw(self) -> Sequence[Region]:
        rows = {
            f"writer-{each.id}": self.pages.render(
                "ads/writer_row.html", self.view, writer=each
            )
            for each in await api.writers_shown(self.pages.house)
        }
        html = self.pages.render("ads/writers_card.html", self.view, rows=rows.values())
        return [drawn("writers", html, rows)]


def writers_screen(who: ALooker) -> WritersScreen:
    return WritersScreen(who.pages, who.view)


AWriters = Annotated[WritersScreen, Depends(writers_screen)]


@routes.get("/ads/writers")
async def show_writers(_: Viewer, who: ALooker, screen: AWriters) -> Response:
    return await who.page(screen, "ads/writers.html")


@routes.get("/live/ads/writers")
async def live_writers(_: Viewer, who: ALooker, request: Request, screen: AWriters) -> Response:
    return await streamed(request, who, screen)


@routes.post("/ads/writers")
async def add_writer(actor: Admin, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    told = {name: form.one(name) for name in NewWriter.model_fields}
    made = await api.add_writer(filled(NewWriter, told), actor, who.house)
    said = say("writer {id} is added", id=made.ids[0])
    return did(who, who.view.tell(said), "/ads/writers")
