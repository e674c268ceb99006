"""What somebody wants to submit, checked before any database is asked."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypedDict, TypeVar, cast

from retoma.codec import digest
from retoma.db import Transaction
from retoma.engine import store
from retoma.engine.handlers.kinds import PRIORITIES, Kind
from retoma.engine.ports import Clock
from retoma.engine.rules.duration import instant, seconds, shown
from retoma.engine.rules.errors import BadInput, IdempotencyMismatch
from retoma.engine.rules.money import Money, money
from retoma.engine.rules.period import Per
from retoma.engine.store import NewJob, Submission
from retoma.engine.store.budget import Budget
from retoma.engine.store.cost import Scope
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


class SubmitOptions(TypedDict, total=False):
    """How jobs are submitted; every option may be left out.

    `key`: the same key and payload give the same job. `priority`: -1000 to 1000, else the kind's.
    `run_at`, `delay`: when it may start, as an instant or as a length of time from now. `deadline`: a
    length of time from now, waits and all attempts included; a job that has not ended by then fails
    permanently. `correlation`: the name of the request that it belongs to. `traceparent`: the span it
    belongs to, kept with it. `actor`: who submits, for the timeline.
    """

    key: str | None
    priority: int | None
    run_at: datetime | None
    delay: Any
    deadline: Any
    correlation: str | None
    traceparent: str | None
    actor: str


class BatchOptions(SubmitOptions, total=False):
    """How a batch is submitted: as its jobs, and besides.

    `key`: of the batch; the same key finds it again. `keys`: one key for each job. `name`: of the
    batch. `budget`: what its jobs may spend together, such as "25 USD".
    """

    name: str | None
    keys: Sequence[str] | None
    budget: str | None


KNOWN_OPTIONS = frozenset(BatchOptions.__annotations__)


def submission(kind: Kind, options: SubmitOptions) -> Submission:
    """What the jobs of one submission have in common."""
    if not options.keys() <= KNOWN_OPTIONS:
        raise TypeError(
            f"no such submit option: {', '.join(sorted(options.keys() - KNOWN_OPTIONS))}"
        )
    priority = options.get("priority")
    if priority is not None and priority not in PRIORITIES:
        raise BadInput(
            say("a priority is from -1000 to 1000, not {priority!r}", priority=priority)
        )
    delay = options.get("delay")
    starts = _starting(options.get("run_at"), delay)
    wait, lasts = _lengths(delay, options.get("deadline"))
    return Submission(
        kind=kind.name,
        version=kind.version,
        queue=kind.queue,
        priority=kind.priority if priority is None else priority,
        run_at=starts,
        delay=wait,
        lasts=lasts,
        correlation=checked("correlation", options.get("correlation")),
        traceparent=_checked_trace(options.get("traceparent")),
        actor=checked("actor", options.get("actor")) or ACTOR,
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


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch that is checked, and not submitted yet."""

    kind: Kind
    about: Submission
    name: str
    key: str
    payloads: Sequence[Any]
    jobs: list[NewJob] | None  # where each has a key
    budget: Money | None

    def submit(self, tx: Transaction) -> Submitted:
        """Submit all of it or nothing; the batch's key finds it if it is submitted again."""
        batch, opened = store.open_batch(tx, name=self.name, key=self.key, kind=self.kind.name)
        if not opened:
            return Submitted(batch, self.name, self.kind.name, 0, len(self.payloads))
        if self.budget is not None:
            store.budget.put_budget(tx, of_batch(batch, self.budget), NO_ZONE, actor=ACTOR)
        new, already = self._submit_jobs(tx, store.in_batch(self.about, batch))
        return Submitted(batch, self.name, self.kind.name, new, already)

    def _submit_jobs(self, tx: Transaction, about: Submission) -> tuple[int, int]:
        if self.jobs is not None:
            return store.submit_keyed_jobs(tx, about, self.jobs)
        if self.kind.at_once:
            limited = [new_job(self.kind, payload, None) for payload in self.payloads]
            return store.submit_limited_jobs(tx, about, limited), 0
        texts = (_encoded(self.kind, payload) for payload in self.payloads)
        return store.submit_jobs(tx, about, texts), 0


def new_batch(
    kind: Kind,
    payloads: Iterable[Any],
    about: Submission,
    *,
    key: str,
    options: BatchOptions,
) -> NewBatch:
    """A batch of these payloads. `key`: the batch's own, which `options` may leave out."""
    if isinstance(payloads, str | bytes | Mapping):
        raise BadInput(
            say(
                "{name}: the payloads of many jobs are a list with one for each, not {payloads!r}",
                name=kind.name,
                payloads=payloads if len(payloads) < SHOWN else type(payloads),
            )
        )
    listed = payloads if isinstance(payloads, Sequence) else list(payloads)
    keys = options.get("keys")
    return NewBatch(
        kind,
        about,
        batch_name(kind, options.get("name"), key),
        key,
        listed,
        None if keys is None else _new_jobs(kind, listed, keys),
        budget_of(options),
    )


def budget_of(options: BatchOptions) -> Money | None:
    """What the jobs of a batch may spend together; None: what they like."""
    text = options.get("budget")
    return None if text is None else money(say("a budget"), text)


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
