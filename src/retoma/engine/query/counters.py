"""How many are where: folded counts and fresh tallies together, exact at every instant."""

from retoma.db import Transaction
from retoma.engine.query.page import SQL
from retoma.engine.rules.states import State

STATES = frozenset(State)  # `refused` is tallied too, and is none


def count_jobs(tx: Transaction, batch: int | None = None) -> dict[State, int]:
    """How many are in each state, exact at this instant."""
    counted = _counted(tx, batch)
    return {state: counted[state] for state in State if counted.get(state)}


def count_kinds(tx: Transaction, batch: int | None = None) -> dict[str, dict[State, int]]:
    """The same for each kind, the kinds by their names."""
    kinds: dict[str, dict[State, int]] = {}
    for kind, state, n in tx.all(SQL.count_kinds, batch=batch):
        if state in STATES:
            kinds.setdefault(kind, {})[State(state)] = int(n)
    order = list(State)
    return {
        kind: dict(sorted(states.items(), key=lambda each: order.index(each[0])))
        for kind, states in sorted(kinds.items())
    }


def count_codes(tx: Transaction, batch: int | None = None) -> dict[str, int]:
    """How many are dead by which code, the most first."""
    return {code: int(n) for code, n in tx.all(SQL.count_codes, batch=batch)}


def refused_writes(tx: Transaction) -> int:
    """Late writes that changed nothing, ever."""
    return _counted(tx, None).get("refused", 0)


def _counted(tx: Transaction, batch: int | None) -> dict[str, int]:
    return {state: int(n) for state, n in tx.all(SQL.count_jobs, batch=batch)}
