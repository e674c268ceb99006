"""Executions: begun, listed, canceled; and what came of their documents, as JSON or as a table."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from fastapi import Query, Response

from retoma.access import Role
from retoma.apps.documents import service
from retoma.apps.documents.api.wire import (
    DocumentId,
    ErrorCode,
    ExecutionId,
    ExecutionLine,
    Label,
    ResultShown,
    Review,
    Status,
    routes,
)
from retoma.apps.documents.bodies import NewExecution, Reviewed, Skipped
from retoma.apps.documents.model import ExecutionStatus
from retoma.apps.documents.service.documents import HEADINGS
from retoma.apps.documents.store.documents import Result, Which
from retoma.library import Retoma
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
from retoma.web.replay import asked
from retoma.web.wire import LARGEST, Limit, NextPage, Once, PageOf


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
    page = await service.executions.list_executions(
        house.retoma, before=before, limit=limit, project=projeto_id, status=status
    )
    lines = [ExecutionLine.model_validate(each) for each in page.items]
    return PageOf(items=lines, next=stamp.write(page.next))


@routes.post(
    "/classificador/execucoes",
    status_code=201,
    responses={200: {"model": ExecutionLine}},
)
async def add_execution(
    body: NewExecution, who: Operator, house: AHouse, response: Response, key: Once = None
) -> ExecutionLine:
    """All of them or none. With an Idempotency-Key asking again makes no second execution."""
    execution, added = await service.executions.add_execution(
        house.retoma,
        body.projeto_id,
        body.documents(),
        name=body.nome,
        budget=body.orcamento,
        without=frozenset(body.sem),
        actor=who.name,
        once=asked(key, who, "add_execution", body),
    )
    response.status_code = 201 if added else 200
    return await _line_of(house, execution)


@routes.post("/classificador/execucoes/{execution}/cancelar")
async def cancel_execution(
    execution: ExecutionId, who: Operator, house: AHouse
) -> ExecutionLine:
    """What has not ended is not gone on with, and PULADO; asked twice it answers the same."""
    await service.executions.cancel_execution(house.retoma, execution, actor=who.name)
    return await _line_of(house, execution)


async def _line_of(house: House, execution: int) -> ExecutionLine:
    return ExecutionLine.model_validate(
        await service.executions.get_execution(house.retoma, execution)
    )


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


async def page_of(
    house: House, execution: int, which: Which, role: Role, cursor: str | None, limit: int
) -> PageOf[ResultShown]:
    stamp = Cursor("resultados", f"{execution} {which}")
    [after] = stamp.read(cursor, int) or [0]
    is_admin = role.allows(Role.ADMIN)
    page = await service.documents.list_results(
        house.retoma, execution, which, after=after, limit=limit, with_stack=is_admin
    )
    return PageOf(items=_show_results(page.items), next=stamp.write(page.next))


@routes.get("/classificador/execucoes/{execution}/rotulos")
async def count_labels(execution: ExecutionId, _: Viewer, house: AHouse) -> dict[str, int]:
    """How many documents have which label."""
    return await service.executions.count_labels(house.retoma, execution)


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
    pages = _read_results(house.retoma, execution)
    return await listed_file(house, as_, f"execucao-{execution}", HEADINGS, pages)


async def _read_results(retoma: Retoma, execution: int) -> AsyncIterator[list[ResultShown]]:
    async for results in service.documents.read_results(retoma, execution, Which()):
        yield _show_results(results)


def _show_results(results: Sequence[Result]) -> list[ResultShown]:
    return [ResultShown.model_validate(each) for each in results]


@routes.get("/classificador/execucoes/{execution}/documentos/{document}")
async def get_document(
    execution: ExecutionId, document: DocumentId, who: Viewer, house: AHouse
) -> ResultShown:
    """One document: its label and why, or what went wrong."""
    is_admin = who.role.allows(Role.ADMIN)
    found = await service.documents.get_document(
        house.retoma, execution, document, with_stack=is_admin
    )
    return ResultShown.model_validate(found)


@routes.get(
    "/classificador/execucoes/{execution}/documentos/{document}/texto",
    response_class=Response,
    responses=TEXT_FILE,
)
async def get_text(
    execution: ExecutionId, document: DocumentId, _: Viewer, house: AHouse
) -> Response:
    """What was read of it, as plain text to be saved."""
    text = await service.documents.get_text(house.retoma, execution, document)
    return text_file(f"documento-{document}.txt", text.encode())


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/pular")
async def skip_document(
    execution: ExecutionId, document: DocumentId, body: Skipped, who: Operator, house: AHouse
) -> ResultShown:
    """PULADO, because a person says so and why."""
    await service.documents.skip_document(
        house.retoma, execution, document, body.motivo, actor=who.name
    )
    return await get_document(execution, document, who, house)


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/repetir")
async def retry_document(
    execution: ExecutionId, document: DocumentId, who: Operator, house: AHouse
) -> ResultShown:
    """One document that failed, or that waits for a person, is tried again."""
    await service.documents.retry_document(house.retoma, execution, document, actor=who.name)
    return await get_document(execution, document, who, house)


@routes.post("/classificador/execucoes/{execution}/documentos/{document}/revisar")
async def review_document(
    execution: ExecutionId, document: DocumentId, body: Reviewed, who: Operator, house: AHouse
) -> ResultShown:
    """Confirm or correct its label; the last person who says so counts, and the audit log has all."""
    await service.documents.review_document(
        house.retoma, execution, document, body.rotulo, actor=who.name
    )
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
    name, size, pieces = await service.documents.open_original(
        house.retoma, execution, document
    )
    return saved_stream(name, size, pieces)
