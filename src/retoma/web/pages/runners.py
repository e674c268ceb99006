"""The page of runners: who runs jobs, how full each is, and how one is asked to leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.responses import Response

from retoma.services import runners
from retoma.services.runners import RunnerSeen
from retoma.web.pages.kit import ALooker, Screen, called, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, plain, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Admin
from retoma.words import Said, say

routes = page_router()

PAUSE: Final = 1.5  # seconds between two drawings: beats are slower
STANDS: Final[Mapping[str, Said]] = {
    "alive": say("alive"),
    "asked": say("asked to leave"),
    "leaving": say("leaving"),
    "silent": say("its lease is over"),
    "gone": say("gone"),
    "lost": say("lost"),
}
LIVING: Final = ("alive", "asked", "leaving", "silent")


@dataclass(frozen=True, slots=True)
class RunnersScreen(Screen):
    """Those who live, then those who are gone."""

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        seen = [
            (stands(each), each)
            for each in await runners.list_runners(self.pages.house.retoma, every=True)
        ]
        seen.sort(key=lambda each: each[0] not in LIVING)
        rows = {
            called("runner", each.boot): self.pages.render(
                "runner_row.html",
                self.view,
                id=called("runner", each.boot),
                runner=each,
                stands=standing,
                word=self.view.tell(STANDS[standing]),
            )
            for standing, each in seen
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        return [self._total([each for _, each in seen]), drawn("rows", table, rows)]

    def _total(self, seen: Sequence[RunnerSeen]) -> Region:
        living = [each for each in seen if each.living]
        html = self.pages.render(
            "runners_total.html",
            self.view,
            any=bool(seen),
            living=len(living),
            held=sum(each.held for each in living),
            slots=sum(each.slots for each in living),
        )
        return drawn("total", html)


def stands(runner: RunnerSeen) -> str:
    """As a person would say it: one that is silent says nothing of itself any more."""
    if runner.state in ("alive", "leaving") and runner.expired:
        return "silent"
    if runner.state == "alive" and runner.drain_at is not None:
        return "asked"
    return runner.state


serve_screen(routes, "/runners", plain(RunnersScreen), "runners.html")


@routes.post("/runners/drain")
async def drain(actor: Admin, who: ALooker, request: Request) -> Response:
    """Ask a runner to leave: it claims nothing more, and ends or gives back what it has."""
    boot = (await form_of(request)).one("boot")
    if boot is None:
        raise Refusal("bad_input", say("no runner is named; nothing was changed"))
    drained = await runners.drain_runner(who.house.retoma, boot, actor=actor.name)
    said = say("{name} was asked to leave", name=drained.name)
    return did(who, who.view.tell(said), "/runners")
