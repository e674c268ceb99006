"""Gates: what may hold a due job back, and which of those a claim meets may run. Pure.

A limit lets so many jobs of one key run at once, a pool as many as it has things for; a paused batch
lets none. A claim sets aside what a
shut gate holds, under the gate's name, and whoever opens the gate puts it back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from retoma.engine.rules.errors import BadInput
from retoma.words import say

CAPS = range(1, 1_000_001)
KEY_LENGTH = 200
KIND = "kind"  # what the keys of kinds' own limits begin with
POOL = "pool:"  # what the gates of pools begin with
BETWEEN = "\n"  # the keys of one job in one column; a key is printable


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `cap` jobs at once, over all runners: of the whole kind, or for each key.

    `per="site"` counts each value of the payload's `site` apart, together with every kind that has
    a limit per site; `key=` takes a function that makes the value of the payload (None: no limit).
    """

    cap: int
    per: str | None = None
    key: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        check_cap(self.cap)
        if self.per is not None:
            check_key(self.per)
        if self.per == KIND:
            raise BadInput(
                say("a limit per 'kind' would be taken for a kind's own: call it otherwise")
            )

    def prefix(self, kind: str) -> str | None:
        """What its keys begin with; None: it is the kind's own, and has one key."""
        if self.per is None and self.key is None:
            return None
        return f"{self.per or kind}:"

    def key_of(self, kind: str, payload: Any) -> str | None:
        """The key under which a job with this payload is counted."""
        prefix = self.prefix(kind)
        if prefix is None:
            return own_key(kind)
        value = self._value(kind, payload)
        if value is None:
            return None
        if not isinstance(value, str | int):
            raise BadInput(
                say("{kind}: the key of a limit is text, not {value!r}", kind=kind, value=value)
            )
        return check_key(f"{prefix}{value}")

    def _value(self, kind: str, payload: Any) -> object:
        try:
            if self.key is not None:
                return self.key(payload)
            if isinstance(payload, Mapping):
                return payload[self.per]
            return getattr(payload, str(self.per))
        except Exception as error:
            raise BadInput(
                say(
                    "{kind}: the key of its limit cannot be told from the payload: {name}: {error}",
                    kind=kind,
                    name=type(error).__name__,
                    error=str(error),
                )
            ) from error


def limits_of(kind: str, limit: Any) -> tuple[Limit, ...]:
    """What `limit=` of a job means."""
    if limit is None:
        return ()
    listed = limit if isinstance(limit, list | tuple) else [limit]
    limits = tuple(each if isinstance(each, Limit) else Limit(each) for each in listed)
    if len({each.prefix(kind) for each in limits}) < len(limits):
        raise BadInput(say("{kind}: two limits of the same sort, give one of them", kind=kind))
    return limits


def own_key(kind: str) -> str:
    return f"{KIND}:{kind}"


def check_cap(cap: object) -> int:
    if not isinstance(cap, int) or isinstance(cap, bool) or cap not in CAPS:
        raise BadInput(
            say(
                "a limit lets 1 to {most} jobs run at once, not {cap!r}", most=CAPS[-1], cap=cap
            )
        )
    return cap


def check_key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= KEY_LENGTH or not key.isprintable():
        raise BadInput(
            say(
                "the key of a limit has 1 to {most} printable characters: {key!r}",
                most=KEY_LENGTH,
                key=key,
            )
        )
    return key


def joined(keys: Iterable[str]) -> str | None:
    """The keys of one job as they are stored."""
    return BETWEEN.join(keys) or None


def parted(limit_key: str | None) -> tuple[str, ...]:
    return tuple(limit_key.split(BETWEEN)) if limit_key else ()


def limit_gate(key: str) -> str:
    return f"limit:{key}"


def pool_gate(pool: str) -> str:
    return f"{POOL}{pool}"


def batch_gate(batch: int) -> str:
    return f"batch:{batch}"


class Met(NamedTuple):
    """A waiting job that a claim has met. The order is that of meet_jobs.sql."""

    job: int
    suspect: bool
    batch: int | None
    limit_key: str | None
    tag: str = ""  # its kind and version, as a claim asks for them
    again: bool = False  # it was claimed before


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the met: those that may run, and those to set aside, each with its gate."""

    run: list[int] = field(default_factory=list)
    aside: list[tuple[int, str]] = field(default_factory=list)


def admit(
    met: Iterable[Met],
    *,
    room: Mapping[str, int],
    paused: frozenset[int],
    slots: int,
    suspects: int,
    needs: Mapping[int, Sequence[str]] = MappingProxyType({}),
    things: Mapping[str, int] = MappingProxyType({}),
) -> Verdict:
    """In the order they stand: what no gate holds runs while there are slots, the rest stays.

    `room` is that of limits, by their keys; `needs` are the pools of which a job needs a thing, by
    its id, `things` how many each of those has.
    """
    verdict = Verdict()
    left = {limit_gate(key): n for key, n in room.items()}
    left |= {pool_gate(pool): n for pool, n in things.items()}
    for each in met:
        gates = [limit_gate(key) for key in parted(each.limit_key)]
        gates += [pool_gate(pool) for pool in needs.get(each.job, ())]
        gate = _shut(each, gates, left, paused)
        if gate is not None:
            verdict.aside.append((each.job, gate))
        elif suspects if each.suspect else slots:
            verdict.run.append(each.job)
            suspects -= each.suspect
            slots -= not each.suspect
            left.update({gate: left[gate] - 1 for gate in gates if gate in left})
    return verdict


def _shut(
    met: Met, gates: Sequence[str], left: Mapping[str, int], paused: frozenset[int]
) -> str | None:
    """The first gate that holds it."""
    if met.batch in paused:
        return batch_gate(met.batch)
    return next((gate for gate in gates if left.get(gate, 1) <= 0), None)
