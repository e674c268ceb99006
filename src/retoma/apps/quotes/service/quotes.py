"""Quotes, one at a time and in lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from retoma.apps.quotes import store
from retoma.apps.quotes.model import ProcessingCheckpoint, QuoteStatus, money_of, percentage
from retoma.apps.quotes.service.recovery import WaitingFor, waiting_for
from retoma.apps.quotes.service.writing import Created, add_once, asked, read
from retoma.engine.rules.states import State
from retoma.engine.store.cost import CostSeen
from retoma.library import Retoma
from retoma.words import Language

AS_STORED: Final = (
    *("id", "codigo", "tipo", "descricao", "worker_id", "attempt_number", "error_code"),
    *("status", "processing_checkpoint", "started_at", "completed_at", "created_at"),
)
DOCUMENTS: Final = (
    "resume_data",
    "claude_payload_json",
    "google_shopping_response_json",
    "result",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteLine:
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
    price: Decimal | None
    currency: str | None
    error_code: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote(QuoteLine):
    """All that is known of a quote."""

    last_heartbeat: datetime | None
    resume_data: Any
    claude_payload_json: Any
    google_shopping_response_json: Any
    result: Any
    error_message: str | None
    waiting_for: WaitingFor | None
    created_by: str
    job: int | None  # None: it was adopted as history
    cost: Sequence[CostSeen] | None  # None: it has no job


async def list_quotes(
    retoma: Retoma,
    *,
    limit: int,
    lote: int | None = None,
    status: QuoteStatus | None = None,
    worker: str | None = None,
    before: store.Place | None = None,
) -> tuple[list[QuoteLine], store.Place | None]:
    """List quotes, the newest first. Return a page, and its end where another page follows."""
    found = await read(
        retoma,
        lambda tx: store.list_quotes(
            tx, n=limit + 1, lote=lote, status=status, worker=worker, before=before
        ),
    )
    lines = [QuoteLine(**line_fields(row)) for _, row in found[:limit]]
    return lines, found[limit - 1][0] if len(found) > limit else None


async def add_quote(
    retoma: Retoma, wanted: store.NewQuote, *, actor: str, key: str | None = None
) -> Created:
    """Submit one quote that belongs to no lote."""
    call = asked(actor, key, "add_quote", **arguments_of(wanted))
    return await add_once(retoma, call, lambda tx: store.add_quote(tx, wanted, actor=actor))


async def get_quote(retoma: Retoma, quote: int, language: Language | None = None) -> Quote:
    """Return a quote with its costs, and with what a person must put right before it goes on."""
    row = await read(retoma, lambda tx: store.quote_seen(tx, quote))
    job = row.job
    return Quote(
        **line_fields(row),
        **{name: getattr(row, name) for name in DOCUMENTS},
        last_heartbeat=row.last_heartbeat,
        error_message=await _error_message(retoma, row),
        waiting_for=None if job is None else await _waiting_for(retoma, job, language),
        created_by=row.created_by,
        job=job,
        cost=None if job is None else await retoma.costs.of_job(job),
    )


async def get_quote_row(retoma: Retoma, quote: int) -> store.QuoteRow:
    """Return a quote as the document's table has it, by the names of its columns."""
    return await read(retoma, lambda tx: store.quote_seen(tx, quote))


async def cancel_quote(retoma: Retoma, quote: int, *, actor: str) -> Quote:
    """Cancel a quote; canceled twice it stays canceled."""
    job = await read(retoma, lambda tx: store.job_of(tx, quote))
    await retoma.cancel(job, actor=actor)
    return await get_quote(retoma, quote)


def arguments_of(wanted: store.NewQuote) -> dict[str, str | None]:
    """By the names of the API."""
    return {"descricao": wanted.description, "tipo": wanted.kind, "codigo": wanted.code}


def line_fields(row: store.ListedQuote | store.QuoteRow) -> dict[str, Any]:
    """The fields of a QuoteLine, from a row of the document's table."""
    result = row.result if isinstance(row.result, dict) else {}
    return {
        **{name: getattr(row, name) for name in AS_STORED},
        "lote": row.batch_request_id,
        "progress_percentage": percentage(row.processing_checkpoint),
        "price": money_of(result.get("price")),
        "currency": result.get("currency"),
    }


async def _waiting_for(
    retoma: Retoma, job: int, language: Language | None
) -> WaitingFor | None:
    found = await retoma.get(job)
    if found.state is not State.PARKED:
        return None
    message = await read(retoma, lambda tx: store.parked_message(tx, job))
    return waiting_for(found.code or "", 1, message, language)


async def _error_message(retoma: Retoma, row: store.QuoteRow) -> str | None:
    """The message of the error that a quote ended with."""
    job = row.job
    if row.status != QuoteStatus.ERROR or job is None:
        return None
    causes = await retoma.dead.causes([job])
    return causes[job].message if job in causes else None
