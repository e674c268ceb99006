"""Shared exclusive things: held under the fence of the job that holds them, never by a clock.

A hold has a scope: the attempt (over with its epoch), the job (over with its generation), or until a
release is confirmed. Whoever wants a thing may take one whose hold is over; nobody else has to notice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from retoma.codec import encode
from retoma.db import Row, Transaction, moment
from retoma.engine.errors import NotFound
from retoma.engine.events import EventType
from retoma.engine.job import Held
from retoma.engine.store.gates import put_back
from retoma.engine.store.rows import append_event, tell
from retoma.engine.store.verb import verb
from retoma.words import say

COUNT_FREE = verb("count_free")
DECLARE_FREE = verb("declare_free")
FREE_ITEM = verb("free_item")
GET_POOL = verb("get_pool")
HELD_ITEM = verb("held_item")
HOLD_FOR_EVIDENCE = verb("hold_for_evidence")
LIST_ITEMS = verb("list_items")
LIST_POOLS = verb("list_pools")
PUT_ITEM = verb("put_item")
PUT_POOL = verb("put_pool")
SWITCH_ITEM = verb("switch_item")
SWITCH_OFF_FAILING = verb("switch_off_failing")
TAKE_ITEM = verb("take_item")
GATE = "pool:"


class Scope(StrEnum):
    """How long a thing is held."""

    ATTEMPT = "attempt"
    JOB = "job"  # over parking, snoozes and crashes, to the end of the generation
    RELEASE = "release"  # until somebody has seen its use end


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRules:
    """How the things of a pool are handed out."""

    pick: str = "oldest"
    use_cap: int | None = None
    cool_down: float = 0.0
    off_after: int | None = None
    healthy: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A thing that is held."""

    id: int
    pool: str
    name: str
    value: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class ItemSeen:
    """A thing of a pool, as a person sees it."""

    name: str
    value: str
    vendor: str
    state: str
    reason: str | None
    uses: int
    failures: int
    score: float
    ready_at: datetime | None
    used_at: datetime | None
    job: int | None
    scope: str | None


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """A pool and how full it is."""

    name: str
    rules: PoolRules
    items: int
    on: int
    held: int


def gate(pool: str) -> str:
    return f"{GATE}{pool}"


def put_pool(tx: Transaction, name: str, rules: PoolRules, *, actor: str) -> None:
    tx.run(
        PUT_POOL,
        name=name,
        pick=rules.pick,
        use_cap=rules.use_cap,
        cool_down=rules.cool_down,
        off_after=rules.off_after,
        healthy=rules.healthy,
    )
    tell(tx, actor=actor, verb="pool.declared", subject=name)


def put_items(
    tx: Transaction, pool: str, items: Sequence[tuple[str, str, str]], *, actor: str
) -> None:
    """Each a name, a value (JSON text) and a vendor."""
    _known(tx, pool)
    for name, value, vendor in items:
        tx.run(PUT_ITEM, pool=pool, name=name, value=value, vendor=vendor)
    tell(tx, actor=actor, verb="pool.filled", subject=pool)
    let_in(tx, pool)


def switch(
    tx: Transaction, pool: str, names: Sequence[str], *, on: bool, reason: str, actor: str
) -> None:
    """By hand, one or many; all of them or none."""
    _known(tx, pool)
    for name in names:
        state = "on" if on else "off"
        if tx.one(SWITCH_ITEM, pool=pool, name=name, state=state, reason=reason) is None:
            raise NotFound(
                say(
                    "the pool {pool} has no {name!r}; nothing was switched",
                    pool=pool,
                    name=name,
                )
            )
        tell(tx, actor=actor, verb=f"pool.switched_{state}", subject=f"{pool}/{name}")
    let_in(tx, pool)


def declare_free(tx: Transaction, pool: str, name: str, *, actor: str) -> None:
    """A person has seen the use of a thing end."""
    row = tx.one(DECLARE_FREE, pool=pool, name=name)
    if row is None:
        raise NotFound(say("nobody holds {name!r} of the pool {pool}", name=name, pool=pool))
    tell(tx, actor=actor, verb="pool.declared_free", subject=f"{pool}/{name}")
    let_in(tx, pool)


