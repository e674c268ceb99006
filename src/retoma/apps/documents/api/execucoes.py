"""Executions: begun, listed, canceled; and what came of their documents, as JSON or as a table."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Response
from pydantic import Field, StrictInt, StrictStr

from retoma.access import Role
from retoma.apps.documents import service, store
from retoma.apps.documents.api.how import DocumentId, ExecutionId, read, routes, time_told
from retoma.apps.documents.model import MOST_DOCUMENTS, DocumentStatus, ExecutionStatus
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import NewDocument
from retoma.db import Transaction
from retoma.web import AHouse, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import (
    ANY_FILE,
    TEXT_FILE,
    AsFile,
    list_of,
    listed_file,
    saved_stream,
    text_file,
)
from retoma.web.replay import asked, written
from retoma.web.wire import LARGEST, Body, Id, Limit, Name, NextPage, Once, PageOf, Shown, Why

PAGE: Final = 1_000  # documents read at a time for a file
HEADINGS: Final = (
    *("codigo", "arquivo", "status", "rotulo", "confianca", "revisar", "justificativa"),
    *("modelo", "origem", "tentativas", "erro_codigo", "erro_mensagem", "pulado_motivo"),
    *("rotulo_revisado", "revisado_por", "revisado_em"),
)

TIMES: Final = ("ultimo_erro_em", "concluido_em", "revisado_em")

Status = Annotated[DocumentStatus | None, Query(description="Only in this status.")]
Label = Annotated[str | None, Query(max_length=100, description="Only with this label.")]
ErrorCode = Annotated[str | None, Query(max_length=100, description="Only with this error.")]
Review = Annotated[
    bool | None, Query(description="Only what a person should look at, or only the others.")
]


class DocumentSaid(Body):
    """A document whose content was uploaded before."""

    codigo: Annotated[StrictStr, Field(min_length=1, max_length=255)]
    arquivo: Annotated[StrictStr, Field(min_length=1, max_length=255)]
    sha256: Annotated[StrictStr, Field(pattern="^[0-9a-f]{64}$")]
    tamanho: Annotated[StrictInt, Field(ge=0, le=LARGEST)]


class NewExecution(Body):
    """Documents that are classified together, all of them or none."""

    projeto_id: Id
    nome: Name | None = None
    documentos: Annotated[list[DocumentSaid], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    orcamento: Annotated[StrictStr, Field(max_length=50, examples=["25 USD"])] | None = None
    sem: Annotated[
        list[Annotated[StrictStr, Field(max_length=255)]], Field(max_length=MOST_DOCUMENTS)
    ] = Field(default=[], description="Codes of documents that are not wanted after all.")


class ExecutionLine(Shown):
    """An execution in a list."""

    id: int
    projeto_id: int
    nome: str
    status: ExecutionStatus
    total: int
    por_status: dict[DocumentStatus, int]
    progresso: float = Field(description="How much of it has ended, in percent.")
    tentativas_retry: int
    max_retries: int
    geracao: int
    criado_por: str
    criado_em: datetime | None


class ResultShown(Shown):
    """What came of a document."""

    id: int
    codigo: str
    arquivo: str
    sha256: str
    tamanho: int
    status: DocumentStatus
    rotulo: str | None
    confianca: float | None
    justificativa: str | None
    modelo: str | None
    revisar: bool = Field(description="The model was less sure than the project wants.")
    cortado: bool = Field(description="The model was shown a part of it.")
    paginas: int | None
    origem: int | None = Field(
        description="The document with the same content that was paid for, where this was not."
    )
    tentativas: int
    erro_codigo: str | None
    erro_mensagem: str | None
    erro_stack: str | None = Field(description="For admins alone.")
    ultimo_erro_em: datetime | None
    pulado_motivo: str | None
    concluido_em: datetime | None
    rotulo_revisado: str | None = Field(description="What a person says the label is.")
    revisado_por: str | None
    revisado_em: datetime | None
    job: int


class Skipped(Body):
    """Why a document is not classified."""

    motivo: Why


@routes.get("/classificador/execucoes")
async def list_executions(
    _: Viewer,
    house: AHouse,
    projeto_id: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Only of this project.")
    ] = None,
    status: Annotated[ExecutionStatus | None, Query(description="Only in this status.")] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[ExecutionLine]:
    """Executions, the newest first."""
    stamp = Cursor("execucoes", f"{projeto_id} {status}")
    [before] = stamp.read(cursor, int) or [None]
    how: dict[str, Any] = {"before": before, "project": projeto_id, "status": status}

    def lines(tx: Transaction) -> list[ExecutionLine]:
        found = store.executions.list_executions(tx, n=limit + 1, **how)
        return [line_told(tx, each) for each in found]

    shown = await read(house, lines)
    following = shown[limit - 1].id if len(shown) > limit else None
    return PageOf(items=shown[:limit], next=stamp.write(following))


@routes.post(
    "/classificador/execucoes",
    status_code=201,
    responses={200: {"model": ExecutionLine}},
)
async def add_execution(
    body: NewExecution, who: Operator, house: AHouse, response: Response, key: Once = None
) -> ExecutionLine:
    """All of them or none. With an Idempotency-Key asking again makes no second execution."""
    wanted = [
        NewDocument(each.codigo, each.arquivo, each.sha256, each.tamanho)
        for each in body.documentos
    ]
    made, new = await written(
        house,
        asked(key, who, "add_execution", body),
        lambda tx: store.executions.add_execution(
            tx,
            body.projeto_id,
            wanted,
            name=body.nome,
            budget=body.orcamento,
            without=frozenset(body.sem),
            actor=who.name,
        ),
        lambda execution: _Made(id=execution),
        _Made,
    )
    response.status_code = 201 if new else 200
    return await line_of(house, made.id)


class _Made(Body):
    id: int


@routes.post("/classificador/execucoes/{execution}/cancelar")
async def cancel_execution(
    execution: ExecutionId, who: Operator, house: AHouse
) -> ExecutionLine:
    """What has not ended is not gone on with, and PULADO; asked twice it answers the same."""
    await service.cancel(house.retoma, execution, actor=who.name)
    return await line_of(house, execution)


# — documents —


@routes.get("/classificador/execucoes/{execution}/resultados")
async def list_results(
    execution: ExecutionId,
    who: Viewer,
    house: AHouse,
    status: Status = None,
    rotulo: Label = None,
    erro: ErrorCode = None,
    revisar: Review = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[ResultShown]:
    """What came of its documents, in the order in which they were handed in."""
    which = Which(status=status, label=rotulo, code=erro, review=revisar)
    return await page_of(house, execution, which, who.role, cursor, limit)


@routes.get("/classificador/execucoes/{execution}/rotulos")
async def count_labels(execution: ExecutionId, _: Viewer, house: AHouse) -> dict[str, int]:
    """How many documents have which label."""

    def count(tx: Transaction) -> dict[str, int]:
        store.executions.stand_of(tx, execution)
        return store.documents.count_labels(tx, execution)

    return await read(house, count)


@routes.get(
    "/classificador/execucoes/{execution}/exportar",
    response_class=Response,
    responses=list_of("what came of an execution"),
)
async def export_results(
    execution: ExecutionId,
    _: Viewer,
    house: AHouse,
    as_: AsFile = "csv",
) -> Response:
    """What came of it, in the order in which it was handed in; nothing in it is a formula."""
    await read(house, lambda tx: store.executions.stand_of(tx, execution))
    return await listed_file(
        house, as_, f"execucao-{execution}", HEADINGS, _results(house, execution)
    )


@routes.get("/classificador/execucoes/{execution}/documentos/{document}")
async def get_document(
    execution: ExecutionId, document: DocumentId, who: Viewer, house: AHouse
) -> ResultShown:
    """One document: its label and why, or what went wrong."""
    told = await read(house, lambda tx: store.documents.result_of(tx, execution, document))
    return result_told(told, who.role)


@routes.get(
    "/classificador/execucoes/{execution}/documentos/{document}/texto",
    response_class=Response,
    responses=TEXT_FILE,
)
async def get_text(
    execution: ExecutionId, document: DocumentId, _: Viewer, house: AHouse
) -> Response:
    """What was read of it, as plain text to be saved."""
    text = await read(house, lambda tx: store.documents.text_of(tx, execution, document))
    return text_file(f"documento-{document}.txt", text.encode())


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/pular")
async def skip_document(
    execution: ExecutionId, document: DocumentId, body: Skipped, who: Operator, house: AHouse
) -> ResultShown:
    """PULADO, because a person says so and why."""
    await service.skip(house.retoma, execution, document, body.motivo, actor=who.name)
    return await get_document(execution, document, who, house)


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/repetir")
async def retry_document(
    execution: ExecutionId, document: DocumentId, who: Operator, house: AHouse
) -> ResultShown:
    """One document that failed, or that waits for a person, is tried again."""
    await service.retry(house.retoma, execution, document, actor=who.name)
    return await get_document(execution, document, who, house)


class Reviewed(Body):
    """What a person says the label is."""

    rotulo: Annotated[StrictStr, Field(min_length=1, max_length=100)]


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/revisar")
async def review_document(
    execution: ExecutionId, document: DocumentId, body: Reviewed, who: Operator, house: AHouse
) -> ResultShown:
    """Confirm or correct its label; the last person who says so counts, and the audit log has all."""
    await service.review(house.retoma, execution, document, body.rotulo, actor=who.name)
    return await get_document(execution, document, who, house)


@routes.get(
    "/classificador/execucoes/{execution}/documentos/{document}/original",
    response_class=Response,
    responses=ANY_FILE,
)
async def get_original(
    execution: ExecutionId, document: DocumentId, _: Viewer, house: AHouse
) -> Response:
    """The file as it came in, to be saved: no browser shows it as a page of ours."""
    name, size, pieces = await service.original(house.retoma, execution, document)
    return saved_stream(name, size, pieces)


async def page_of(
    house: House,
    execution: int,
    which: Which,
    role: Role,
    cursor: str | None,
    limit: int,
) -> PageOf[ResultShown]:
    stamp = Cursor("resultados", f"{execution} {which}")
    [after] = stamp.read(cursor, int) or [0]

    def page(tx: Transaction) -> list[dict[str, Any]]:
        store.executions.stand_of(tx, execution)
        return store.documents.list_results(tx, execution, which, after=after, n=limit + 1)

    found = await read(house, page)
    shown = [result_told(each, role) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


async def _results(house: House, execution: int) -> AsyncIterator[list[ResultShown]]:
    after = 0
    while True:
        how: dict[str, int] = {"after": after, "n": PAGE}
        rows = await read(
            house,
            lambda tx, how=how: store.documents.list_results(tx, execution, Which(), **how),  # type: ignore[misc]
        )
        yield [result_told(each, Role.VIEWER) for each in rows]
        if len(rows) < PAGE:
            return
        after = rows[-1]["id"]


def result_told(told: dict[str, Any], role: Role) -> ResultShown:
    """A stack is for admins alone: it may name what is nobody else's."""
    shown = {name: value for name, value in told.items() if name != "execucao_id"}
    if not role.allows(Role.ADMIN):
        shown["erro_stack"] = None
    times = {name: time_told(told[name]) for name in TIMES}
    return ResultShown(**{**shown, **times})


async def line_of(house: House, execution: int) -> ExecutionLine:
    return await read(
        house, lambda tx: line_told(tx, store.executions.execution_seen(tx, execution))
    )


def line_told(tx: Transaction, told: dict[str, Any]) -> ExecutionLine:
    counts = store.executions.counted(tx, told["id"])
    names = ExecutionLine.model_fields
    shown = {name: value for name, value in told.items() if name in names}
    return ExecutionLine(
        **{**shown, "criado_em": time_told(told["criado_em"])},
        por_status=counts,
        progresso=percent(counts),
    )


def percent(counts: dict[DocumentStatus, int]) -> float:
    total = sum(counts.values())
    return round(100 * store.executions.ended(counts) / total, 1) if total else 0.0
