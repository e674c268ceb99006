"""Projects: their closed set of labels, made and changed by whoever may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from retoma.apps.documents import api
from retoma.apps.documents.api.how import ProjectId
from retoma.apps.documents.api.projetos import AccuracyShown, ProjectSaid, ProjectShown
from retoma.apps.documents.model import (
    CHARS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHARS,
    MOST_RETRIES,
)
from retoma.apps.documents.pages.looks import ANYONE, CONCERN, PAGE
from retoma.apps.readers.rules import Ocr
from retoma.engine.errors import BadInput
from retoma.web import House
from retoma.web.pages.asked import CursorOf, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()

PROJECTS: Final = f"{PAGE}/projeto"
LIST: Final = 50
NO_PROJECTS: Final = say("No projects yet. A project says which labels a document can have.")
MOST: Final = 200  # that may be chosen of
BLANK: Final = 3  # labels more than there are, in a form
OCRS: Final[Mapping[Ocr, Said]] = {
    Ocr.NEVER: say("never"),
    Ocr.WITHOUT_TEXT: say("where a page has no text"),
    Ocr.ALWAYS: say("always"),
}
NUMBERS: Final = ("max_caracteres", "max_retries_documento", "max_retries_execucao")


async def every_project(house: House) -> Sequence[ProjectShown]:
    """Those that may be chosen of, the newest first."""
    return (await api.projetos.list_projects(ANYONE, house, None, MOST)).items


def led(who: Looker, address: str) -> Response:
    """To where the new thing is seen."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)


# — all of them —


@dataclass(frozen=True, slots=True)
class ProjectsScreen:
    """The newest projects, or older ones."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    cursor: str | None = None

    @property
    def key(self) -> "ProjectsScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        page = await api.projetos.list_projects(ANYONE, self.pages.house, self.cursor, LIST)
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
            following=page.next and PROJECTS + query_of({"cursor": page.next}),
            first=self.cursor and PROJECTS,
        )
        return [drawn("rows", table, rows), turns]


def projects_screen(who: ALooker, cursor: CursorOf = None) -> ProjectsScreen:
    return ProjectsScreen(who.pages, who.view, cursor)


AList = Annotated[ProjectsScreen, Depends(projects_screen)]


@routes.get("/classificador/projeto")
async def show_all(_: Viewer, who: ALooker, screen: AList) -> Response:
    return await who.page(screen, "documents/projects.html")


@routes.get("/live/classificador/projeto")
async def live_all(_: Viewer, who: ALooker, request: Request, screen: AList) -> Response:
    return await streamed(request, who, screen)


# — one —


@routes.get("/classificador/projeto/novo")
async def blank(_: Viewer, who: ALooker) -> Response:
    return _form(who, None)


@routes.get("/classificador/projeto/{project}")
async def show(project: ProjectId, _: Viewer, who: ALooker) -> Response:
    shown = await api.projetos.get_project(project, ANYONE, who.house)
    return _form(who, shown, await api.projetos.get_accuracy(project, ANYONE, who.house))


@routes.post("/classificador/projeto/novo")
async def add(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Criar projeto"."""
    said = _said(await form_of(request))
    await api.projetos.add_project(said, actor, who.house, Response())
    return led(who, PROJECTS)


@routes.post("/classificador/projeto/{project}")
async def change(
    project: ProjectId, actor: Operator, who: ALooker, request: Request
) -> Response:
    """ "Salvar": executions that are there keep the rules they began with."""
    await api.projetos.change_project(project, _said(await form_of(request)), actor, who.house)
    return led(who, PROJECTS)


@routes.post("/classificador/projeto/{project}/remover")
async def remove(project: ProjectId, actor: Operator, who: ALooker) -> Response:
    await api.projetos.remove_project(project, actor, who.house)
    return led(who, PROJECTS)


def _form(
    who: Looker, project: ProjectShown | None, accuracy: Sequence[AccuracyShown] = ()
) -> Response:
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


def _said(form: Form) -> ProjectSaid:
    """A label without a name is none, unless it is described."""
    both = zip_longest(form.all("rotulo"), form.all("descricao"), fillvalue="")
    labels = [
        {"nome": name.strip(), "descricao": why.strip()}
        for name, why in both
        if name.strip() or why.strip()
    ]
    if not labels:
        raise BadInput(say("a project needs one label at least"))
    told: dict[str, Any] = {
        name: form.one(name) for name in ("nome", "modelo", "instrucoes", "ocr")
    }
    told |= {name: _number(form, name, int) for name in NUMBERS}
    told["confianca_minima"] = _number(form, "confianca_minima", float)
    return filled(ProjectSaid, {**told, "rotulos": labels})


def _number(form: Form, name: str, of: type[int] | type[float]) -> float | None:
    given = form.one(name)
    try:
        return None if given is None else of(given.replace(",", "."))
    except ValueError:
        raise BadInput(say("{name} is not a number; nothing was changed", name=name)) from None
