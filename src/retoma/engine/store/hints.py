"""Hints: which ready jobs somebody must be told of, where a dispatcher wakes whoever runs them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retoma.db import Transaction
from retoma.engine.store.verb import SQL


class Hint(NamedTuple):
    """That a job may be ready. All a dispatcher ever carries."""

    queue: str
    job: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """When a job that waits is hinted once more, and how many at a time."""

    after: float  # seconds since it was hinted last
    young: float  # seconds since its submission, which has hinted it
    most: int
    repeat: bool = True  # else only whom nobody has hinted in this wait


def hint_jobs(
    tx: Transaction, queues: Sequence[str], knows: Sequence[str], how: Again
) -> list[Hint]:
    """What is ready and was not hinted for a while; what has become due stands in line now.

    Noted as hinted by this: whoever asks next is told of others.
    """
    named = json.dumps([{"queue": queue} for queue in queues])
    tx.run(SQL.promote_jobs, queues=named, slots=how.most)
    asked = {"again": how.after, "young": how.young, "repeat": int(how.repeat)}
    known = json.dumps(list(knows))
    return tx.all(SQL.hint_jobs, into=Hint, queues=named, knows=known, most=how.most, **asked)


def ready_in_batch(tx: Transaction, batch: int, most: int) -> list[Hint]:
    """The first of a batch that may be claimed now."""
    return tx.all(SQL.ready_in_batch, into=Hint, batch=batch, most=most)


def is_ready(tx: Transaction, hint: Hint) -> bool | None:
    """Whether it stands in line; None where there is no such job in that queue."""
    return tx.one(SQL.look_at_job, into=bool, job=hint.job, queue=hint.queue)
