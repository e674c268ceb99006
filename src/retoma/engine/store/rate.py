"""Token buckets shared by all runners; each reserves a handful at a time."""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.errors import BadInput, NotFound
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import verb
from retoma.words import say

COUNT_TOKENS = verb("count_tokens")
LIST_RATES = verb("list_rates")
PUT_RATE = verb("put_rate")
SPEND_TOKENS = verb("spend_tokens")
AHEAD = 0.1  # seconds' worth that one runner reserves at once, and for as long
SHARE = 0.25  # of the burst that is reserved at most


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens handed to a runner, and how long until there are more."""

    tokens: int
    wait: float  # seconds
    fresh: float  # seconds in which they may be used


@dataclass(frozen=True, slots=True)
class RateSeen:
    """One rate as it stands."""

    key: str
    per_second: float
    burst: float
    tokens: float


def put_rate(tx: Transaction, key: str, rate: float, burst: float, *, actor: str) -> None:
    tx.run(PUT_RATE, key=key, rate=rate, burst=burst)
    tell(tx, actor=actor, verb="rate.set", subject=f"{key}: {rate:g}/s, burst {burst:g}")


def reserve(tx: Transaction, key: str, wanted: int, others: int = 0) -> Grant:
    """Tokens for one who waits, and for others who do: fewer where there are fewer.

    Some more for what follows where the bucket is more than half full. What may be reserved and not
    yet used does not fit into the bucket besides: together they are never more than the burst.
    """
    row = tx.one(COUNT_TOKENS, key=key)
    if row is None:
        raise NotFound(say("no rate is called {key!r}", key=key))
    saved, rate, burst, counted = row
    if wanted > burst:
        raise BadInput(
            say(
                "{key}: {n} at once is more than its burst of {burst:g}: it would wait for ever",
                key=key,
                n=wanted,
                burst=burst,
            )
        )
    ahead = min(rate * AHEAD, burst * SHARE)
    most = max(burst - ahead, wanted)
    have = min(saved, most)
    more = min(max(others, have - wanted - most / 2), ahead)
    granted = min(int(have), wanted + max(int(more), 0))
    tx.run(SPEND_TOKENS, key=key, left=have - granted, counted=counted)
    return Grant(granted, max(wanted - have, 0.0) / rate, ahead / rate)


def list_rates(tx: Transaction) -> list[RateSeen]:
    return [RateSeen(*row) for row in tx.all(LIST_RATES)]
