"""The quotes application on the wire: what a request may say, and what an answer says."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from fastapi import Path
from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    PlainSerializer,
    StrictStr,
    field_validator,
)

from retoma.apps.quotes import store
from retoma.apps.quotes.model import ProcessingCheckpoint, QuoteKind, QuoteStatus
from retoma.apps.quotes.service.tables import LONGEST, MOST
from retoma.services.money import BudgetShown, budget_shown
from retoma.web import router
from retoma.web.money import CostsShown, costs_shown
from retoma.web.wire import LARGEST, Body, Name, Shown
from retoma.words import say

routes = router("quotes")

NAMED: Final = 1_000  # quotes that a clean-up names

# A JSON number: two places of at most twelve digits are written as they are.
Reais = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
Costs = Annotated[CostsShown, BeforeValidator(costs_shown)]
Budget = Annotated[BudgetShown, BeforeValidator(budget_shown)]
QuoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a quote.")]
LoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a lote.")]


class NewQuote(Body):
    """What is to be quoted."""

    descricao: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST["descricao"])]
    tipo: QuoteKind = QuoteKind.AUTO
    codigo: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST["codigo"])] | None = (
        None
    )

    @field_validator("descricao")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError(say("says nothing"))
        return value.strip()

    @field_validator("codigo")
    @classmethod
    def _can_be_kept(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:
            raise ValueError(say("has a NUL character"))
        return value

    def wanted(self) -> store.NewQuote:
        return store.NewQuote(self.descricao, self.tipo, self.codigo)


class NewLote(Body):
    """Quotes that belong together, all of them or none."""

    nome: Name | None = None
    quotes: Annotated[list[NewQuote], Field(min_length=1, max_length=MOST)]
    orcamento: Annotated[StrictStr, Field(max_length=50, examples=["25 USD"])] | None = None

    @field_validator("quotes")
    @classmethod
    def _each_code_once(cls, quotes: list[NewQuote]) -> list[NewQuote]:
        met: set[str] = set()
        for each in quotes:
            if each.codigo in met:
                raise ValueError(say("name the codigo {code} twice", code=each.codigo))
            met |= {each.codigo} if each.codigo else set()
        return quotes


class WaitingFor(Shown):
    """What quotes wait for that somebody must put right, and how."""

    code: str
    quotes: int
    message: str | None = Field(description="What was said when the newest of them stopped.")
    cure: str


class QuoteLine(Shown):
    """A quote in a list."""

    id: int
    lote: int | None
    codigo: str | None
    tipo: str
    descricao: str
    status: QuoteStatus
    processing_checkpoint: ProcessingCheckpoint | None
    progress_percentage: int
    worker_id: str | None
    started_at: datetime | None
    completed_at: datetime | None
    attempt_number: int
    price: Reais | None
    currency: str | None
    error_code: str | None
    created_at: datetime | None


class QuoteShown(QuoteLine):
    """All that is known of a quote."""

    last_heartbeat: datetime | None
    resume_data: JsonValue
    claude_payload_json: JsonValue
    google_shopping_response_json: JsonValue
    result: JsonValue
    error_message: str | None
    waiting_for: WaitingFor | None = Field(
        description="What somebody must put right before it goes on."
    )
    created_by: str
    job: int | None
    cost: Costs | None = Field(description="None: taken over as history, it has no job.")


class LoteShown(Shown):
    """A lote and how far it is."""

    id: int
    nome: str
    total: int
    by_status: dict[QuoteStatus, int]
    progress_percentage: float
    finished: bool
    paused: bool
    eta_seconds: float | None
    cost: Costs
    orcamento: Budget | None = Field(
        description="Once it is `exhausted` nothing more is paid for, and its quotes wait."
    )


class LoteImported(LoteShown):
    """A lote that a table became."""

    left_out: int = Field(description="Bad rows of the table, which were not imported.")


class BatchStatus(LoteShown):
    """A lote in detail."""

    stuck_count: int
    by_checkpoint: dict[ProcessingCheckpoint, int]
    errors: dict[str, int]
    waiting_for: list[WaitingFor] = Field(
        description="What somebody must put right before its quotes go on, the most first."
    )


class Cleaned(Shown):
    """What was marked ERROR."""

    cleaned: int
    parked: int = Field(description="How many of these were waiting for somebody.")
    quotes: list[int] = Field(description=f"The numbers of the first {NAMED} of them.")
