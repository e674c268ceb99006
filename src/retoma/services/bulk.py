"""What is done to many jobs: at once where they are few, by a job of the house where they are many.

An order meets every job at most once: it goes from the newest to the oldest, and leaves alone what
has moved since it was given. So it may break off anywhere and be taken up again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.ops.batches import Batch
from retoma.engine.query import PAGE, Search
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import MOVABLE, Asked, Command, Verb
from retoma.library import Retoma
from retoma.words import say

__all__ = ["MOVABLE", "Asked", "Command", "Verb"]

KIND: Final = "retoma.order"
FEW: Final = 500  # jobs that are moved while somebody waits
FEW_IN_BATCH: Final = 2_000  # jobs of a batch whose verb somebody waits for
TRIES: Final = Retry(attempts=20, base=1.0, cap=60.0)  # nothing is lost by another try


class Origin(Protocol):
    """The request in which something was asked for; the job that does it belongs to its trace."""

    @property
    def correlation(self) -> str: ...
    @property
    def traceparent(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The payload of the house's own job."""

    verb: str
    actor: str
    since: str | None = None
    why: str | None = None
    search: dict[str, Any] | None = None
    most: int | None = None
    batch: int | None = None
    codes: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """What an order has done."""

    moved: int
    met: int


def order_of(command: Command, search: Search, most: int | None) -> Order:
    wanted = {name: value for name, value in asdict(search).items() if value is not None}
    return Order(
        verb=command.verb,
        actor=command.actor,
        since=command.since.isoformat(),
        why=command.why,
        search=wanted,
        most=most,
    )


def submit_order(tx: Transaction, order: Order, visit: Origin) -> int:
    """The job that will do it, written down with who wants it."""
    made = tx.submit(
        KIND,
        order,
        actor=order.actor,
        correlation=visit.correlation,
        traceparent=visit.traceparent,
    )
    about = {name: value for name, value in asdict(order).items() if value is not None}
    tx.tell("order.given", f"job {made.id}", about, actor=order.actor)
    return made.id


def order_kind(retoma: Retoma) -> Kind:
    """The house's own kind: its jobs run where the API is served."""

    @job(name=KIND, retry=TRIES)
    async def carry_out(ctx: Context, order: Order) -> dict[str, int]:
        if order.batch is not None:
            moved = await ctx.step("batch", _of_batch, retoma, order)
            return {"moved": moved}
        done = await _pages(ctx, retoma, order)
        return asdict(done)

    kind: Kind = carry_out.kind  # type: ignore[attr-defined]
    return kind


async def _pages(ctx: Context, retoma: Retoma, order: Order) -> Carried:
    command, search = _command(order), _search(order)
    before: int | None = None
    done = Carried(0, 0)
    while True:

        async def page(before: int | None = before, met: int = done.met) -> list[int | None]:
            return await _page(retoma, command, search, before, met, order.most)

        moved, met, before = await ctx.step("page", page, key=str(before or 0))
        done = Carried(done.moved + (moved or 0), done.met + (met or 0))
        await ctx.progress(note=str(say("{moved} moved", moved=done.moved)))
        if before is None or (order.most is not None and done.met >= order.most):
            return done


async def _page(
    retoma: Retoma,
    command: Command,
    search: Search,
    before: int | None,
    met: int,
    most: int | None,
) -> list[int | None]:
    limit = PAGE if most is None else min(PAGE, most - met)
    ordered, found, after = await retoma.bulk.apply_page(
        command, search, before=before, offset=met, limit=limit
    )
    return [ordered.moved, found, after]


async def carry_out_now(
    retoma: Retoma, command: Command, search: Search, most: int | None
) -> Carried:
    """All of it, while somebody waits."""
    done, before = Carried(0, 0), None
    while True:
        moved, met, before = await _page(retoma, command, search, before, done.met, most)
        done = Carried(done.moved + (moved or 0), done.met + (met or 0))
        if before is None or (most is not None and done.met >= most):
            return done


def _command(order: Order) -> Command:
    return Command(
        verb=Verb(order.verb),
        actor=order.actor,
        since=datetime.fromisoformat(order.since or ""),
        why=order.why,
    )


def _search(order: Order) -> Search:
    wanted = dict(order.search or {})
    if "state" in wanted:
        wanted["state"] = State(wanted["state"])
    return Search(**wanted)


# — whole batches —


async def _of_batch(retoma: Retoma, order: Order) -> int:
    batch = await retoma.batches.get(order.batch or 0)
    return await verb_on_batch(batch, order.verb, order.actor, order.codes, order.why)


@dataclass(frozen=True, slots=True)
class BatchAction:
    """How many jobs of a batch were moved; or, where they are many, the job that moves them."""

    batch: int
    moved: int
    job: int | None = None


async def act_on_batch(
    retoma: Retoma, batch: Batch, order: Order, context: Origin
) -> BatchAction:
    """Carry out one verb on all jobs of a batch: at once, or by a job where they are many."""
    counts = await batch.counts()
    if sum(counts.values()) <= FEW_IN_BATCH:
        moved = await verb_on_batch(batch, order.verb, order.actor, order.codes, order.why)
        return BatchAction(batch.id, moved)
    job = await retoma.write(lambda tx: submit_order(tx, order, context))
    return BatchAction(batch.id, 0, job)


async def verb_on_batch(
    batch: Batch, verb: str, actor: str, codes: Sequence[str] | None, why: str | None
) -> int:
    """How many jobs it moved. Called again after it broke off it goes on with the rest."""
    match verb:
        case "resume":
            return await batch.resume(actor=actor)
        case "retry":
            return await batch.retry_failed(codes, actor=actor)
        case "skip":
            return await batch.skip(why or "", codes=codes, actor=actor)
        case _:
            return await batch.cancel(actor=actor)
