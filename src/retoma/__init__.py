"""retoma takes it up again: batches of slow, flaky, expensive work that always end.

app = Retoma("sqlite:///work.db")

@app.job(retry=Retry(attempts=3))
async def quote(ctx: Context, request: dict) -> dict: ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retoma.engine.handlers.context import Context
    from retoma.engine.handlers.remote import Edge, Remote, Status
    from retoma.engine.ops.batches import Batch
    from retoma.engine.rules.errors import (
        BadInput,
        IdempotencyMismatch,
        IllegalMove,
        LeaseLost,
        NotFound,
        Permanent,
        Transient,
        Unsure,
    )
    from retoma.engine.rules.gates import Limit
    from retoma.engine.rules.job import Job
    from retoma.engine.rules.outcome import Happened, Park, Skip, Snooze
    from retoma.engine.rules.retry import Retry
    from retoma.engine.rules.states import State
    from retoma.engine.run.transaction import Transaction
    from retoma.library import Retoma

__all__ = [
    "BadInput",
    "Batch",
    "Context",
    "Edge",
    "Happened",
    "IdempotencyMismatch",
    "IllegalMove",
    "Job",
    "LeaseLost",
    "Limit",
    "NotFound",
    "Park",
    "Permanent",
    "Remote",
    "Retoma",
    "Retry",
    "Skip",
    "Snooze",
    "State",
    "Status",
    "Transaction",
    "Transient",
    "Unsure",
]

# Read when first asked for: `retoma --help` must not pay for the engine.
_HOMES = {
    "BadInput": "retoma.engine.rules.errors",
    "Batch": "retoma.engine.ops.batches",
    "Context": "retoma.engine.handlers.context",
    "Edge": "retoma.engine.handlers.remote",
    "Happened": "retoma.engine.rules.outcome",
    "IdempotencyMismatch": "retoma.engine.rules.errors",
    "IllegalMove": "retoma.engine.rules.errors",
    "Job": "retoma.engine.rules.job",
    "LeaseLost": "retoma.engine.rules.errors",
    "Limit": "retoma.engine.rules.gates",
    "NotFound": "retoma.engine.rules.errors",
    "Park": "retoma.engine.rules.outcome",
    "Permanent": "retoma.engine.rules.errors",
    "Remote": "retoma.engine.handlers.remote",
    "Retoma": "retoma.library",
    "Retry": "retoma.engine.rules.retry",
    "Skip": "retoma.engine.rules.outcome",
    "Snooze": "retoma.engine.rules.outcome",
    "State": "retoma.engine.rules.states",
    "Status": "retoma.engine.handlers.remote",
    "Transaction": "retoma.engine.run.transaction",
    "Transient": "retoma.engine.rules.errors",
    "Unsure": "retoma.engine.rules.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
