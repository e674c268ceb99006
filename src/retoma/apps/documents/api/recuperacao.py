"""The four endpoints of the document: how an execution stands, what failed, go on, try again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import Field, StrictStr

from retoma.access import Role
from retoma.apps.documents import service, store
from retoma.apps.documents.api.execucoes import (
    ErrorCode,
    ExecutionLine,
    ResultShown,
    line_told,
    page_of,
)
from retoma.apps.documents.api.how import ExecutionId, read, routes, time_told
from retoma.apps.documents.model import (
    CURES,
    MEANINGS,
    ROUTE,
    DocumentStatus,
    ExecutionStatus,
    meaning_of,
)
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import Stand
from retoma.db import Transaction
from retoma.web import AHouse, AVisit, House, Operator, Refusal, Viewer
from retoma.web.money import CostsShown, costs_shown
from retoma.web.wire import Body, Limit, NextPage, PageOf, Shown, Why
from retoma.words import Language, Said, say, tell

E = ExecutionStatus
MOVING: Final = frozenset({"running", "line", "backoff"})  # what ends without anybody's help


class Hold(Shown):
    """Why so many documents do not end now."""

    motivo: str = Field(
        description="`running`, `backoff`, `line`, `no_runner`, `lost`, `pause`, `parked:`code, or a gate."
    )
    descricao: str
    documentos: int
    ate: datetime | None = Field(description="When the first of them is tried again.")


class Blocked(Shown):
    """The service rejects every request of an execution: its documents wait for a person."""

    codigo: str
    mensagem: str
    palavras: str | None = Field(description="What the service itself says about it.")
    cura: str = Field(description="What to do before it is resumed.")
    desde: datetime | None


class DetailedStatus(ExecutionLine):
    """How an execution stands, and why."""

    rota_origem: str = Field(description="The page an execution belongs to.")
    ultimo_heartbeat: datetime | None
    ultimo_codigo_processado: str | None
    epoca: int
    mensagem: str
    motivos: list[Hold]
    bloqueio: Blocked | None
    erros: dict[str, int] = Field(description="How many documents failed by which code.")
    rotulos: dict[str, int]
    pode_retomar: bool
    pode_reprocessar: bool
    travado_em: datetime | None
    erro_em: datetime | None
    cancelada_em: datetime | None
    cancelada_por: str | None
    eta_segundos: float | None
    custo: CostsShown
    eventos: str = Field(description="Where what happens to it is told as it happens.")


class Recovered(Shown):
    """An execution after somebody wanted it to go on."""

    id: int
    status: ExecutionStatus
    rota_origem: str
    alterada: bool = Field(description="Whether this very call set it going.")
    epoca: int
    geracao: int
    tentativas_retry: int
    max_retries: int
    reprocessados: int = Field(description="Documents of the last `reprocessar-erros`.")


@routes.get("/classificador/execucoes/{execution}/status-detalhado")
async def detailed_status(
    execution: ExecutionId, _: Viewer, house: AHouse, visit: AVisit
) -> DetailedStatus:
    """How far it is, when it last moved, what holds it back, what failed."""
    return await status_told(house, execution, visit.language)


async def status_told(house: House, execution: int, language: Language) -> DetailedStatus:
    told, line, holds, labels = await read(house, lambda tx: _looked_at(tx, execution))
    progress = await (await house.retoma.batch(execution)).progress()
    eta = progress.eta if _moves(holds) else None
    return DetailedStatus(
        **line.model_dump(),
        rota_origem=ROUTE,
        ultimo_codigo_processado=told["ultimo_codigo_processado"],
        epoca=told["epoca"],
        cancelada_por=told["cancelada_por"],
        ultimo_heartbeat=time_told(told["ultimo_heartbeat"]),
        travado_em=time_told(told["travado_em"]),
        erro_em=time_told(told["erro_em"]),
        cancelada_em=time_told(told["cancelada_em"]),
        mensagem=tell(message_of(line), language),
        motivos=[_hold(*each, language) for each in holds],
        bloqueio=blocked_told(told, language),
        erros=await house.retoma.dead_codes(execution),
        rotulos=labels,
        pode_retomar=line.status is E.TRAVADO and line.tentativas_retry < line.max_retries,
        pode_reprocessar=line.status in store.executions.OVER
        and line.por_status[DocumentStatus.ERRO] > 0,
        eta_segundos=None if eta is None else eta.total_seconds(),
        custo=costs_shown(await house.retoma.costs.of_batch(execution)),
        eventos=f"/api/stream?batch={execution}",
    )


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
    stand, changed = await service.resume(
        house.retoma, execution, actor=who.name, anyway=forcar
    )
    return _recovered(execution, stand, changed=changed)


@routes.post("/classificador/execucoes/{execution}/reprocessar-erros")
async def reprocess_errors(
    execution: ExecutionId, who: Operator, house: AHouse, erro: ErrorCode = None
) -> Recovered:
    """What failed is tried again as a new generation, by the model that the project names now; asked by
    many at once that is one. `erro`: only what failed by this code."""
    stand, changed = await service.reprocess(house.retoma, execution, actor=who.name, code=erro)
    return _recovered(execution, stand, changed=changed)


class SkippedByCode(Body):
    """Which documents are left out, and why."""

    erro: Annotated[StrictStr, Field(min_length=1, max_length=100)]
    motivo: Why


class SkippedShown(Shown):
    """How many documents were left out."""

    pulados: int


@routes.post("/classificador/execucoes/{execution}/pular-erros")
async def skip_errors(
    execution: ExecutionId, body: SkippedByCode, who: Operator, house: AHouse
) -> SkippedShown:
    """What failed, or waits for a person, by this code is PULADO, because a person says so and why."""
    n = await service.skip_failed(
        house.retoma, execution, body.erro, body.motivo, actor=who.name
    )
    return SkippedShown(pulados=n)


def _recovered(execution: int, stand: Stand, *, changed: bool) -> Recovered:
    return Recovered(
        id=execution,
        status=stand.status,
        rota_origem=ROUTE,
        alterada=changed,
        epoca=stand.epoch,
        geracao=stand.generation,
        tentativas_retry=stand.resumes,
        max_retries=stand.most_resumes,
        reprocessados=stand.reprocessed,
    )


def _looked_at(
    tx: Transaction, execution: int
) -> tuple[dict[str, Any], ExecutionLine, list[tuple[str, int, Any]], dict[str, int]]:
    """All at one instant: what is shown adds up."""
    told = store.executions.execution_seen(tx, execution)
    return (
        told,
        line_told(tx, told),
        store.executions.holds_of(tx, execution),
        store.documents.count_labels(tx, execution),
    )


def blocked_told(told: Mapping[str, Any], language: Language) -> Blocked | None:
    """Why the service rejects it, and what a person does about that."""
    code = told["bloqueio_codigo"]
    if code is None:
        return None
    return Blocked(
        codigo=code,
        mensagem=meaning_of(code, language),
        palavras=told["bloqueio_mensagem"],
        cura=tell(CURES[code], language),
        desde=time_told(told["bloqueada_em"]),
    )


def _moves(holds: Sequence[tuple[str, int, Any]]) -> bool:
    """Whether it will end by itself: nobody can tell when, where all that is left is held."""
    return not holds or any(why in MOVING for why, _, _ in holds)


def message_of(line: ExecutionLine) -> Said:
    """What somebody who waits wants to know first."""
    match line.status:
        case E.PENDENTE:
            return say("Not started yet.")
        case E.EM_ANDAMENTO:
            return say("In progress.")
        case E.CONCLUIDO:
            return say("Every document has ended.")
        case E.TRAVADO:
            return say("Nothing has moved for five minutes: resume it where it stopped.")
        case E.ERRO:
            return say(
                "It was resumed {n} times and did not move: an admin may resume it,"
                " or what failed can be tried again.",
                n=line.tentativas_retry,
            )


def _hold(why: str, documents: int, until: Any, language: Language) -> Hold:
    return Hold(
        motivo=why,
        descricao=tell(described(why), language),
        documentos=documents,
        ate=time_told(until),
    )


def described(why: str) -> Said:
    """A word for why documents do not end now, as a sentence."""
    sort, _, name = why.partition(":")
    match sort:
        case "running":
            return say("being worked on")
        case "lost":
            return say("their runner is silent: another takes them over")
        case "backoff":
            return say("failed, and wait to be tried again")
        case "pause":
            return say("paused")
        case "parked":
            return say("wait for a person: {why}", why=MEANINGS.get(name, name))
        case "breaker":
            return say("the service {name} is down: tried again by itself", name=name)
        case "budget":
            return say("the budget is spent")
        case "limit":
            return say("the same content is being classified")
        case "line":
            return say("waiting in the queue")
        case "no_runner":
            return say(
                "no runner is alive that could take them: start one with `retoma runner`"
            )
        case _:
            return say("held back by {gate}", gate=why)
