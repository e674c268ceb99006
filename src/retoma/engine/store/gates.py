"""Limits and paused batches: who counts under them, who waits behind them, who is put back.

What counts under a limit is what runs and names its key: a claim adds, whatever ends a claim takes
away, each in the same transaction, so the two cannot come apart.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from retoma.db import Call, Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.gates import Limit, batch_gate, limit_gate, own_key, parted
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import say

BITE = 1_000  # jobs put back in one statement
AFTER_COLON = ";"  # the next character: keys that begin "site:" lie before "site;"


# — limits —


def declaring(caps: Mapping[str, int]) -> Call:
    """These limits are there, and let so many run, unless a person said otherwise."""
    rows = [{"key": key, "cap": cap} for key, cap in sorted(caps.items())]
    return Call(SQL.declare_limits, {"rows": json.dumps(rows)})


def declare_kinds(tx: Transaction, limits: Iterable[tuple[str, Limit]]) -> None:
    """What the code of these kinds says now, also of keys that came in under an older one."""
    for kind, limit in limits:
        prefix = limit.prefix(kind)
        if prefix is None:
            call = declaring({own_key(kind): limit.cap})
        else:
            after = prefix[:-1] + AFTER_COLON
            params = {"first": prefix, "after": after, "cap": limit.cap}
            call = Call(SQL.declare_limits_per, params)
        tx.run(call.statement, **call.params)


def set_limit(tx: Transaction, key: str, cap: int | None, *, actor: str) -> None:
    """A person's word, over the code's until it is taken back (None)."""
    if cap is None:
        free = tx.one(SQL.unset_limit, into=int, key=key)
    else:
        free = tx.one(SQL.set_limit, into=int, key=key, cap=cap)
    if free is None:
        raise NotFound(say("there is no limit {key}", key=key))
    tell(tx, actor=actor, verb="limit.set", subject=f"{key} {cap or 'as in the code'}")
    put_back(tx, {limit_gate(key): free})


def room_of(tx: Transaction, keys: Iterable[str]) -> dict[str, int]:
    """How many more may run under each key; nobody else changes that before we commit."""
    wanted = sorted(set(keys))
    return dict(tx.all(SQL.lock_limits, keys=json.dumps(wanted))) if wanted else {}


def use(tx: Transaction, limit_keys: Iterable[str | None]) -> None:
    """These jobs run now."""
    _count(tx, limit_keys, 1)


def give_back(tx: Transaction, limit_keys: Iterable[str | None]) -> None:
    """These jobs run no more: others may, in a second statement, or one that is being set aside
    right now would be overlooked."""
    freed, room = _count(tx, limit_keys, -1)
    put_back(tx, {limit_gate(key): min(n, room.get(key, 0)) for key, n in freed.items()})


def _count(
    tx: Transaction, limit_keys: Iterable[str | None], sign: int
) -> tuple[Counter[str], dict[str, int]]:
    moved = Counter(key for each in limit_keys for key in parted(each))
    if not moved:
        return moved, {}
    rows = [{"key": key, "n": sign * n} for key, n in sorted(moved.items())]
    return moved, dict(tx.all(SQL.use_limits, rows=json.dumps(rows)))


# — aside and back —


def paused_among(tx: Transaction, batches: Iterable[int | None]) -> frozenset[int]:
    wanted = sorted({batch for batch in batches if batch is not None})
    if not wanted:
        return frozenset()
    return frozenset(tx.all(SQL.paused_batches, into=int, batches=json.dumps(wanted)))


def set_aside(tx: Transaction, shut: Sequence[tuple[int, str]]) -> None:
    """Each of these waits behind its gate."""
    if shut:
        rows = [{"job": job, "gate": gate} for job, gate in shut]
        tx.run(SQL.set_aside, rows=json.dumps(rows))


def open_gates(tx: Transaction) -> int:
    """Put back whatever has room, whoever forgot it; how many that were."""
    return put_back(tx, dict(tx.all(SQL.open_gates, bite=BITE)))


def any_gate_open(tx: Transaction) -> bool:
    """Whether that would put back something. Changes nothing."""
    [rooms] = tx.finish(Call(SQL.open_gates, {"bite": BITE}))
    return bool(rooms)


def put_back(tx: Transaction, room: Mapping[str, int]) -> int:
    """As many from behind each gate as it has room for; how many that were."""
    calls = [_putting_back(gate, n) for gate, n in sorted(room.items()) if n > 0]
    back = [queue for rows in tx.together(calls) for (queue,) in rows] if calls else []
    for queue in set(back):
        tx.ring(queue)
    return len(back)


def _putting_back(gate: str, n: int, *, offset: int = 0, step: int = 0) -> Call:
    params = {"gate": gate, "n": min(n, BITE), "offset": offset, "step": step}
    return Call(SQL.put_back, params)


# — batches —


def pause_batch(tx: Transaction, batch: int, *, actor: str) -> bool:
    """Whether it went on until now."""
    return _told(tx, tx.one(SQL.pause_batch, batch=batch), batch, "batch.paused", actor)


def unpause_batch(tx: Transaction, batch: int, *, actor: str) -> bool:
    """Whether it was paused until now. What was set aside is put back by `put_back_batch`."""
    return _told(tx, tx.one(SQL.unpause_batch, batch=batch), batch, "batch.unpaused", actor)


def put_back_batch(tx: Transaction, batch: int, *, offset: int) -> int:
    """The next bite of what was set aside, as if it were submitted now; none while it is paused."""
    if paused_among(tx, [batch]):
        return 0
    [rows] = tx.together([_putting_back(batch_gate(batch), BITE, offset=offset, step=1)])
    for queue in {queue for (queue,) in rows}:
        tx.ring(queue)
    return len(rows)


def batch_exists(tx: Transaction, batch: int) -> None:
    if tx.one(SQL.get_batch, batch=batch) is None:
        raise NotFound(say("there is no batch {batch}", batch=batch))


def _told(tx: Transaction, row: object, batch: int, verb: str, actor: str) -> bool:
    if row is not None:
        tell(tx, actor=actor, verb=verb, subject=str(batch))
        return True
    batch_exists(tx, batch)
    return False
