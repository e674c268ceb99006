"""Lotes: quotes that are asked for together, and what came of them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, BinaryIO, Final

from retoma.apps.quotes import store
from retoma.apps.quotes.model import CODES, KIND, ProcessingCheckpoint, QuoteStatus
from retoma.apps.quotes.service.quotes import QuoteLine, arguments_of, line_fields
from retoma.apps.quotes.service.recovery import WaitingFor, count_stuck, list_waiting
from retoma.apps.quotes.service.tables import MOST_LINES, BadRows, Table, read_table
from retoma.apps.quotes.service.writing import Created, add_once, asked, read
from retoma.engine.ops.batches import Batch, Progress
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.engine.store.budget import BudgetSeen
from retoma.engine.store.cost import CostSeen
from retoma.library import Retoma
from retoma.services.bulk import BatchAction, Order, act_on_batch
from retoma.toolkit.tables import as_text_table
from retoma.toolkit.uploads import PIECE, in_thread
from retoma.web.room import Room
from retoma.web.visit import Visit
from retoma.words import Language, say

LONGEST_NAME: Final = 200  # characters of the name of a lote
PAGE: Final = 1_000  # quotes read at a time for a file
HEADINGS: Final = (
    *("id", "codigo", "tipo", "descricao", "status", "price", "currency", "error_code"),
    *("motivo", "lojas", "links", "codigo_fipe", "completed_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lote:
    """A lote and how far it is."""

    id: int
    nome: str
    total: int
    by_status: Mapping[QuoteStatus, int]
    progress_percentage: float
    finished: bool
    paused: bool
    eta_seconds: float | None
    cost: Sequence[CostSeen]
    orcamento: BudgetSeen | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoteStatus(Lote):
    """A lote in detail. `resumable`: it was interrupted, and `resume_lote` would move something."""

    stuck_count: int
    by_checkpoint: Mapping[ProcessingCheckpoint, int]
    errors: Mapping[str, int]
    waiting_for: Sequence[WaitingFor]
    resumable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteResult(QuoteLine):
    """A quote in a file: why it failed, and where its price comes from."""

    motivo: str | None
    lojas: str | None
    links: str | None
    codigo_fipe: str | None


async def list_lotes(
    retoma: Retoma, *, limit: int, before: int | None = None
) -> tuple[list[Lote], int | None]:
    """List lotes, the newest first. Return a page, and its last number where another page follows."""
    rows = await read(
        retoma, lambda tx: tx.all(store.SQL.list_lotes, before=before, n=limit + 1)
    )
    lotes = [await _lote_of(retoma, await retoma.batches.get(id_)) for (id_,) in rows[:limit]]
    return lotes, lotes[-1].id if len(rows) > limit else None


async def add_lote(
    retoma: Retoma,
    wanted: Sequence[store.NewQuote],
    *,
    actor: str,
    name: str | None = None,
    budget: str | None = None,
    key: str | None = None,
) -> Created:
    """Submit quotes as a lote, all of them or none."""
    quotes = [arguments_of(each) for each in wanted]
    call = asked(actor, key, "add_lote", nome=name, quotes=quotes, orcamento=budget)
    return await add_once(retoma, call, _adding(wanted, name, budget, actor))


async def import_table(
    retoma: Retoma,
    file: BinaryIO,
    *,
    memory: Room,
    actor: str,
    name: str | None = None,
    budget: str | None = None,
    only_good: bool = False,
    key: str | None = None,
) -> tuple[Created, Table]:
    """Submit the rows of a table (XLSX or CSV) as a lote. `memory` bounds how many tables are read at once.

    Raises BadRows where some rows are bad, unless `only_good` leaves them out.
    """
    if len(name or "") > LONGEST_NAME:
        raise BadInput(say("a name has {most} characters at most", most=LONGEST_NAME))
    hashed, size = await in_thread(_sha256_of, file)
    async with (
        memory.hold(size),
        as_text_table(file, retoma.isolate, most=MOST_LINES) as text,
    ):
        table = await memory.read(read_table, text)
        if table.n_bad and not (only_good and table.quotes):
            raise BadRows(table)
        arguments = {"nome": name, "orcamento": budget, "so_boas": only_good}
        call = asked(actor, key, "import_lote", **arguments, sha256=hashed)
        created = await add_once(retoma, call, _adding(table.quotes, name, budget, actor))
    return created, table


def _adding(
    wanted: Sequence[store.NewQuote], name: str | None, budget: str | None, actor: str
) -> Callable[[Transaction], int]:
    return lambda tx: (
        store.add_lote(tx, wanted, name=name, budget=budget, actor=actor).lote or 0
    )


def _sha256_of(file: BinaryIO) -> tuple[str, int]:
    """The digest of a file, and how many bytes it has."""
    made = sha256()
    while piece := file.read(PIECE):
        made.update(piece)
    size = file.tell()
    file.seek(0)
    return made.hexdigest(), size


async def get_batch(retoma: Retoma, lote: int) -> Batch:
    """Return the batch of a lote. Raises NotFound where the batch has jobs of another kind."""
    found = await retoma.batches.get(lote)
    if found.kind != KIND:
        raise NotFound(say("there is no lote {lote}", lote=lote))
    return found


async def get_lote(retoma: Retoma, lote: int) -> Lote:
    return await _lote_of(retoma, await get_batch(retoma, lote))


async def _lote_of(retoma: Retoma, batch: Batch) -> Lote:
    return Lote(**await _lote_fields(retoma, batch, await batch.progress()))


async def _lote_fields(retoma: Retoma, batch: Batch, progress: Progress) -> dict[str, Any]:
    eta = progress.eta
    return {
        "id": batch.id,
        "nome": batch.name,
        "total": progress.total,
        "by_status": await read(
            retoma, lambda tx: store.by_status(tx, batch.id, progress.counts)
        ),
        "progress_percentage": round(100 * progress.share, 1),
        "finished": progress.finished,
        "paused": progress.paused,
        "eta_seconds": None if eta is None else eta.total_seconds(),
        "cost": await retoma.costs.of_batch(batch.id),
        "orcamento": await retoma.budgets.of_batch(batch.id),
    }


async def get_lote_status(
    retoma: Retoma, lote: int, language: Language | None = None
) -> LoteStatus:
    """Return how far a lote is, where its quotes stand, and by what they failed or what they wait for."""
    batch = await get_batch(retoma, lote)
    progress = await batch.progress()
    rows = await read(retoma, lambda tx: tx.all(store.SQL.lote_checkpoints, lote=lote))
    stuck = await count_stuck(retoma, lote)
    interrupted = progress.paused or stuck > 0 or progress.counts.get(State.PARKED, 0) > 0
    return LoteStatus(
        **await _lote_fields(retoma, batch, progress),
        stuck_count=stuck,
        by_checkpoint={ProcessingCheckpoint(at): n for at, n in rows},
        errors=await retoma.dead.codes(lote),
        waiting_for=await list_waiting(retoma, language, lote),
        resumable=interrupted and not progress.finished,
    )


async def pause_lote(retoma: Retoma, lote: int, *, actor: str) -> None:
    """Start no more quotes of a lote; those that run end."""
    await (await get_batch(retoma, lote)).pause(actor=actor)


async def resume_lote(retoma: Retoma, lote: int, *, actor: str, context: Visit) -> BatchAction:
    """Resume an interrupted lote: take back what lost runners hold, resume what is parked, end a pause."""
    batch = await get_batch(retoma, lote)
    if (await batch.progress()).finished:
        raise IllegalMove(
            say(
                "lote {lote} has finished: nothing to resume; what is in ERROR is tried again on its page, or by"
                " `POST /api/batches/{lote}/retry-failed`",
                lote=lote,
            )
        )
    await retoma.runners.take_back(actor=actor)
    order = Order(verb="resume", actor=actor, batch=lote)
    return await act_on_batch(retoma, batch, order, context)


async def cancel_lote(retoma: Retoma, lote: int, *, actor: str, context: Visit) -> BatchAction:
    """Cancel every quote of a lote that has not ended."""
    order = Order(verb="cancel", actor=actor, batch=lote)
    return await act_on_batch(retoma, await get_batch(retoma, lote), order, context)


async def retry_lote(
    retoma: Retoma, lote: int, codes: list[str] | None = None, *, actor: str, context: Visit
) -> BatchAction:
    """Retry the quotes of a lote that ended in ERROR, with any of these codes or with any code."""
    order = Order(verb="retry", actor=actor, batch=lote, codes=codes)
    return await act_on_batch(retoma, await get_batch(retoma, lote), order, context)


async def export_lote(retoma: Retoma, lote: int) -> AsyncIterator[list[QuoteResult]]:
    """Yield what came of a lote, in the order in which its quotes were asked for, a page at a time."""
    await get_batch(retoma, lote)
    after = 0
    while True:
        rows = await read(retoma, partial(store.export_quotes, lote=lote, after=after, n=PAGE))
        yield [_result_of(row) for row in rows]
        if len(rows) < PAGE:
            return
        after = rows[-1].id


def _result_of(row: store.ListedQuote) -> QuoteResult:
    """Of several shops the names and the links stand in one order."""
    result = row.result if isinstance(row.result, dict) else {}
    sources = result.get("sources")
    used = [
        each
        for each in (sources if isinstance(sources, list) else [])
        if isinstance(each, dict) and each.get("used") is not False
    ]
    code = CODES.get(row.error_code or "")
    return QuoteResult(
        **line_fields(row),
        motivo=None if code is None else code.meaning,
        lojas=_joined(used, "store"),
        links=_joined(used, "url"),
        codigo_fipe=_joined(used, "CodigoFipe"),
    )


def _joined(sources: Sequence[Mapping[str, Any]], name: str) -> str | None:
    return " | ".join(str(each[name]) for each in sources if each.get(name)) or None
