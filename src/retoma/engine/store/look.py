"""A runner looks around: one question, so that having nothing to do costs next to nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retoma.db import Call, Transaction, seconds_between
from retoma.engine.ports import Process
from retoma.engine.store.verb import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What there is to do. Times are in seconds from now; None: there is none."""

    waiting: bool  # something stands in line that this runner knows
    aside: bool  # something stands behind a gate, which may have opened
    cancels: bool  # somebody wants a job of this runner canceled
    left_over: bool  # a runner that is no more still has jobs
    duty_free: bool  # nobody alive has this duty
    held: int  # duties of this runner
    beside: Sequence[tuple[str, Process]]  # who says he lives on this host
    due: float | None  # when something scheduled wants its turn
    lease_ends: float | None  # when the first lease of the others does
    duties: Mapping[str, float | None]  # when these want to be done
    pauses: str  # how often they have changed

    @property
    def lease_over(self) -> bool:
        return self.lease_ends is not None and self.lease_ends <= 0


def look_around(
    tx: Transaction,
    boot: str,
    host: str,
    *,
    queues: Iterable[str],
    knows: Iterable[str],
    duties: Iterable[str],
) -> Around:
    """Changes nothing, in one statement that is a transaction in itself."""
    asked = {
        "boot": boot,
        "host": host,
        "queues": json.dumps(list(queues)),
        "knows": json.dumps(list(knows)),
        "duties": json.dumps(list(duties)),
    }
    [[row]] = tx.finish(Call(SQL.look_around, asked))
    waiting, aside, cancels, left_over, duty_free, held, beside, *times, pauses, now = row
    due, lease_ends, fold, schedule = (seconds_between(now, at) for at in times)
    return Around(
        waiting=bool(waiting),
        aside=bool(aside),
        cancels=bool(cancels),
        left_over=bool(left_over),
        duty_free=bool(duty_free),
        held=held,
        beside=[(b, Process(host, pid, began)) for b, pid, began in json.loads(beside or "[]")],
        due=None if due is None else max(due, 0.0),
        lease_ends=lease_ends,
        duties={"fold": fold, "schedule": schedule},
        pauses=pauses,
    )
