"""Mission Control of the document: what workers, missions and proxies do now; "Iniciar" and "Parar"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from retoma.apps.ads.model import WorkerStatus
from retoma.apps.ads.pages.presenters import (
    CONCERN,
    concern_of,
    read_setting,
    running_rows,
    worker_rows,
)
from retoma.apps.ads.pages.words import field_name
from retoma.apps.ads.service import missions, orchestrator, resources
from retoma.apps.ads.store import (
    EXTRACTION,
    OrchestratorState,
    ProxyRecord,
    WorkerRecord,
    WriterRecord,
)
from retoma.engine.query import RunnerSeen
from retoma.services import settings
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, serve_screen
from retoma.web.pages.settings import shown
from retoma.web.sign_in import Operator
from retoma.words import say

routes = page_router()

BACK: Final = "/ads"
MOST: Final = 200  # missions under way that are shown
OWN: Final = "ads."  # with which the names of our knobs begin
SHOWN_KNOBS: Final = ("session_limit", "max_retries")


@dataclass(frozen=True, slots=True)
class Here:
    """What there is to work with; each property: why nothing, or nothing new, can go on."""

    workers: Sequence[WorkerRecord]
    proxies: Sequence[ProxyRecord]
    writers: Sequence[WriterRecord]
    runners: Sequence[RunnerSeen]

    @property
    def no_runner(self) -> bool:
        return not self.runners

    @property
    def no_worker(self) -> bool:
        return not any(each.active for each in self.workers)

    @property
    def all_in_error(self) -> bool:
        active = [each for each in self.workers if each.active]
        return bool(active) and all(each.status is WorkerStatus.ERROR for each in active)

    @property
    def no_proxy(self) -> bool:
        return not any(each.active for each in self.proxies)

    @property
    def no_writer(self) -> bool:
        return not any(each.active for each in self.writers)

    @property
    def writers_away(self) -> list[WriterRecord]:
        return [each for each in self.writers if each.active and each.away_since is not None]


def _works_here(runner: RunnerSeen) -> bool:
    """Whether it lives, and does our jobs."""
    kinds = {each.partition("@")[0] for each in runner.knows}  # each with its version
    return runner.living and EXTRACTION in kinds


@dataclass(frozen=True, slots=True)
class ControlScreen(Screen):
    """All that the orchestrator does now."""

    concern: Concern = CONCERN

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        state = await orchestrator.get_orchestrator(retoma)
        workers = await resources.list_records(retoma, WorkerRecord)
        proxies = await resources.list_records(retoma, ProxyRecord)
        writers = await resources.list_records(retoma, WriterRecord)
        runners = [each for each in await retoma.runners.list() if _works_here(each)]
        knobs = {name: await read_setting(self.pages, name) for name in SHOWN_KNOBS}
        return [
            self._head(
                state,
                knobs,
                Here(workers, proxies, writers, runners),
                await orchestrator.find_problems(retoma),
            ),
            self._workers(workers, proxies, knobs["session_limit"]),
            await self._underway(),
            self._proxies(proxies, workers),
            self._programs(writers, runners),
            await self._settings(),
        ]

    async def _settings(self) -> Region:
        """Every knob of ours by the document's name (§8)."""
        seen = await settings.list_settings(
            self.pages.house.retoma, self.pages.settings, every=True
        )
        own = [each for each in seen if each.name.startswith(OWN)]
        html = self.pages.render(
            "ads/control_settings.html", self.view, knobs=own, own=OWN, shown=shown
        )
        return drawn("control-settings", html)

    def _head(
        self,
        state: OrchestratorState,
        knobs: dict[str, Any],
        here: "Here",
        troubles: Mapping[str, Any],
    ) -> Region:
        html = self.pages.render(
            "ads/control_head.html",
            self.view,
            state=state,
            knobs=knobs,
            called=partial(field_name, self.view),
            started=state.wish == "started",
            here=here,
            late_proxy="no_proxy" in troubles,
            late_writer="no_writer" in troubles,
        )
        return drawn("control-head", html)

    def _workers(
        self, workers: Sequence[WorkerRecord], proxies: Sequence[ProxyRecord], limit: int
    ) -> Region:
        names = {each.id: each.name for each in proxies}
        rows = worker_rows(self.pages, self.view, workers, names, limit)
        html = self.pages.render(
            "ads/workers_card.html",
            self.view,
            rows=rows.values(),
            titled=True,
            operated=False,
            first=None,
            following=None,
        )
        return drawn("workers", html, rows)

    def _programs(
        self, writers: Sequence[WriterRecord], runners: Sequence[RunnerSeen]
    ) -> Region:
        """Who stores ads, and who runs all this."""
        html = self.pages.render(
            "ads/control_programs.html", self.view, writers=writers, runners=runners
        )
        return drawn("control-programs", html)

    async def _underway(self) -> Region:
        found = await missions.list_running_missions(self.pages.house.retoma, MOST)
        rows = running_rows(self.pages, self.view, found)
        html = self.pages.render("ads/underway_card.html", self.view, rows=rows.values())
        return drawn("underway", html, rows)

    def _proxies(
        self, proxies: Sequence[ProxyRecord], workers: Sequence[WorkerRecord]
    ) -> Region:
        names = {each.id: each.name for each in workers}
        html = self.pages.render(
            "ads/control_proxies.html",
            self.view,
            used=[each for each in proxies if each.in_use_by_worker_id],
            free=sum(1 for each in proxies if each.active and not each.in_use_by_worker_id),
            off=sum(1 for each in proxies if not each.active),
            names=names,
        )
        return drawn("proxies-in-use", html)


async def control_screen(who: ALooker) -> ControlScreen:
    return ControlScreen(who.pages, who.view, await concern_of(who.pages))


serve_screen(routes, "/ads", control_screen, "ads/control.html")


@routes.post("/ads/start")
async def start(actor: Operator, who: ALooker) -> Response:
    """ "Iniciar"."""
    await orchestrator.start_orchestrator(who.house.retoma, actor=actor.name)
    return did(who, who.view.tell(say("The orchestrator is started.")), BACK)


@routes.post("/ads/stop")
async def stop(actor: Operator, who: ALooker) -> Response:
    """ "Parar"."""
    await orchestrator.stop_orchestrator(who.house.retoma, actor=actor.name)
    said = say("The orchestrator stops: what runs is finished, then the sessions end.")
    return did(who, who.view.tell(said), BACK)


@routes.post("/ads/stop-now")
async def stop_now(actor: Operator, who: ALooker) -> Response:
    """ "Parar agora"."""
    await orchestrator.stop_orchestrator(who.house.retoma, actor=actor.name, now=True)
    said = say("The orchestrator stops: what runs is canceled, then the sessions end.")
    return did(who, who.view.tell(said), BACK)
