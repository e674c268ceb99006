"""The four endpoints of the document: how an execution stands, what failed, go on, try again."""

from typing import Annotated

from fastapi import Query

from retoma.access import Role
from retoma.apps.documents import service
from retoma.apps.documents.api.execucoes import page_of
from retoma.apps.documents.api.wire import (
    DetailedStatus,
    ErrorCode,
    ExecutionId,
    Recovered,
    ResultShown,
    SkippedShown,
    routes,
    show_details,
    show_recovered,
)
from retoma.apps.documents.bodies import SkippedByCode
from retoma.apps.documents.model import DocumentStatus
from retoma.apps.documents.store.documents import Which
from retoma.web import AHouse, AVisit, Operator, Refusal, Viewer
from retoma.web.wire import Limit, NextPage, PageOf
from retoma.words import say


@routes.get("/classificador/execucoes/{execution}/status-detalhado")
async def detailed_status(
    execution: ExecutionId, _: Viewer, house: AHouse, visit: AVisit
) -> DetailedStatus:
    """How far it is, when it last moved, what holds it back, what failed."""
    found = await service.status.describe_execution(house.retoma, execution, visit.language)
    return show_details(found)


@routes.get("/classificador/execucoes/{execution}/erros")
async def list_errors(
    execution: ExecutionId,
    who: Viewer,
    house: AHouse,
    erro: ErrorCode = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[ResultShown]:
    """Documents that failed: by what, how often, when; the stack for admins alone."""
    which = Which(status=DocumentStatus.ERRO, code=erro)
    return await page_of(house, execution, which, who.role, cursor, limit)


@routes.post("/classificador/execucoes/{execution}/retomar")
async def resume_execution(
    execution: ExecutionId,
    who: Operator,
    house: AHouse,
    forcar: Annotated[
        bool, Query(description="Also where it was resumed too often; an admin may.")
    ] = False,
) -> Recovered:
    """It goes on where it stopped; asked by many at once it is one new epoch. What waits for a person
    or was paused goes on too, and that is counted as no resume. Without a runner a stuck execution is
    not resumed, and nothing is counted."""
    if forcar and not who.role.allows(Role.ADMIN):
        raise Refusal("not_allowed", say("only an admin resumes beyond the limit"))
    stand, changed = await service.executions.resume_execution(
        house.retoma, execution, actor=who.name, anyway=forcar
    )
    return show_recovered(execution, stand, changed=changed)


@routes.post("/classificador/execucoes/{execution}/reprocessar-erros")
async def reprocess_errors(
    execution: ExecutionId, who: Operator, house: AHouse, erro: ErrorCode = None
) -> Recovered:
    """What failed is tried again as a new generation, by the model that the project names now; asked by
    many at once that is one. `erro`: only what failed by this code."""
    stand, changed = await service.executions.reprocess_errors(
        house.retoma, execution, actor=who.name, code=erro
    )
    return show_recovered(execution, stand, changed=changed)


@routes.post("/classificador/execucoes/{execution}/pular-erros")
async def skip_errors(
    execution: ExecutionId, body: SkippedByCode, who: Operator, house: AHouse
) -> SkippedShown:
    """What failed, or waits for a person, by this code is PULADO, because a person says so and why."""
    n = await service.executions.skip_errors(
        house.retoma, execution, body.erro, body.motivo, actor=who.name
    )
    return SkippedShown(pulados=n)
