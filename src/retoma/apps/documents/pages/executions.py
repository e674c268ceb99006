"""Executions and one of them: how far it is, what holds it, what failed, which labels; and how it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from retoma.access import Person
from retoma.apps.documents import service
from retoma.apps.documents.bodies import SkippedByCode
from retoma.apps.documents.model import (
    CODES,
    LONGEST_NAME,
    ROUTE,
    DocumentStatus,
    ExecutionStatus,
    meaning_of,
)
from retoma.apps.documents.pages.presenters import (
    CONCERN,
    LOOKS,
    PAGE,
    STANDS,
    address,
    bars_of,
    is_resumable,
    is_spent,
    present_execution,
    present_results,
    share_of,
)
from retoma.apps.documents.pages.projects import MOST_CHOICES
from retoma.apps.documents.service.status import ExecutionDetails
from retoma.apps.documents.store.documents import Result, Which
from retoma.engine.rules.errors import NotFound
from retoma.engine.store.cost import Total
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CodeOf, CursorOf, Number, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
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
class ExecutionsScreen(Screen):
    """The newest executions, or older ones."""

    project: int | None = None
    status: ExecutionStatus | None = None
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("execucoes", f"{self.project} {self.status}")
        [before] = stamp.read(self.cursor, int) or [None]
        page = await service.executions.list_executions(
            self.pages.house.retoma,
            before=before,
            limit=LIST,
            project=self.project,
            status=self.status,
        )
        following = stamp.write(page.next)
        rows = {
            f"execution-{each.id}": self.pages.render(
                "documents/execution_row.html", self.view, **present_execution(each)
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
            following=following and self._link(following),
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
    projects = await service.projects.list_projects(who.house.retoma, limit=MOST_CHOICES)
    return await who.page(
        screen,
        "documents/executions.html",
        projects=projects.items,
        chosen=screen,
        stands=STANDS,
    )


for path in ("/classificador", "/classificador/"):
    serve_screen(routes, path, executions_screen)


# — one —


@dataclass(frozen=True, slots=True)
class ExecutionScreen(Screen):
    """One execution, and a page of its documents."""

    execution: int
    which: Which = ALL
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(batch=self.execution, pause=0.5)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        found = await service.status.describe_execution(
            retoma, self.execution, self.view.language
        )
        at_it = await self._list(Which(status=D.PROCESSANDO), AT_IT)
        given: dict[str, Any] = {
            **present_execution(found),
            "project": await self._project(found.projeto_id),
            "at_it": [each.codigo for each in at_it],
            "spent": self.view.money(Total.sum(each.spent for each in found.custos)),
            "resumable": is_resumable(found),
            "forced": self.view.rules and is_spent(found),
            "failed": await self._failed(found),
            "bars": bars_of(found.rotulos),
            "named": sum(found.rotulos.values()),
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
            return (await service.projects.get_project(self.pages.house.retoma, project)).name
        except NotFound:
            return None

    async def _list(self, which: Which, n: int) -> Sequence[Result]:
        retoma, is_admin = self.pages.house.retoma, self.view.rules
        page = await service.documents.list_results(
            retoma, self.execution, which, limit=n, with_stack=is_admin
        )
        return page.items

    async def _failed(
        self, found: ExecutionDetails
    ) -> list[tuple[str, str, int, Sequence[Result]]]:
        """By code: what it means, how many, and some of them."""
        most = sorted(found.erros.items(), key=lambda each: (-each[1], each[0]))[:MOST_CODES]
        return [
            (
                code,
                meaning_of(code, self.view.language),
                n,
                await self._list(Which(status=D.ERRO, code=code), EXAMPLES),
            )
            for code, n in most
        ]

    async def _results(self) -> list[Region]:
        stamp = Cursor("resultados", f"{self.execution} {self.which}")
        [after] = stamp.read(self.cursor, int) or [0]
        page = await service.documents.list_results(
            self.pages.house.retoma, self.execution, self.which, after=after, limit=ROWS
        )
        following = stamp.write(page.next)
        rows = present_results(self.pages, self.view, self.execution, page.items)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_DOCUMENT,
            way=(say("Clear"), f"{PAGE}/execucao/{self.execution}#resultados"),
            following=following and self.link(cursor=following),
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


def execution_screen(
    execution: Number,
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
    line = await service.executions.get_execution(who.house.retoma, screen.execution)
    labels = await service.executions.count_labels(who.house.retoma, screen.execution)
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


serve_screen(routes, "/classificador/execucao/{execution}", execution_screen)


@routes.post("/classificador/execucao/{execution}/{verb}")
async def steer(
    execution: Number, verb: str, actor: Operator, who: ALooker, request: Request
) -> Response:
    """ "Continuar de onde parou", "Reprocessar apenas erros", "Pular", "Cancelar"."""
    done = await _steer(who, execution, verb, actor, await form_of(request))
    return did(who, who.view.tell(done), address(execution))


async def _steer(who: Looker, execution: int, verb: str, actor: Person, form: Form) -> Said:
    retoma, name = who.house.retoma, actor.name
    match verb:
        case "retomar" | "forcar":
            anyway = verb == "forcar"
            if anyway and not who.view.rules:
                raise Refusal("not_allowed", say("only an admin resumes beyond the limit"))
            await service.executions.resume_execution(
                retoma, execution, actor=name, anyway=anyway
            )
            return say("execution {execution} is resumed where it stopped", execution=execution)
        case "reprocessar":
            code = form.one("erro")
            stand, _ = await service.executions.reprocess_errors(
                retoma, execution, actor=name, code=code
            )
            return say("documents tried again: {n}", n=stand.reprocessed)
        case "pular-erros":
            fields = {"erro": form.one("erro"), "motivo": form.one("motivo")}
            body = filled(SkippedByCode, fields)
            n = await service.executions.skip_errors(
                retoma, execution, body.erro, body.motivo, actor=name
            )
            return say("documents skipped: {n}", n=n)
        case "cancelar":
            await service.executions.cancel_execution(retoma, execution, actor=name)
            return say("execution {execution} is canceled: what runs ends", execution=execution)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
