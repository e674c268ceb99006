"""A runner takes jobs up, and reads back what they have."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from retoma.db import Call, Row, Transaction, seconds_until
from retoma.engine.rules.gates import Met, admit, parted
from retoma.engine.rules.job import Claim, Held, Memory, SavedStep, StepId
from retoma.engine.rules.states import StepState
from retoma.engine.store import gates, pool
from retoma.engine.store.pauses import known
from retoma.engine.store.verb import SQL

NOTHING_BEFORE = (-(2**31), -(2**63), 0)  # (priority, turn, id): the start of every queue
INLINE = 256 * 1024  # bytes of saved values that come along with a claimed job
ALL = 2**60  # bytes: whatever there is
NEVER_PAUSED = "0"  # how often pauses have changed where nobody has ever paused anything


@dataclass(frozen=True, slots=True)
class Spot:
    """A queue, and from where in it to look: nothing before the hint is worth a look."""

    queue: str
    after: tuple[int, int, int] = NOTHING_BEFORE
    holding: Sequence[str] = ()  # kinds of which each job needs a thing of a pool


class Waiting(NamedTuple):
    """The first waiting job of a queue. Sorted, the one that is claimed first comes first."""

    priority: int
    turn: int
    job: int
    queue: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the queues gave."""

    claims: list[Claim]
    next_due: float | None = None  # seconds until something scheduled wants its turn, if asked
    gated: bool = False  # jobs with a gate before them were met, whether it is shut or not
    more: bool = False  # and there may be others behind them
    unheard: bool = False  # pauses have changed, and the asker has not heard of it
    looked: Sequence[Waiting] | None = (
        None  # the queues that had waiting jobs, if they were read
    )


def claim_jobs(
    tx: Transaction,
    boot: str,
    spots: Sequence[Spot],
    knows: Sequence[str],
    *,
    slots: int,
    suspects: int,
    promote: bool,
    pauses: str = NEVER_PAUSED,
    share: int | None = None,
) -> Found:
    """Hand over at most `slots` jobs, and `suspects` more that must run alone of their sort.

    What was scheduled and is due stands in line only before a claim that promotes; it also tells
    when the next is due. `pauses`: the change of them that the asker has heard of. `share`: how many
    jobs of one queue at most.
    """
    params = _asking(boot, spots, knows, slots=slots, suspects=suspects, pauses=pauses)
    params["share"] = slots if share is None else share
    claim = Call(SQL.claim_jobs, params)
    if not promote:
        [claimed] = tx.finish(claim)
        return _found(claimed)
    _, claimed, due = tx.finish(
        Call(SQL.promote_jobs, params), claim, Call(SQL.next_due, params)
    )
    return _found(claimed, _seconds_until(due))


def claim_past_gates(
    tx: Transaction,
    boot: str,
    spots: Sequence[Spot],
    knows: Sequence[str],
    *,
    slots: int,
    suspects: int,
    promote: bool,
    meet: int,
    holds: Mapping[str, Sequence[str]] = MappingProxyType({}),
    dice: int = 1,
    pauses: str = NEVER_PAUSED,
) -> Found:
    """As `claim_jobs`, through gates: of the first `meet` that wait run those that may, and those
    that may not are set aside. Locks jobs, then batches, then limits by key, then things.

    `holds`: the pools of which a kind needs a thing; it is held from the claim on.
    """
    params = _asking(boot, spots, knows, slots=slots, suspects=suspects, pauses=pauses)
    if promote:
        tx.run(SQL.promote_jobs, **params)
    met = tx.all(SQL.meet_jobs, into=Met, **params, meet=meet)
    claims, shut = _claim_met(
        tx, boot, met, slots=slots, suspects=suspects, holds=holds, dice=dice
    )
    return Found(
        claims,
        _seconds_until(tx.all(SQL.next_due, **params)) if promote else None,
        gated=shut or any(claim.limit_key or claim.tag in holds for claim in claims),
        more=sum(not each.suspect for each in met) >= meet,
        unheard=not met and known(tx).change != pauses,
    )


def claim_job(
    tx: Transaction,
    boot: str,
    queue: str,
    job: int,
    knows: Sequence[str],
    *,
    suspects: int,
    holds: Mapping[str, Sequence[str]] = MappingProxyType({}),
    dice: int = 1,
) -> Claim | None:
    """Hand over this very job, by the rules of every claim; None where it may not be claimed now."""
    asked = {"boot": boot, "queue": queue, "job": job, "knows": json.dumps(list(knows))}
    met = tx.all(SQL.meet_job, into=Met, **asked)
    if not met:
        return None
    claims, _ = _claim_met(tx, boot, met, slots=1, suspects=suspects, holds=holds, dice=dice)
    return claims[0] if claims else None


