"""The page of schedules: what is submitted by the clock, when next, and a run beside its ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import Request
from starlette.responses import Response

from retoma.engine.rules.cron import Cron
from retoma.library import Retoma
from retoma.services import schedules
from retoma.services.schedules import ScheduleSeen
from retoma.web.pages.kit import ALooker, Screen, called, drawn, pager
from retoma.web.pages.live import Region
from retoma.web.pages.route import did, form_of, page_router, plain, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator
from retoma.words import Said, say

routes = page_router()

TICKS: Final = 3  # that are told ahead
NO_SCHEDULES: Final = say("No schedules. What code declares with `app.schedule` appears here.")


@dataclass(frozen=True, slots=True)
class SchedulesScreen(Screen):
    """All of them, by their names."""

    async def draw(self) -> Sequence[Region]:
        found = await schedules.list_schedules(self.pages.house.retoma)
        rows = {
            called("schedule", each.name): self.pages.render(
                "schedule_row.html",
                self.view,
                id=called("schedule", each.name),
                each=each,
                ticks=ticks(each),
            )
            for each in found
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(self.pages, self.view, empty=not found, nothing=NO_SCHEDULES)
        return [drawn("rows", table, rows), turns]


def ticks(schedule: ScheduleSeen) -> list[datetime]:
    """The next instants at which it submits; none while it is paused."""
    if schedule.paused_at is not None:
        return []
    cron = Cron(schedule.cron, schedule.timezone)
    found = [schedule.next_at]
    while len(found) < TICKS:
        found.append(cron.after(found[-1]))
    return found


serve_screen(routes, "/schedules", plain(SchedulesScreen), "schedules.html")


@routes.post("/schedules/{verb}")
async def steer(verb: str, actor: Operator, who: ALooker, request: Request) -> Response:
    name = (await form_of(request)).one("name")
    if name is None:
        raise Refusal("bad_input", say("no schedule is named; nothing was changed"))
    said = await _steered(who.house.retoma, verb, name, actor.name)
    return did(who, who.view.tell(said), "/schedules")


async def _steered(retoma: Retoma, verb: str, name: str, actor: str) -> Said:
    match verb:
        case "run":
            job = await schedules.run_schedule(retoma, name, actor=actor)
            return say("{name}: job {job} was submitted", name=name, job=job.id)
        case "pause":
            await schedules.pause_schedule(retoma, name, actor=actor)
            return say("{name} is paused", name=name)
        case "unpause":
            await schedules.unpause_schedule(retoma, name, actor=actor)
            return say("{name} goes on with its next tick", name=name)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
