"""What all the rooms of this API need."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Protocol, TypeVar

from fastapi import Path
from pydantic import Field, PlainSerializer

from retoma.apps.quotes.model import PERCENT, ProcessingCheckpoint, QuoteStatus, money_of
from retoma.apps.quotes.store import parked_by_code, time_told
from retoma.db import Transaction
from retoma.library import Retoma
from retoma.web import router
from retoma.web.wire import LARGEST, Shown
from retoma.words import Language, Said, say, tell

T = TypeVar("T")
routes = router("quotes")

LONGEST: Final = 10_000  # characters of a description

# A JSON number: two places of at most twelve digits are written as they are.
Reais = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
QuoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a quote.")]
LoteId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a lote.")]


class WaitingFor(Shown):
    """What quotes wait for that somebody must put right, and how."""

    code: str
    quotes: int
    message: str | None = Field(description="What was said when the newest of them stopped.")
    cure: str


# How what stopped a quote is put right. In the answer it stands in the language of whoever asks.
CURES: Final[Mapping[str, Said]] = {
    "no_key": say(
        "Set the key that is named (`RETOMA_ANTHROPIC_KEY` or `RETOMA_SERPAPI_KEY`) and start the runners"
        " again; then resume."
    ),
    "unauthorized": say(
        "The service refused the key: give the runners one that is good and start them again; then resume."
    ),
    "wrong_address": say(
        "There is no such service or no such model: correct `RETOMA_ANTHROPIC_MODEL` or the address of the"
        " service and start the runners again; then resume."
    ),
    "rejected": say(
        "The service rejected the request: put right what it says (the credit of the account, or"
        " `RETOMA_ANTHROPIC_MODEL`) and start the runners again; then resume."
    ),
    "config": say(
        "Put right the setting or the key that it names and start the runners again; then resume."
    ),
    "budget": say("Add credit at the service, or raise the budget; then resume."),
}
LOOK: Final = say("Put right what it says; then resume.")


async def waiting_told(
    house: "Has", language: Language | None, lote: int | None = None
) -> list[WaitingFor]:
    """Of one lote, or of all."""
    found = await read(house, lambda tx: parked_by_code(tx, lote))
    return [waiting_for(*each, language) for each in found]


def waiting_for(
    code: str, quotes: int, message: str | None, language: Language | None
) -> WaitingFor:
    cure = tell(CURES.get(code, LOOK), language)
    return WaitingFor(code=code, quotes=quotes, message=message, cure=cure)


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
