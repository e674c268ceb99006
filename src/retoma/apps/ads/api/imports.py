"""Proxies, workers, writers and missions by the dozen over the API."""

from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from retoma.apps.ads.api.wire import routes
from retoma.apps.ads.service.imports import Verdict, import_lines
from retoma.apps.ads.service.intake import LONGEST, Intake, read
from retoma.apps.ads.store import Sort
from retoma.web import Admin, AHouse, House, Operator
from retoma.web.house import AVisit
from retoma.web.wire import Body, Shown
from retoma.words import Language, tell


class Pasted(Body):
    """Lines, as a table or in the forms vendors use."""

    text: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST)]
    dry_run: StrictBool = True
    test: Annotated[StrictBool, Field(description="Test what was added.")] = False
    queue: Annotated[StrictBool, Field(description="Queue the missions that were added.")] = (
        False
    )


class LineShown(Shown):
    """What a line is; of a wrong one only its number and the reasons."""

    line: int
    verdict: Verdict
    what: str
    why: list[str]


class Imported(Shown):
    """What was added, or would be."""

    dry_run: bool
    new: int
    duplicate: int
    wrong: int
    ids: list[str]
    lines: list[LineShown]


@routes.post("/api/ads/import/missions")
async def import_missions(
    body: Pasted, who: Operator, house: AHouse, visit: AVisit
) -> Imported:
    """Missions into the Banco by lines: date_start, date_end, media_type, languages."""
    return await _import(house, Intake.MISSIONS, body, who.name, visit.language)


@routes.post("/api/ads/import/{what}")
async def import_things(
    what: Sort, body: Pasted, who: Admin, house: AHouse, visit: AVisit
) -> Imported:
    """Proxies, workers or writers by lines; a dry run unless told otherwise."""
    return await _import(house, Intake(what), body, who.name, visit.language)


async def _import(
    house: House, what: Intake, body: Pasted, actor: str, language: Language
) -> Imported:
    done = await import_lines(
        house.retoma,
        what,
        read(what, body.text),
        actor=actor,
        dry_run=body.dry_run,
        test=body.test,
        queue=body.queue,
    )
    if not body.dry_run:
        done.refuse_wrong()
    return Imported(
        dry_run=body.dry_run,
        new=done.count(Verdict.NEW),
        duplicate=done.count(Verdict.DUPLICATE),
        wrong=done.count(Verdict.WRONG),
        ids=list(done.ids),
        lines=[
            LineShown(
                line=each.number,
                verdict=each.verdict,
                what=each.what,
                why=[tell(why, language) for why in each.why],
            )
            for each in done.lines
        ],
    )
