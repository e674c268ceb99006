"""What people send: bodies of the API and forms of the pages, checked alike."""

from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from retoma.apps.documents.model import (
    CHARS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CHARS,
    MOST_DOCUMENTS,
    MOST_LABELS,
    MOST_RETRIES,
    Label,
    ProjectRules,
)
from retoma.apps.documents.store.executions import NewDocument
from retoma.toolkit.readers.rules import Ocr
from retoma.web.wire import LARGEST, Body, Id, Name, Why

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

    def documents(self) -> list[NewDocument]:
        return [
            NewDocument(each.codigo, each.arquivo, each.sha256, each.tamanho)
            for each in self.documentos
        ]


class Skipped(Body):
    """Why a document is not classified."""

    motivo: Why


class SkippedByCode(Body):
    """Which documents are left out, and why."""

    erro: Annotated[StrictStr, Field(min_length=1, max_length=100)]
    motivo: Why


class Reviewed(Body):
    """What a person says the label is."""

    rotulo: Annotated[StrictStr, Field(min_length=1, max_length=100)]
