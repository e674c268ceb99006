"""What somebody wants to submit, checked before any database is asked."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar, cast

from retoma.codec import digest
from retoma.db import Transaction
from retoma.engine import store
from retoma.engine.handlers.kinds import PRIORITIES, Kind
from retoma.engine.ports import Clock
from retoma.engine.rules.duration import instant, seconds, shown
from retoma.engine.rules.errors import BadInput, IdempotencyMismatch
from retoma.engine.rules.money import Money
from retoma.engine.rules.period import Per
from retoma.engine.store import NewJob, Submission
from retoma.engine.store.budget import Budget
from retoma.engine.store.cost import Scope
from retoma.engine.traces import Submitting, Traces, submitting
from retoma.words import say

T = TypeVar("T")

KEY_LENGTH = 500
# Version, trace, span and flags; a trace or a span of nothing but zeros is none.
TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
NAME_LENGTH = 200
SHOWN = 100  # characters, or entries, of what is shown in a refusal
ACTOR = "library"
NO_ZONE = "UTC"  # the budget of a batch has no days


def submission(
    kind: Kind,
    *,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: Any = None,
    deadline: Any = None,
    correlation: str | None = None,
    traceparent: str | None = None,
    actor: str = ACTOR,
) -> Submission:
    """What the jobs of one submission have in common."""
    if priority is not None and priority not in PRIORITIES:
        raise BadInput(
            say("a priority is from -1000 to 1000, not {priority!r}", priority=priority)
        )
    starts = _starting(run_at, delay)
    wait, lasts = _lengths(delay, deadline)
    return Submission(
        kind=kind.name,
        version=kind.version,
        queue=kind.queue,
        priority=kind.priority if priority is None else priority,
        run_at=starts,
        delay=wait,
        lasts=lasts,
        correlation=checked("correlation", correlation),
        traceparent=_checked_trace(traceparent),
        actor=checked("actor", actor) or ACTOR,
    )


def new_job(kind: Kind, payload: Any, key: str | None) -> NewJob:
    text = _encoded(kind, payload)
    limits = kind.keys_on(text)
    if checked("key", key) is None:
        return NewJob(text, limits=limits)
    return NewJob(text, key, digest(text), limits)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a batch: its jobs that are new, and those that were there already."""

    batch: int
    name: str
    kind: str
    new: int
    already: int


def new_batch(
    kind: Kind,
    payloads: Iterable[Any],
    about: Submission,
    *,
    name: str | None,
    key: str,
    keys: Sequence[str] | None,
    budget: Money | None = None,
) -> Callable[[Transaction], Submitted]:
    """A function that submits all of it or nothing; the batch's key finds it if asked again."""
    if isinstance(payloads, str | bytes | Mapping):
        raise BadInput(
            say(
                "{name}: the payloads of many jobs are a list with one for each, not {payloads!r}",
                name=kind.name,
                payloads=payloads if len(payloads) < SHOWN else type(payloads),
            )
        )
    listed = payloads if isinstance(payloads, Sequence) else list(payloads)
    jobs = None if keys is None else _new_jobs(kind, listed, keys)
    called = batch_name(kind, name, key)

    def submit(tx: Transaction) -> Submitted:
        batch, opened = store.open_batch(tx, name=called, key=key, kind=kind.name)
        if not opened:
            return Submitted(batch, called, kind.name, 0, len(listed))
        if budget is not None:
            store.budget.put_budget(tx, of_batch(batch, budget), NO_ZONE, actor=ACTOR)
        inside = store.in_batch(about, batch)
        if jobs is None and kind.at_once:
            limited = [new_job(kind, payload, None) for payload in listed]
            new = store.submit_limited_jobs(tx, inside, limited)
            return Submitted(batch, called, kind.name, new, 0)
        if jobs is None:
            texts = (_encoded(kind, payload) for payload in listed)
            return Submitted(batch, called, kind.name, store.submit_jobs(tx, inside, texts), 0)
        return Submitted(batch, called, kind.name, *store.submit_keyed_jobs(tx, inside, jobs))

    return submit


def head(items: Iterable[T], most: int) -> tuple[Iterable[T], Iterator[T] | None]:
    """The items, if they are at most so many or no list at all; else the first of them, and the rest."""
    few = isinstance(items, Sequence) and len(items) <= most
    if few or isinstance(items, str | bytes | Mapping):
        return items, None
    rest = iter(items)
    first = list(islice(rest, most + 1))
    return first, rest if len(first) > most else None


