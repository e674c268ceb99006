"""Projects: their closed set of labels, made and changed by whoever may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from retoma.apps.documents import service
from retoma.apps.documents.bodies import ProjectSaid
from retoma.apps.documents.model import (
    CHARS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHARS,
    MOST_RETRIES,
)
from retoma.apps.documents.pages.presenters import CONCERN, PAGE
from retoma.apps.documents.service.projects import Accuracy
from retoma.apps.documents.store.projects import Project
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.readers.rules import Ocr
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import CursorOf, Number, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, form_of, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()

PROJECTS: Final = f"{PAGE}/projeto"
LIST: Final = 50
NO_PROJECTS: Final = say("No projects yet. A project says which labels a document can have.")
MOST_CHOICES: Final = 200  # projects in a list to choose from
BLANK: Final = 3  # labels more than there are, in a form
OCRS: Final[Mapping[Ocr, Said]] = {
    Ocr.NEVER: say("never"),
    Ocr.WITHOUT_TEXT: say("where a page has no text"),
    Ocr.ALWAYS: say("always"),
}
NUMBERS: Final = ("max_caracteres", "max_retries_documento", "max_retries_execucao")


def led(who: Looker, address: str) -> Response:
    """To where the new thing is seen."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)


# — all of them —


@dataclass(frozen=True, slots=True)
class ProjectsScreen(Screen):
    """The newest projects, or older ones."""

    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("projetos", None)
        [before] = stamp.read(self.cursor, int) or [None]
        page = await service.projects.list_projects(
            self.pages.house.retoma, before=before, limit=LIST
        )
        following = stamp.write(page.next)
        rows = {
            f"project-{each.id}": self.pages.render(
                "documents/project_row.html", self.view, project=each
            )
            for each in page.items
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_PROJECTS,
            way=(say("New project"), f"{PROJECTS}/novo"),
            following=following and PROJECTS + query_of({"cursor": following}),
            first=self.cursor and PROJECTS,
        )
        return [drawn("rows", table, rows), turns]


def projects_screen(who: ALooker, cursor: CursorOf = None) -> ProjectsScreen:
    return ProjectsScreen(who.pages, who.view, cursor)


serve_screen(routes, "/classificador/projeto", projects_screen, "documents/projects.html")


# — one —


@routes.get("/classificador/projeto/novo")
async def blank(_: Viewer, who: ALooker) -> Response:
    return _form(who, None)


@routes.get("/classificador/projeto/{project}")
async def show(project: Number, _: Viewer, who: ALooker) -> Response:
    retoma = who.house.retoma
    found = await service.projects.get_project(retoma, project)
    return _form(who, found, await service.projects.measure_accuracy(retoma, project))


@routes.post("/classificador/projeto/novo")
async def add(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Criar projeto"."""
    body = _read(await form_of(request))
    await service.projects.add_project(
        who.house.retoma, body.nome, body.rules(), actor=actor.name
    )
    return led(who, PROJECTS)


@routes.post("/classificador/projeto/{project}")
async def change(project: Number, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Salvar": executions that are there keep the rules they began with."""
    body = _read(await form_of(request))
    await service.projects.change_project(
        who.house.retoma, project, body.nome, body.rules(), actor=actor.name
    )
    return led(who, PROJECTS)


@routes.post("/classificador/projeto/{project}/remover")
async def remove(project: Number, actor: Operator, who: ALooker) -> Response:
    await service.projects.remove_project(who.house.retoma, project, actor=actor.name)
    return led(who, PROJECTS)


def _form(who: Looker, project: Project | None, accuracy: Sequence[Accuracy] = ()) -> Response:
    return who.answer(
        "documents/project.html",
        project=project,
        place=f"{PROJECTS}/{'novo' if project is None else project.id}",
        accuracy=accuracy,
        blank=BLANK,
        chars=CHARS,
        ocrs=OCRS,
        usual=MOST_CHARS,
        retries=MOST_RETRIES,
        longest=(LONGEST_NAME, LONGEST_TEXT),
    )


def _read(form: Form) -> ProjectSaid:
    """A label without a name is none, unless it is described."""
    both = zip_longest(form.all("rotulo"), form.all("descricao"), fillvalue="")
    labels = [
        {"nome": name.strip(), "descricao": why.strip()}
        for name, why in both
        if name.strip() or why.strip()
    ]
    if not labels:
        raise BadInput(say("a project needs one label at least"))
    fields: dict[str, Any] = {
        name: form.one(name) for name in ("nome", "modelo", "instrucoes", "ocr")
    }
    fields |= {name: _number(form, name, int) for name in NUMBERS}
    fields["confianca_minima"] = _number(form, "confianca_minima", float)
    return filled(ProjectSaid, {**fields, "rotulos": labels})


def _number(form: Form, name: str, of: type[int] | type[float]) -> float | None:
    given = form.one(name)
    try:
        return None if given is None else of(given.replace(",", "."))
    except ValueError:
        raise BadInput(say("{name} is not a number; nothing was changed", name=name)) from None
