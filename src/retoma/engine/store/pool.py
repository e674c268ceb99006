"""Shared exclusive things: held under the fence of the job that holds them, never by a clock.

A hold has a scope: the attempt (over with its epoch), the job (over with its generation), or until a
release is confirmed. Whoever wants a thing may take one whose hold is over; nobody else has to notice.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from retoma.codec import encode
from retoma.db import Call, Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.gates import POOL, Met, pool_gate
from retoma.engine.rules.job import Claim, Held, Item, Scope
from retoma.engine.rules.pool_items import Free, Freeing, Taking, deal
from retoma.engine.store.gates import BITE, put_back
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL, quoted
from retoma.words import say

NAMED = 10  # names in a message
EVERY = 1_000_000_000  # things of one pool, for whoever wants no pages


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRules:
    """How the things of a pool are handed out."""

    pick: str = "oldest"
    use_cap: int | None = None
    cool_down: float = 0.0
    off_after: int | None = None
    healthy: int = 0


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


# — what people do —


def put_pool(tx: Transaction, name: str, rules: PoolRules, *, actor: str) -> None:
    """It is there, with these rules; told where that is new."""
    changed = tx.one(
        SQL.put_pool,
        name=name,
        pick=rules.pick,
        use_cap=rules.use_cap,
        cool_down=rules.cool_down,
        off_after=rules.off_after,
        healthy=rules.healthy,
    )
    if changed is not None:
        tell(tx, actor=actor, verb="pool.declared", subject=name)
        let_in(tx, {name: BITE})


def put_items(
    tx: Transaction, pool: str, items: Sequence[tuple[str, str, str]], *, actor: str
) -> None:
    """Each a name, a value (JSON text) and a vendor; those that are new or others now are told."""
    _known(tx, pool)
    rows = ",".join(
        f'{{"name":{quoted(name)},"value":{value},"vendor":{quoted(vendor)}}}'
        for name, value, vendor in items
    )
    changed = tx.all(SQL.put_items, into=str, pool=pool, rows=f"[{rows}]")
    _tell_all(tx, actor, "pool.filled", pool, changed)
    let_in(tx, {pool: BITE})


def switch(
    tx: Transaction, pool: str, names: Sequence[str], *, on: bool, reason: str, actor: str
) -> None:
    """By hand, one or many; all of them or none. Those that were not so already are told."""
    _known(tx, pool)
    found = tx.all(SQL.named_items, pool=pool, names=json.dumps(list(names)))
    missing = sorted(set(names) - {name for _, name, _, _ in found})
    if missing:
        raise NotFound(
            say(
                "the pool {pool} has no {names}; nothing was switched",
                pool=pool,
                names=", ".join(map(repr, missing[:NAMED])),
            )
        )
    state = "on" if on else "off"
    others = {id_: name for id_, name, *now in found if now != [state, reason]}
    if not others:
        return
    tx.run(SQL.switch_items, items=json.dumps([*others]), state=state, reason=reason)
    _tell_all(tx, actor, f"pool.switched_{state}", pool, others.values(), reason)
    let_in(tx, {pool: BITE})


def declare_free(tx: Transaction, pool: str, name: str, *, actor: str) -> None:
    """A person has seen the use of a thing end."""
    row = tx.one(SQL.declare_free, pool=pool, name=name)
    if row is None:
        raise NotFound(say("nobody holds {name!r} of the pool {pool}", name=name, pool=pool))
    tell(tx, actor=actor, verb="pool.declared_free", subject=f"{pool}/{name}")
    let_in(tx, {pool: BITE})


def _tell_all(
    tx: Transaction,
    actor: str,
    verb: str,
    pool: str,
    names: Iterable[str],
    reason: str | None = None,
) -> None:
    subjects = [f"{pool}/{name}" for name in names]
    details = None if reason is None else encode({"reason": reason})
    if subjects:
        told = {"actor": actor, "verb": verb, "details": details}
        tx.run(SQL.tell_all, subjects=json.dumps(subjects), **told)


# — what runners do, many at a time —


def may_hold(boot: str, takings: Sequence[Taking]) -> Call:
    """Which of those who want a thing this runner still has: (job, epoch)."""
    rows = [{"job": job, "epoch": epoch} for job, epoch in {t.held for t in takings}]
    return Call(SQL.may_hold, {"boot": boot, "rows": json.dumps(rows)})


def letting_go(boot: str, frees: Sequence[Freeing]) -> Call:
    """Tell that they let go, if this runner still has them: (job, epoch). `let_go` does it."""
    return _telling(boot, EventType.FREED, [(each.held, each.item) for each in frees])


def let_go(tx: Transaction, boot: str, frees: Sequence[Freeing]) -> set[int]:
    """Free what is still held by those who say so; what was. Whoever waits is let in by `let_in`."""
    failed = sorted({each.item.pool for each in frees if each.worked is False})
    if failed:
        tx.run(SQL.lock_pools, pools=json.dumps(failed))
    rows = {each.item.id: each for each in reversed(frees)}
    freed = tx.all(SQL.let_go, rows=json.dumps([_freeing(each) for each in rows.values()]))
    for id_, failing in freed:
        if failing and rows[id_].worked is False:
            _switch_off(tx, boot, rows[id_].item)
    return {id_ for id_, _ in freed}


def hand_out(
    tx: Transaction, boot: str, takings: Sequence[Taking]
) -> dict[Taking, Item | NotFound | None]:
    """A thing for each of these claims of ours; None where none is free."""
    found: dict[Taking, Item | NotFound | None] = {**_kept(tx, takings)}
    firsts = _firsts(taking for taking in takings if taking not in found)
    wanting = [taking for taking, first in firsts.items() if taking is first]
    dealt = _dealt(tx, [taking for taking in wanting if taking.keeps is None])
    given = ((taking, _given(taking, dealt)) for taking in wanting)
    found |= _hold(tx, boot, {taking: item for taking, item in given if item is not None})
    unknown = _unknown(tx, {taking.pool for taking in wanting if taking not in found})
    for taking in takings:
        if taking not in found:
            found[taking] = found.get(firsts[taking]) or unknown.get(taking.pool)
    return found


@dataclass(frozen=True, slots=True)
class Stock:
    """What a claim finds in the pools of which its jobs need things."""

    needs: dict[int, tuple[str, ...]] = field(default_factory=dict)  # pools, by job
    kept: dict[int, list[Item]] = field(default_factory=dict)  # what it holds from before
    free: dict[str, list[Free]] = field(default_factory=dict)
    counts: dict[str, int] = field(
        default_factory=dict
    )  # how many jobs each pool has things for


def stock(
    tx: Transaction,
    met: Sequence[Met],
    holds: Mapping[str, Sequence[str]],
    *,
    most: int,
    dice: int,
) -> Stock:
    """Things for at most so many of the met; `holds` tells the pools of each kind. Locks them."""
    holding = [each for each in met if each.tag in holds]
    if not holding:
        return Stock()
    before = [Held(each.job, 0) for each in holding if each.again]
    kept = held_things(tx, before) if before else {}
    needs = {
        each.job: tuple(
            pool
            for pool in holds[each.tag]
            if all(item.pool != pool for item in kept.get(each.job, ()))
        )
        for each in holding
    }
    many = Counter(pool for pools in needs.values() for pool in pools)
    wanted = {pool: min(n, most) for pool, n in many.items()}
    free = free_things(tx, {pool: (n + bool(before), dice) for pool, n in wanted.items()})
    # Where all were found that were looked for there may be more.
    counts = {
        pool: len(free[pool]) if len(free[pool]) < n else many[pool]
        for pool, n in wanted.items()
    }
    return Stock(needs, kept, free, counts)


def reserve(tx: Transaction, boot: str, claims: Sequence[Claim], found: Stock) -> list[Claim]:
    """Give to these claims, just made, what they need: under their epochs, for the attempt."""
    given: dict[Taking, Item] = {}
    for pool, free in found.free.items():
        takings = [
            Taking(claim.held, claim.generation, pool, Scope.ATTEMPT)
            for claim in claims
            if pool in found.needs.get(claim.job, ())
        ]
        dealt = dict(zip(takings, deal(takings, free), strict=True))
        for taking in takings:
            item = _given(taking, dealt)
            if item is not None:
                given[taking] = item
    things: dict[int, list[Item]] = {job: [*items] for job, items in found.kept.items()}
    for taking, item in _hold(tx, boot, given).items():
        things.setdefault(taking.held.job, []).append(item)
    return [claim._replace(things=tuple(things.get(claim.job, ()))) for claim in claims]


def let_back_in(tx: Transaction, gates: Iterable[str]) -> None:
    """Of those just set aside, who would find something after all: others were about to take it."""
    shut = Counter(gate.removeprefix(POOL) for gate in gates if gate.startswith(POOL))
    if shut:
        let_in(tx, shut)


def held_things(tx: Transaction, held: Iterable[Held]) -> dict[int, list[Item]]:
    """What these jobs hold, by their ids."""
    rows = json.dumps([{"job": job, "epoch": epoch} for job, epoch in held])
    found: dict[int, list[Item]] = {}
    for job, id_, pool, name, value, scope in tx.all(SQL.held_things, rows=rows):
        found.setdefault(job, []).append(Item(id_, pool, name, value, Scope(scope)))
    return found


def freed_already(tx: Transaction, freeing: Freeing) -> bool:
    """Whether this very thing was let go of: asked only after an answer was lost."""
    holds = held_things(tx, [freeing.held]).get(freeing.held.job, ())
    return all(item.id != freeing.item.id for item in holds)


def taken_already(tx: Transaction, takings: Sequence[Taking]) -> dict[Taking, Item]:
    """What these got after all, without knowing: asked only after an answer was lost."""
    left = held_things(tx, {taking.held for taking in takings})
    found = {}
    for taking in takings:
        holds = left.get(taking.held.job, [])
        for item in holds:
            if (item.pool, item.scope) == (
                taking.pool,
                taking.scope,
            ) and item.id not in taking.has:
                found[taking] = item
                holds.remove(item)
                break
    return found


def let_in(tx: Transaction, pools: Mapping[str, int]) -> int:
    """Put back so many of those who wait for these pools, at most as find something there."""
    gates = {pool: pool_gate(pool) for pool in sorted(pools)}
    calls = [Call(SQL.count_free, {"pool": pool, "gate": gate}) for pool, gate in gates.items()]
    free = [n for [(n,)] in tx.together(calls)]
    rooms = zip(gates.items(), free, strict=True)
    return put_back(tx, {gate: min(n, pools[pool]) for (pool, gate), n in rooms})


def _kept(tx: Transaction, takings: Sequence[Taking]) -> dict[Taking, Item]:
    """Who wants a thing for longer than an attempt may have one from an earlier one."""
    longer = [t for t in takings if t.scope is not Scope.ATTEMPT and t.keeps is None]
    things = held_things(tx, {t.held for t in longer}) if longer else {}
    return {
        taking: item
        for taking in longer
        for item in things.get(taking.held.job, ())
        if (item.pool, item.scope) == (taking.pool, taking.scope)
    }


def _firsts(takings: Iterable[Taking]) -> dict[Taking, Taking]:
    """A job that asks twice at once for a thing it is to keep gets one: whose answer is whose."""
    first: dict[tuple[Held, str, Scope], Taking] = {}
    return {
        taking: taking
        if taking.scope is Scope.ATTEMPT
        else first.setdefault((taking.held, taking.pool, taking.scope), taking)
        for taking in takings
    }


def _dealt(tx: Transaction, takings: Iterable[Taking]) -> dict[Taking, Free | None]:
    by_pool: dict[str, list[Taking]] = {}
    for taking in takings:
        by_pool.setdefault(taking.pool, []).append(taking)
    free = free_things(tx, {pool: _asking(its) for pool, its in by_pool.items()})
    return {
        taking: thing
        for pool, its in by_pool.items()
        for taking, thing in zip(its, deal(its, free[pool]), strict=True)
    }


def _asking(takings: Sequence[Taking]) -> tuple[int, int]:
    """How many to look at, and the dice: more, where somebody must not get certain ones."""
    others = any(each.again for each in takings) + any(each.shuns for each in takings)
    return len(takings) + others, takings[0].dice


def free_things(
    tx: Transaction, wanted: Mapping[str, tuple[int, int]]
) -> dict[str, list[Free]]:
    """Of each pool so many that nobody holds, as far as there are; nobody else gets them now."""
    pools = sorted(wanted)
    calls = [
        Call(SQL.free_things, {"pool": pool, "n": n, "dice": dice})
        for pool in pools
        for n, dice in [wanted[pool]]
    ]
    found = {
        pool: [Free(*row) for row in rows]
        for pool, rows in zip(pools, tx.together(calls), strict=True)
    }
    for pool in pools:
        missing = wanted[pool][0] - len(found[pool])
        if missing > 0:
            found[pool] += _over(tx, pool, missing)
    return found


def _over(tx: Transaction, pool: str, n: int) -> list[Free]:
    """Things of those who died with them: locked first, and looked at again under the lock."""
    seem = tx.all(SQL.over_holds, into=int, pool=pool, n=n)
    return tx.all(SQL.end_holds, into=Free, items=json.dumps(seem)) if seem else []


def _given(taking: Taking, dealt: Mapping[Taking, Free | None]) -> Item | None:
    if taking.keeps is not None:
        return replace(taking.keeps, scope=taking.scope)
    thing = dealt[taking]
    if thing is None:
        return None
    return Item(thing.id, taking.pool, thing.name, thing.value, taking.scope)


def _hold(tx: Transaction, boot: str, given: Mapping[Taking, Item]) -> dict[Taking, Item]:
    if not given:
        return {}
    rows = [
        {
            "item": item.id,
            "job": taking.held.job,
            "epoch": taking.held.epoch,
            "generation": taking.generation,
            "scope": item.scope,
        }
        for taking, item in given.items()
    ]
    held = {*tx.all(SQL.hold_things, into=int, rows=json.dumps(rows))}
    got = {taking: item for taking, item in given.items() if item.id in held}
    told = _telling(boot, EventType.HELD, ((t.held, item) for t, item in got.items()))
    tx.run(told.statement, **told.params)
    return got


def _telling(boot: str, event: EventType, holds: Iterable[tuple[Held, Item]]) -> Call:
    """Folded by job and epoch."""
    by_job: dict[Held, list[str]] = {}
    for held, item in holds:
        told = {"pool": item.pool, "item": item.name, "scope": item.scope}
        by_job.setdefault(held, []).append(encode(told))
    rows = ",".join(
        f'{{"job":{held.job},"epoch":{held.epoch},"n":{len(told)},"told":[{",".join(told)}]}}'
        for held, told in by_job.items()
    )
    return Call(SQL.tell_holds, {"boot": boot, "type": event, "rows": f"[{rows}]"})


def _freeing(each: Freeing) -> dict[str, object]:
    return {
        "item": each.item.id,
        "job": each.held.job,
        "epoch": each.held.epoch,
        "worked": None if each.worked is None else int(each.worked),
        "by": each.by or f"job {each.held.job}",
        "kind": None if each.by else each.kind,
        "used": int(each.used),
    }


def _switch_off(tx: Transaction, boot: str, item: Item) -> None:
    if tx.one(SQL.switch_off_failing, item=item.id) is not None:
        subject = f"{item.pool}/{item.name}"
        tell(tx, actor=boot, verb="pool.switched_off", subject=subject)


def _unknown(tx: Transaction, pools: Iterable[str]) -> dict[str, NotFound]:
    return {
        pool: NotFound(say("there is no pool {pool!r}", pool=pool))
        for pool in sorted(pools)
        if tx.one(SQL.get_pool, pool=pool) is None
    }


# — what people see —


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
        for name, pick, use_cap, cool_down, off_after, healthy, *counted in tx.all(
            SQL.list_pools
        )
    ]


def list_items(
    tx: Transaction, pool: str, *, after: str = "", limit: int = EVERY
) -> list[ItemSeen]:
    """By name, those after one."""
    _known(tx, pool)
    return tx.all(SQL.list_items, into=ItemSeen, pool=pool, after=after, most=limit)


def _known(tx: Transaction, pool: str) -> None:
    if tx.one(SQL.get_pool, pool=pool) is None:
        raise NotFound(say("there is no pool {pool!r}", pool=pool))