def take(
    tx: Transaction, boot: str, held: Held, generation: int, pool: str, scope: Scope, dice: int
) -> Item | bool:
    """A thing of the pool; True where none is free, False where the job is no longer ours."""
    _known(tx, pool)
    row = tx.one(HOLD_FOR_EVIDENCE, boot=boot, job=held.job, epoch=held.epoch)
    if row is None:
        return False
    if scope is not Scope.ATTEMPT:
        kept = tx.one(HELD_ITEM, job=held.job, pool=pool, scope=scope)
        if kept is not None:
            _tell(tx, held, row[0], EventType.HELD, pool, kept[1], scope, boot)
            return Item(kept[0], pool, kept[1], kept[2], scope)
    taken = tx.one(
        TAKE_ITEM,
        pool=pool,
        job=held.job,
        epoch=held.epoch,
        generation=generation,
        scope=scope,
        dice=dice,
    )
    if taken is None:
        _tell(tx, held, row[0], EventType.HELD, pool, None, scope, boot)
        return True
    _tell(tx, held, row[0], EventType.HELD, pool, taken[1], scope, boot)
    return Item(taken[0], pool, taken[1], taken[2], scope)


def free(
    tx: Transaction, boot: str, held: Held, item: Item, *, worked: bool, by: str | None
) -> bool:
    """Let go of it; whether it was still held by this job."""
    row = tx.one(HOLD_FOR_EVIDENCE, boot=boot, job=held.job, epoch=held.epoch)
    if row is None:
        return False
    freed = tx.one(
        FREE_ITEM, item=item.id, job=held.job, epoch=held.epoch, worked=int(worked), by=by
    )
    _tell(tx, held, row[0], EventType.FREED, item.pool, item.name, item.scope, boot)
    if freed is None:
        return False
    if not worked:
        reason = f"failed {freed[2]} times in a row"
        if tx.one(SWITCH_OFF_FAILING, item=item.id, reason=reason) is not None:
            subject = f"{item.pool}/{item.name}"
            tell(tx, actor=boot, verb="pool.switched_off", subject=subject)
    let_in(tx, item.pool)
    return True


def let_in(tx: Transaction, pool: str) -> int:
    """Put back as many of those who wait for the pool as find something there."""
    [(n,)] = tx.all(COUNT_FREE, pool=pool)
    return put_back(tx, {gate(pool): n})


def list_pools(tx: Transaction) -> list[PoolSeen]:
    return [
        PoolSeen(
            name,
            PoolRules(
                pick=pick,
                use_cap=use_cap,
                cool_down=cool_down,
                off_after=off_after,
                healthy=healthy,
            ),
            *counted,
        )
        for name, pick, use_cap, cool_down, off_after, healthy, *counted in tx.all(LIST_POOLS)
    ]


def list_items(tx: Transaction, pool: str) -> list[ItemSeen]:
    _known(tx, pool)
    return [_item_seen(row) for row in tx.all(LIST_ITEMS, pool=pool)]


def _item_seen(row: Row) -> ItemSeen:
    name, value, vendor, state, reason, uses, failures, score, ready, used, job, scope = row
    return ItemSeen(
        name=name,
        value=value,
        vendor=vendor,
        state=state,
        reason=reason,
        uses=uses,
        failures=failures,
        score=score,
        ready_at=moment(ready),
        used_at=moment(used),
        job=job,
        scope=scope,
    )


def _known(tx: Transaction, pool: str) -> None:
    if tx.one(GET_POOL, pool=pool) is None:
        raise NotFound(say("there is no pool {pool!r}", pool=pool))


def _tell(
    tx: Transaction,
    held: Held,
    seq: int,
    event: EventType,
    pool: str,
    name: str | None,
    scope: Scope,
    boot: str,
) -> None:
    told: dict[str, Any] = {"pool": pool, "item": name, "scope": scope}
    append_event(tx, held.job, seq, event, boot, encode(told), epoch=held.epoch)
