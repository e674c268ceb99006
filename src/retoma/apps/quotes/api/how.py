"""What all the rooms of this API need."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Protocol, TypeVar

from fastapi import Path
from pydantic import PlainSerializer

from retoma.apps.quotes.model import PERCENT, ProcessingCheckpoint, QuoteStatus, money_of
from retoma.apps.quotes.store import time_told
from retoma.db import Transaction
from retoma.library import Retoma
from retoma.web import router
from retoma.web.wire import LARGEST, Shown

T = TypeVar("T")
routes = router("quotes")

LONGEST: Final = 10_000  # characters of a description

# A JSON number: two places of at most twelve digits are written as they are.
Reais = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
QuoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a quote.")]
LoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a lote.")]


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


def line_told(told: dict[str, Any]) -> dict[str, Any]:
    """What a list says of a quote."""
    result = told["result"] if isinstance(told["result"], dict) else {}
    times = ("started_at", "completed_at", "created_at")
    return {
        "id": told["id"],
        "lote": told["batch_request_id"],
        **{
            name: told[name] for name in ("codigo", "tipo", "status", "worker_id", "error_code")
        },
        "descricao": told["descricao"],
        "processing_checkpoint": told["processing_checkpoint"],
        "progress_percentage": percentage(told["processing_checkpoint"]),
        "attempt_number": told["attempt_number"],
        "price": money_of(result.get("price")),
        "currency": result.get("currency"),
        **{name: time_told(told[name]) for name in times},
    }


def percentage(checkpoint: str | None) -> int:
    return 0 if checkpoint is None else PERCENT.get(ProcessingCheckpoint(checkpoint), 0)


class Has(Protocol):
    """Whoever has a Retoma: a site, or the tools of a command."""

    retoma: Retoma


async def read(house: Has, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)
