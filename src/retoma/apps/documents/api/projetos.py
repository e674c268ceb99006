"""Projects: a closed set of labels, and how documents are classified by it."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, StrictFloat, StrictInt, StrictStr

from retoma.apps.documents import service, store
from retoma.apps.documents.api.how import ProjectId, read, routes, time_told
from retoma.apps.documents.model import (
    CHARS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHARS,
    MOST_LABELS,
    MOST_RETRIES,
    Label,
    ProjectRules,
)
from retoma.apps.documents.store.projects import Project
from retoma.apps.readers.rules import Ocr
from retoma.library import Retoma
from retoma.web import AHouse, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import ANY_FILE, csv_line, saved_stream
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Limit, Name, NextPage, Once, PageOf, Shown

Retries = Annotated[StrictInt, Field(ge=0, le=MOST_RETRIES)]


class LabelSaid(Body):
    """One of the closed set."""

    nome: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_NAME)]
    descricao: Annotated[StrictStr, Field(max_length=LONGEST_TEXT)] = ""


class ProjectSaid(Body):
    """A project, whole."""

    nome: Name
    rotulos: Annotated[list[LabelSaid], Field(min_length=1, max_length=MOST_LABELS)]
    modelo: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    instrucoes: Annotated[StrictStr, Field(max_length=LONGEST_TEXT)] = ""
    max_caracteres: Annotated[StrictInt, Field(ge=CHARS[0], le=CHARS[1])] = MOST_CHARS
    confianca_minima: Annotated[StrictFloat | StrictInt, Field(ge=0, le=1)] = 0.0
    max_retries_documento: Retries = 2
    max_retries_execucao: Retries = 3
    ocr: Annotated[
        Ocr, Field(strict=False, description="When a page of a PDF is read from its picture.")
    ] = Ocr.NEVER

    def rules(self) -> ProjectRules:
        return ProjectRules(
            labels=tuple(Label(each.nome, each.descricao) for each in self.rotulos),
            model=self.modelo,
            instructions=self.instrucoes,
            most_chars=self.max_caracteres,
            least_confidence=float(self.confianca_minima),
            max_retries_documento=self.max_retries_documento,
            max_retries_execucao=self.max_retries_execucao,
            ocr=self.ocr,
        )


class LabelShown(Shown):
    """One of the closed set."""

    nome: str
    descricao: str


class ProjectShown(Shown):
    """A project, as executions to come will know it."""

    id: int
    nome: str
    rotulos: list[LabelShown]
    modelo: str | None
    instrucoes: str
    max_caracteres: int
    confianca_minima: float
    max_retries_documento: int
    max_retries_execucao: int
    ocr: Ocr
    criado_por: str
    criado_em: datetime | None


@routes.get("/classificador/projetos")
async def list_projects(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ProjectShown]:
    """Projects, the newest first."""
    stamp = Cursor("projetos", None)
    [before] = stamp.read(cursor, int) or [None]
    found = await read(
        house, lambda tx: store.projects.list_projects(tx, before=before, n=limit + 1)
    )
    shown = [project_told(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.post(
    "/classificador/projetos", status_code=201, responses={200: {"model": ProjectShown}}
)
async def add_project(
    body: ProjectSaid, who: Operator, house: AHouse, response: Response, key: Once = None
) -> ProjectShown:
    """A project needs one label at least."""
    made, new = await written(
        house,
        asked(key, who, "add_project", body),
        lambda tx: store.projects.add_project(tx, body.nome, body.rules(), actor=who.name),
        lambda project: _Made(id=project),
        _Made,
    )
    response.status_code = 201 if new else 200
    return await _shown(house, made.id)


class _Made(Body):
    id: int


@routes.get("/classificador/projetos/{project}")
async def get_project(project: ProjectId, _: Viewer, house: AHouse) -> ProjectShown:
    """One project."""
    return await _shown(house, project)


@routes.put("/classificador/projetos/{project}")
async def change_project(
    project: ProjectId, body: ProjectSaid, who: Operator, house: AHouse
) -> ProjectShown:
    """For executions to come: those that are there keep the rules they began with."""
    await house.retoma.write(
        lambda tx: store.projects.change_project(
            tx, project, body.nome, body.rules(), actor=who.name
        )
    )
    return await _shown(house, project)


@routes.delete("/classificador/projetos/{project}", status_code=204)
async def remove_project(project: ProjectId, who: Operator, house: AHouse) -> None:
    """No more executions of it; what was classified stays."""
    await house.retoma.write(
        lambda tx: store.projects.remove_project(tx, project, actor=who.name)
    )


class AccuracyShown(Shown):
    """How often a label of the model was right, where a person looked."""

    rotulo: str
    revisados: int
    corretos: int
    acerto: float = Field(description="From 0 to 1.")
    outros: dict[str, int] = Field(description="What people said of the others.")


@routes.get("/classificador/projetos/{project}/acerto")
async def get_accuracy(project: ProjectId, _: Viewer, house: AHouse) -> list[AccuracyShown]:
    """By the label that the model gave: how many people reviewed, and how many were right."""
    return [
        AccuracyShown(
            rotulo=each.label,
            revisados=each.reviewed,
            corretos=each.right,
            acerto=round(each.share, 4),
            outros=dict(each.instead),
        )
        for each in await service.accuracy(house.retoma, project)
    ]


@routes.get(
    "/classificador/projetos/{project}/revisoes",
    response_class=Response,
    responses=ANY_FILE,
)
async def export_reviews(
    project: ProjectId,
    _: Viewer,
    house: AHouse,
    as_: Annotated[str, Query(alias="format", pattern="^(jsonl|csv)$")] = "jsonl",
) -> Response:
    """What people reviewed, as a labelled set: JSON Lines with the text of each, or a table without."""
    await read(house, lambda tx: store.projects.project_of(tx, project))
    lines = reviews_csv if as_ == "csv" else reviews_jsonl
    return saved_stream(f"revisoes-{project}.{as_}", None, lines(house.retoma, project))


async def reviews_jsonl(retoma: Retoma, project: int) -> AsyncIterator[bytes]:
    async for row in service.labelled(retoma, project, texts=True):
        told = {**row, "revisado_em": _iso(row["revisado_em"])}
        yield json.dumps(told, ensure_ascii=False).encode() + b"\n"


async def reviews_csv(retoma: Retoma, project: int) -> AsyncIterator[bytes]:
    yield csv_line(store.documents.REVIEWED)
    async for row in service.labelled(retoma, project, texts=False):
        told = {**row, "revisado_em": _iso(row["revisado_em"])}
        yield csv_line([told[name] for name in store.documents.REVIEWED])


def _iso(at: Any) -> str | None:
    told = time_told(at)
    return None if told is None else told.isoformat()


async def _shown(house: House, project: int) -> ProjectShown:
    return project_told(await read(house, lambda tx: store.projects.project_of(tx, project)))


def project_told(project: Project) -> ProjectShown:
    rules = project.rules
    return ProjectShown(
        id=project.id,
        nome=project.name,
        rotulos=[
            LabelShown(nome=each.name, descricao=each.description) for each in rules.labels
        ],
        modelo=rules.model,
        instrucoes=rules.instructions,
        max_caracteres=rules.most_chars,
        confianca_minima=rules.least_confidence,
        max_retries_documento=rules.max_retries_documento,
        max_retries_execucao=rules.max_retries_execucao,
        ocr=rules.ocr,
        criado_por=project.created_by,
        criado_em=time_told(project.created_at),
    )
