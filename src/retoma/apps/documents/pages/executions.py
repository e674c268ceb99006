"""Executions and one of them: how far it is, what holds it, what failed, which labels; and how it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from markupsafe import Markup
from pydantic import Field
from starlette.responses import Response

from retoma.access import Person
from retoma.apps.documents import api, store
from retoma.apps.documents.api.execucoes import ResultShown
from retoma.apps.documents.api.how import ExecutionId, read
from retoma.apps.documents.api.recuperacao import DetailedStatus, SkippedByCode
from retoma.apps.documents.model import (
    CODES,
    LONGEST_NAME,
    ROUTE,
    DocumentStatus,
    ExecutionStatus,
    meaning_of,
    message_in,
)
from retoma.apps.documents.pages.looks import (
    ANYONE,
    CONCERN,
    LOOKS,
    PAGE,
    STANDS,
    address,
    bars_of,
    execution_given,
    money,
    share_of,
)
from retoma.apps.documents.pages.projects import every_project
from retoma.apps.documents.store.documents import Which
from retoma.engine.rules.errors import NotFound
from retoma.web.pages.asked import Blank, CodeOf, CursorOf, Number, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()
D, E = DocumentStatus, ExecutionStatus

LIST: Final = 25  # executions, each with its counts
ROWS: Final = 50  # documents
MOST_CODES: Final = 20  # of errors, that are shown with whom they befell
EXAMPLES: Final = 3  # documents of each
AT_IT: Final = 3  # codes of documents that are being worked on now
SILENCE: Final = 60  # seconds without an event after which a page says so
HELD: Final = (
    "pause",
    "parked",
    "lost",
    "no_runner",
)  # what whoever resumes it can do something about
ALL: Final = Which()
NO_SUCH_EXECUTION: Final = say("No execution is like that now.")
NO_EXECUTIONS: Final = say(
    "No executions yet. Make a project with its labels, then drop files in;"
    " in a shell: `retoma documents classify FOLDER --project NAME`."
)
NO_SUCH_DOCUMENT: Final = say("No document of this execution is like that now.")

StatusOf = Annotated[DocumentStatus | None, Blank, Query()]
StandOf = Annotated[ExecutionStatus | None, Blank, Query()]
ProjectOf = Annotated[Number | None, Blank, Query()]
LabelOf = Annotated[Annotated[str, Field(max_length=LONGEST_NAME)] | None, Blank, Query()]
ReviewOf = Annotated[bool | None, Blank, Query()]


# — all of them —


@dataclass(frozen=True, slots=True)
class ExecutionsScreen:
    """The newest executions, or older ones."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    project: int | None = None
    status: ExecutionStatus | None = None
    cursor: str | None = None

    @property
    def key(self) -> "ExecutionsScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        page = await api.execucoes.list_executions(
            ANYONE, self.pages.house, self.project, self.status, self.cursor, LIST
        )
        rows = {
            f"execution-{each.id}": self.pages.render(
                "documents/execution_row.html", self.view, **execution_given(each)
            )
            for each in page.items
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        filtered = bool(self.project or self.status)
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_EXECUTION if filtered else NO_EXECUTIONS,
            way=(say("Clear"), f"{PAGE}/")
            if filtered
            else (say("New execution"), f"{PAGE}/nova"),
            following=page.next and self._link(page.next),
            first=self.cursor and self._link(),
        )
        return [drawn("rows", table, rows), turns]

    def _link(self, cursor: str | None = None) -> str:
        asked = {"projeto": self.project, "status": self.status, "cursor": cursor}
        return f"{PAGE}/{query_of(asked)}"


def executions_screen(
    who: ALooker, projeto: ProjectOf = None, status: StandOf = None, cursor: CursorOf = None
) -> ExecutionsScreen:
    return ExecutionsScreen(who.pages, who.view, projeto, status, cursor)


AList = Annotated[ExecutionsScreen, Depends(executions_screen)]


@routes.get("/classificador/")
@routes.get("/classificador")
async def show_all(_: Viewer, who: ALooker, screen: AList) -> Response:
    return await who.page(
        screen,
        "documents/executions.html",
        projects=await every_project(who.house),
        chosen=screen,
        stands=STANDS,
    )


@routes.get("/live/classificador/")
@routes.get("/live/classificador")
async def live_all(_: Viewer, who: ALooker, request: Request, screen: AList) -> Response:
    return await streamed(request, who, screen)


# — one —