def jobs_of(
    kind: Kind, payloads: Iterable[Any], keys: Sequence[str] | None
) -> Iterator[NewJob]:
    """The jobs of a large submission, each made when it is its turn."""
    if keys is None:
        yield from (new_job(kind, payload, None) for payload in payloads)
        return
    left = iter(keys)
    sent = 0
    for payload in payloads:
        key = next(left, None)
        if key is None:
            raise _not_one_key_each(f"more than {sent}", len(keys))
        yield new_job(kind, payload, key)
        sent += 1
    if sent < len(keys):
        raise _not_one_key_each(sent, len(keys))


def batch_name(kind: Kind, name: str | None, key: str) -> str:
    return checked("batch name", name, NAME_LENGTH) or f"{kind.name} {key[:8]}"


def of_batch(batch: int, money: Money) -> Budget:
    """What all jobs of a batch may spend together."""
    return Budget(scope=Scope.BATCH, name=str(batch), per=Per.WHOLE, money=money)


def checked(what: str, text: str | None, most: int = KEY_LENGTH) -> str | None:
    """A name somebody gave, or None."""
    if text is None:
        return None
    given = cast("object", text)
    if not isinstance(given, str) or not 0 < len(given) <= most or not given.isprintable():
        raise BadInput(
            say(
                "a {what} has 1 to {most} printable characters: {text!r}",
                what=what,
                most=most,
                text=text,
            )
        )
    return text


def _starting(run_at: datetime | None, delay: Any) -> datetime | None:
    """When they may start; refuses what could be any instant."""
    if run_at is None:
        return None
    if delay is not None:
        raise BadInput(say("run_at and delay say the same thing twice: give one of them"))
    if not isinstance(run_at, datetime):
        raise BadInput(
            say("run_at is a datetime with a time zone, not {run_at}", run_at=shown(run_at))
        )
    if run_at.tzinfo is None:
        raise BadInput(
            say(
                "run_at needs a time zone: {run_at} could be any instant",
                run_at=run_at.isoformat(),
            )
        )
    return instant(run_at, now=Clock().wall())  # this host's clock: good enough for a century


def _checked_trace(text: str | None) -> str | None:
    given = cast("object", text)
    if given is None or (isinstance(given, str) and TRACEPARENT.fullmatch(given)):
        return text
    raise BadInput(
        say("a traceparent is as W3C Trace Context has it, not {text!r}", text=given)
    )


def _lengths(delay: Any, deadline: Any) -> tuple[float | None, float | None]:
    """Seconds to wait, and seconds in which it has to end."""
    wait = None if delay is None else seconds(delay)
    lasts = None if deadline is None else _lasting(deadline)
    if wait is not None and lasts is not None and wait >= lasts:
        raise BadInput(
            say(
                "a delay of {wait:g} s leaves nothing of a deadline of {lasts:g} s",
                wait=wait,
                lasts=lasts,
            )
        )
    return wait, lasts


def _lasting(deadline: Any) -> float:
    length = seconds(deadline)
    if not length:
        raise BadInput(say("a deadline of no length leaves no time to run at all"))
    return length


def _encoded(kind: Kind, payload: Any) -> str:
    if kind.takes_nothing and payload is not None:
        raise BadInput(say("{name} takes no payload", name=kind.name))
    return kind.encoded(payload)


def _new_jobs(kind: Kind, payloads: Sequence[Any], keys: Sequence[str]) -> list[NewJob]:
    if len(keys) != len(payloads):
        raise _not_one_key_each(len(payloads), len(keys))
    by_key: dict[str, NewJob] = {}
    for payload, key in zip(payloads, keys, strict=True):
        new = new_job(kind, payload, key)
        before = by_key.setdefault(key, new)
        if before.hash != new.hash:
            raise IdempotencyMismatch(
                say(
                    "{name}: the key {key} stands for two payloads in this submission;"
                    " nothing was submitted",
                    name=kind.name,
                    key=key,
                )
            )
    return list(by_key.values())


def _not_one_key_each(payloads: object, keys: int) -> BadInput:
    return BadInput(
        say(
            "{payloads} payloads and {keys} keys: one key for each",
            payloads=payloads,
            keys=keys,
        )
    )


def spans(traces: Traces | None) -> Submitting:
    """Of submissions, below what is open here; where they go nowhere, nothing is asked for them."""
    return _untraced if traces is None else submitting(traces, traces.here())


def _untraced(_: str, traceparent: str | None) -> AbstractContextManager[str | None]:
    return nullcontext(traceparent)
