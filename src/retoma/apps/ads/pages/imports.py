"""The page on which many things come in at once: pasted or from a file, generated, or by the clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from starlette.responses import HTMLResponse, Response

from retoma.apps.ads.model import MediaType
from retoma.apps.ads.service import recurrences
from retoma.apps.ads.service.imports import Verdict, import_lines
from retoma.apps.ads.service.inputs import Generate, Recur
from retoma.apps.ads.service.intake import COLUMNS, LONGEST, Intake, read
from retoma.web.pages.asked import Blank, filled
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

BACK: Final = "/ads/import"
SHOWN: Final = 200  # lines of a dry run
LOOKS: Final = {Verdict.NEW: "done", Verdict.DUPLICATE: "skipped", Verdict.WRONG: "dead"}

WhatOf = Annotated[Intake | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class ImportScreen(Screen):
    """What comes by the clock."""

    async def draw(self) -> Sequence[Region]:
        found = await recurrences.list_recurrences(self.pages.house.retoma)
        html = self.pages.render("ads/recurrences.html", self.view, recurrences=found)
        return [drawn("recurrences", html)]


def import_screen(who: ALooker) -> ImportScreen:
    return ImportScreen(who.pages, who.view)


AnImport = Annotated[ImportScreen, Depends(import_screen)]


@routes.get("/ads/import")
async def show(_: Viewer, who: ALooker, screen: AnImport, what: WhatOf = None) -> Response:
    return await who.page(
        screen,
        "ads/import.html",
        chosen=what or Intake.PROXIES,
        columns=COLUMNS,
        longest=LONGEST,
        media_types=MediaType,
    )


serve_screen(routes, "/ads/import", import_screen)


@routes.post("/ads/import")
async def take_in(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Conferir" changes nothing; "Importar" adds what is new. The text stays in the browser."""
    form = await form_of(request)
    what = _what(form)
    if what is not Intake.MISSIONS and not who.view.rules:
        raise Refusal("not_allowed", say("only an admin adds workers, proxies and writers"))
    dry_run = form.one("verb") != "apply"
    done = await import_lines(
        who.house.retoma,
        what,
        read(what, form.one("text") or ""),
        actor=actor.name,
        dry_run=dry_run,
        test=bool(form.one("test")),
        queue=bool(form.one("queue")),
    )
    if not dry_run:
        done.refuse_wrong()
    if not who.htmx:
        return did(who, "", BACK)
    html = who.pages.render(
        "ads/import_result.html",
        who.view,
        dry_run=dry_run,
        counts={str(each): done.count(each) for each in Verdict},
        lines=done.lines[:SHOWN],
        more=max(len(done.lines) - SHOWN, 0),
        looks=LOOKS,
    )
    return HTMLResponse(html, headers={"Cache-Control": "no-store"})


def _what(form: Form) -> Intake:
    try:
        return Intake(form.one("what") or "")
    except ValueError:
        raise Refusal("bad_input", say("nothing is named; nothing was changed")) from None


# — missions by rule —


@routes.post("/ads/generate")
async def generate(actor: Operator, who: ALooker, request: Request) -> Response:
    """How many that would be, or made at once."""
    form = await form_of(request)
    days = {name: form.one(name) for name in ("date_start", "date_end")}
    dry_run = form.one("verb") != "apply"
    body = filled(Generate, {**days, **_rule(form), "dry_run": dry_run})
    made = await recurrences.generate_missions(who.house.retoma, body, actor=actor.name)
    counts = {"wanted": made.wanted, "new": made.new, "known": made.duplicate}
    if dry_run:
        said = say("{wanted} missions: {new} new, {known} there already", **counts)
    else:
        said = say("missions made: {new}; there already: {known}", **counts)
    return did(who, who.view.tell(said), BACK)


@routes.post("/ads/recurrences")
async def recur(actor: Operator, who: ALooker, request: Request) -> Response:
    form = await form_of(request)
    told = {"name": form.one("name"), "cron": form.one("cron"), "back": _number(form, "back")}
    body = filled(Recur, {**told, **_rule(form)})
    made = await recurrences.add_recurrence(who.house.retoma, body, actor=actor.name)
    said = say("{name}: next run at {at}", name=made.name, at=who.view.when(made.next_at))
    return did(who, who.view.tell(said), BACK)


@routes.post("/ads/recurrences/remove")
async def remove(actor: Operator, who: ALooker, request: Request) -> Response:
    name = (await form_of(request)).one("name") or ""
    await recurrences.remove_recurrence(who.house.retoma, name, actor=actor.name)
    return did(who, who.view.tell(say("schedule {name} was removed", name=name)), BACK)


def _rule(form: Form) -> dict[str, Any]:
    return {
        "languages": (form.one("languages") or "").replace(",", " ").split(),
        "media_types": form.all("media_type"),
        "days": _number(form, "days"),
        "queue": bool(form.one("queue")),
    }


def _number(form: Form, name: str) -> object:
    given = form.one(name)
    plain = given is not None and given.isascii() and given.isdigit() and len(given) < 9
    return int(given or 0) if plain else given