def _claim_met(
    tx: Transaction,
    boot: str,
    met: Sequence[Met],
    *,
    slots: int,
    suspects: int,
    holds: Mapping[str, Sequence[str]],
    dice: int,
) -> tuple[list[Claim], bool]:
    """Those of the met that may run; and whether others were set aside."""
    paused = gates.paused_among(tx, (each.batch for each in met))
    room = gates.room_of(tx, (key for each in met for key in parted(each.limit_key)))
    found = pool.stock(tx, met, holds, most=slots + suspects, dice=dice)
    verdict = admit(
        met,
        paused=paused,
        room=room,
        slots=slots,
        suspects=suspects,
        needs=found.needs,
        things=found.counts,
    )
    gates.set_aside(tx, verdict.aside)
    claims = tx.all(SQL.claim_met_jobs, into=Claim, boot=boot, jobs=json.dumps(verdict.run))
    gates.use(tx, (claim.limit_key for claim in claims))
    if found.needs:
        claims = pool.reserve(tx, boot, claims, found)
        pool.let_back_in(tx, (gate for _, gate in verdict.aside))
    return claims, bool(verdict.aside)


def _asking(
    boot: str,
    spots: Sequence[Spot],
    knows: Sequence[str],
    *,
    slots: int,
    suspects: int,
    pauses: str,
) -> dict[str, Any]:
    queues = [
        {"queue": spot.queue, "priority": p, "turn": t, "id": i}
        | ({"holding": list(spot.holding)} if spot.holding else {})
        for spot in spots
        for p, t, i in [spot.after]
    ]
    return {
        "boot": boot,
        "queues": json.dumps(queues),
        "knows": json.dumps(list(knows)),
        "slots": slots,
        "suspects": suspects,
        "pauses": pauses,
    }


def _found(rows: list[Row], next_due: float | None = None) -> Found:
    met = rows.pop() if rows and rows[-1][0] is None else None
    gated, unheard = met is not None and met[1] is None, met is not None and met[1] is not None
    claims = [Claim(*row) for row in rows]
    return Found(claims, next_due, gated=gated, more=gated, unheard=unheard)


def promote_jobs(tx: Transaction, queues: Sequence[str], slots: int) -> None:
    """Put the first due jobs of each queue in line."""
    tx.run(SQL.promote_jobs, queues=_named(queues), slots=slots)


def waiting_queues(
    tx: Transaction, queues: Sequence[str], knows: Sequence[str], suspects: int
) -> list[Waiting]:
    """Those of the queues that have waiting jobs of these kinds, and the first job of each."""
    asked = {"queues": json.dumps(list(queues)), "knows": json.dumps(list(knows))}
    return tx.all(SQL.waiting_queues, into=Waiting, **asked, suspects=suspects)


def next_due(tx: Transaction, queues: Sequence[str]) -> float | None:
    """Seconds until something scheduled wants its turn."""
    [due] = tx.finish(Call(SQL.next_due, {"queues": _named(queues)}))
    return _seconds_until(due)


def _named(queues: Sequence[str]) -> str:
    return json.dumps([{"queue": queue} for queue in queues])


def recall_jobs(tx: Transaction, boot: str) -> list[Claim]:
    """What this boot holds by the database: a claim whose answer was lost is found here."""
    claims = tx.all(SQL.recall_jobs, into=Claim, boot=boot)
    things = pool.held_things(tx, [claim.held for claim in claims]) if claims else {}
    return [claim._replace(things=tuple(things.get(claim.job, ()))) for claim in claims]


def load_steps(
    tx: Transaction, claims: Sequence[Claim], inline: int = INLINE
) -> dict[int, Memory]:
    """What each of these jobs may read back, in one question.

    A value stays in the database, for `load_values`, where all values of its job could be more than
    `inline` bytes if each were as large: its job has at least one event for each step.
    """
    wanted = json.dumps([{"job": c.job, "fresh_from": c.fresh_from} for c in claims])
    found: dict[int, Memory] = {}
    for row in tx.all(SQL.load_steps, rows=wanted, inline=inline):
        job, name, version, key, state, value, unread, age, quiet, canceling, *told, spared = (
            row
        )
        memory = found.setdefault(job, Memory([], quiet, bool(canceling), *told))
        step = StepId(name, version, key)
        memory.steps.append(SavedStep(step, StepState(state), value, age, spared, unread or 0))
    return found


def load_values(tx: Transaction, claim: Claim, steps: Iterable[StepId]) -> dict[StepId, str]:
    """The values of these saved steps of a job; of those that are still there."""
    wanted = json.dumps([step._asdict() for step in steps])
    rows = tx.all(SQL.load_values, rows=wanted, job=claim.job, fresh_from=claim.fresh_from)
    return {StepId(*step): value for *step, value in rows}


def cancels(tx: Transaction, boot: str) -> list[Held]:
    """Jobs of this runner that somebody wants canceled."""
    return tx.all(SQL.cancels, into=Held, boot=boot)


def any_open(tx: Transaction, queues: Sequence[str], knows: Sequence[str]) -> bool:
    """Whether anything in these queues waits or runs that one who knows these kinds could do."""
    known = json.dumps(list(knows))
    return tx.one(SQL.any_open, queues=json.dumps(list(queues)), knows=known) is not None


def _seconds_until(due: list[Row]) -> float | None:
    [(at, now), *_] = due
    return seconds_until(at, now)


def traceparents(tx: Transaction, jobs: Sequence[int]) -> dict[int, str]:
    """Under which spans these were submitted, as far as anybody said."""
    return dict(tx.all(SQL.traceparents, ids=json.dumps(list(jobs))))