@dataclass(frozen=True, slots=True)
class ExecutionScreen:
    """One execution, and a page of its documents."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    execution: int
    which: Which = ALL
    cursor: str | None = None

    @property
    def key(self) -> "ExecutionScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(batch=self.execution, pause=0.5)

    async def draw(self) -> Sequence[Region]:
        house = self.pages.house
        told = await api.recuperacao.status_told(house, self.execution, self.view.language)
        given: dict[str, Any] = {
            **execution_given(told),
            "project": await self._project(told.projeto_id),
            "at_it": [
                each.codigo for each in await self._some(Which(status=D.PROCESSANDO), AT_IT)
            ],
            "spent": money(self.view, told.custo.spent),
            "resumable": _resumable(told),
            "forced": self.view.rules and _is_spent(told),
            "failed": await self._failed(told),
            "bars": bars_of(told.rotulos),
            "named": sum(told.rotulos.values()),
            "share_of": share_of,
            "route": ROUTE,
            "silence": SILENCE,
            "which": self.which,
            "link": self.link,
            "place": address,
        }
        return [
            drawn(
                f"execution-{part}",
                self.pages.render(f"documents/execution_{part}.html", self.view, **given),
            )
            for part in ("head", "errors", "labels")
        ] + await self._results()

    async def _project(self, project: int) -> str | None:
        """What it is called; None, where it was removed meanwhile."""
        try:
            found = await read(
                self.pages.house, lambda tx: store.projects.project_of(tx, project)
            )
        except NotFound:
            return None
        return found.name

    async def _some(self, which: Which, n: int) -> list[ResultShown]:
        page = await api.execucoes.page_of(
            self.pages.house, self.execution, which, self.view.role, None, n
        )
        return page.items

    async def _failed(
        self, told: DetailedStatus
    ) -> list[tuple[str, str, int, list[ResultShown]]]:
        """By code: what it means, how many, and some of them."""
        most = sorted(told.erros.items(), key=lambda each: (-each[1], each[0]))[:MOST_CODES]
        return [
            (
                code,
                meaning_of(code, self.view.language),
                n,
                await self._some(Which(status=D.ERRO, code=code), EXAMPLES),
            )
            for code, n in most
        ]

    async def _results(self) -> list[Region]:
        page = await api.execucoes.page_of(
            self.pages.house, self.execution, self.which, self.view.role, self.cursor, ROWS
        )
        rows = result_rows(self.pages, self.view, self.execution, page.items)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_DOCUMENT,
            way=(say("Clear"), f"{PAGE}/execucao/{self.execution}#resultados"),
            following=page.next and self.link(cursor=page.next),
            first=self.cursor and self.link(),
            by_age=False,
        )
        return [drawn("rows", table, rows), turns]

    def link(self, cursor: str | None = None, **other: object) -> str:
        """This page, with something else asked of it."""
        asked: dict[str, object] = {
            "status": self.which.status,
            "rotulo": self.which.label,
            "erro": self.which.code,
            "revisar": None if self.which.review is None else int(self.which.review),
            **other,
            "cursor": cursor,
        }
        return address(self.execution) + query_of(asked)


def result_rows(
    pages: Pages, view: View, execution: int, results: Sequence[ResultShown]
) -> dict[str, Markup]:
    return {
        f"document-{each.id}": pages.render(
            "documents/document_row.html",
            view,
            document=each,
            look=LOOKS[each.status],
            failure=message_in(view.language, each.erro_codigo, each.erro_mensagem),
            place=address(execution, each.id),
        )
        for each in results
    }


def _resumable(told: DetailedStatus) -> bool:
    """Whether somebody can make it go on: it is stuck, or waits for a person or a runner."""
    if told.status is E.EM_ANDAMENTO:
        return any(each.motivo.partition(":")[0] in HELD for each in told.motivos)
    return told.pode_retomar


def _is_spent(told: DetailedStatus) -> bool:
    """It was resumed as often as it may be: only an admin goes on."""
    return told.status in (E.TRAVADO, E.ERRO) and not told.pode_retomar


def execution_screen(
    execution: ExecutionId,
    who: ALooker,
    status: StatusOf = None,
    rotulo: LabelOf = None,
    erro: CodeOf = None,
    revisar: ReviewOf = None,
    cursor: CursorOf = None,
) -> ExecutionScreen:
    which = Which(status=status, label=rotulo, code=erro, review=revisar)
    return ExecutionScreen(who.pages, who.view, execution, which, cursor)


AScreen = Annotated[ExecutionScreen, Depends(execution_screen)]


@routes.get("/classificador/execucao/{execution}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    line = await api.execucoes.line_of(who.house, screen.execution)
    labels = await api.execucoes.count_labels(screen.execution, ANYONE, who.house)
    return await who.page(
        screen,
        "documents/execution.html",
        name=line.nome,
        number=screen.execution,
        which=screen.which,
        labels=labels,
        looks=LOOKS,
        silence=SILENCE,
        route=ROUTE,
        codes=[(code, meaning_of(code, who.view.language)) for code in sorted(CODES)],
    )


@routes.get("/live/classificador/execucao/{execution}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.post("/classificador/execucao/{execution}/{verb}")
async def steer(
    execution: ExecutionId, verb: str, actor: Operator, who: ALooker, request: Request
) -> Response:
    """ "Continuar de onde parou", "Reprocessar apenas erros", "Pular", "Cancelar"."""
    said = await _steered(who, execution, verb, actor, await form_of(request))
    return did(who, who.view.tell(said), address(execution))


async def _steered(who: Looker, execution: int, verb: str, actor: Person, form: Form) -> Said:
    match verb:
        case "retomar" | "forcar":
            await api.recuperacao.resume_execution(
                execution, actor, who.house, forcar=verb == "forcar"
            )
            return say("execution {execution} is resumed where it stopped", execution=execution)
        case "reprocessar":
            done = await api.recuperacao.reprocess_errors(
                execution, actor, who.house, form.one("erro") or None
            )
            return say("documents tried again: {n}", n=done.reprocessados)
        case "pular-erros":
            body = filled(
                SkippedByCode, {"erro": form.one("erro"), "motivo": form.one("motivo")}
            )
            left = await api.recuperacao.skip_errors(execution, body, actor, who.house)
            return say("documents skipped: {n}", n=left.pulados)
        case "cancelar":
            await api.execucoes.cancel_execution(execution, actor, who.house)
            return say("execution {execution} is canceled: what runs ends", execution=execution)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
