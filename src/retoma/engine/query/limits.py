"""Limits: how many may run under each key, and how many do."""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.query.page import SQL, checked


@dataclass(frozen=True, slots=True)
class LimitSeen:
    """One key. What is used may be more than the cap for a while after the cap was lowered."""

    key: str
    cap: int
    used: int
    by_hand: bool  # a person set the cap, over what the code says


def list_limits(tx: Transaction, *, after: str = "", limit: int = 50) -> list[LimitSeen]:
    """By their keys, a page at a time."""
    return tx.all(SQL.list_limits, into=LimitSeen, after=after, limit=checked(limit, "limits"))
