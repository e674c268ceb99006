"""The router, the parameters and the answers of this API."""

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from retoma.apps.documents.intake import Taken
from retoma.apps.documents.model import ROUTE, DocumentStatus, ExecutionStatus, meaning_of
from retoma.apps.documents.service.status import ExecutionDetails
from retoma.apps.documents.store.executions import Stand
from retoma.apps.documents.store.projects import Project
from retoma.toolkit.readers.rules import Ocr
from retoma.web import router
from retoma.web.money import CostsShown, costs_shown
from retoma.web.wire import LARGEST, Shown
from retoma.words import Language

routes = router("documents")

ProjectId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a project.")]
ExecutionId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of an execution.")]
DocumentId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a document.")]
Status = Annotated[DocumentStatus | None, Query(description="Only in this status.")]
Label = Annotated[str | None, Query(max_length=100, description="Only with this label.")]
ErrorCode = Annotated[str | None, Query(max_length=100, description="Only with this error.")]
Review = Annotated[
    bool | None, Query(description="Only what a person should look at, or only the others.")
]


# — files —


class Arrived(Shown):
    """A document whose content is kept: an execution may name it."""

    codigo: str
    arquivo: str
    sha256: str
    tamanho: int


class LeftOutShown(Shown):
    """A file that was not taken, and why."""

    arquivo: str
    codigo_erro: str
    mensagem: str


class TakenShown(Shown):
    """What came in."""

    documentos: list[Arrived]
    recusados: list[LeftOutShown]


def show_taken(taken: Taken, language: Language) -> TakenShown:
    return TakenShown(
        documentos=[
            Arrived(
                codigo=each.codigo, arquivo=each.name, sha256=each.sha256, tamanho=each.size
            )
            for each in taken.incoming
        ],
        recusados=[
            LeftOutShown(
                arquivo=each.name,
                codigo_erro=each.code,
                mensagem=meaning_of(each.code, language),
            )
            for each in taken.left_out
        ],
    )


# — projects —


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


def show_project(project: Project) -> ProjectShown:
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
        criado_em=project.created_at,
    )


class AccuracyShown(Shown):
    """How often a label of the model was right, where a person looked."""

    rotulo: str
    revisados: int
    corretos: int
    acerto: float = Field(description="From 0 to 1.")
    outros: dict[str, int] = Field(description="What people said of the others.")


# — executions —


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


def show_details(found: ExecutionDetails) -> DetailedStatus:
    names = DetailedStatus.model_fields.keys() - {"custo", "eventos"}
    return DetailedStatus(
        **{name: getattr(found, name) for name in names},
        custo=costs_shown(found.custos),
        eventos=f"/api/stream?batch={found.id}",
    )


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


def show_recovered(execution: int, stand: Stand, *, changed: bool) -> Recovered:
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


class SkippedShown(Shown):
    """How many documents were left out."""

    pulados: int


# — documents —


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
