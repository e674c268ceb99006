"""retoma takes it up again: batches of slow, flaky, expensive work that always end.

app = Retoma("sqlite:///work.db")

@app.job(retry=Retry(attempts=3))
async def quote(ctx: Context, request: dict) -> dict: ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retoma.engine.batch import Batch
    from retoma.engine.context import Context
    from retoma.engine.errors import (
        BadInput,
        IdempotencyMismatch,
        IllegalMove,
        LeaseLost,
        NotFound,
        Permanent,
        Transient,
        Unsure,
    )
    from retoma.engine.gate import Limit
    from retoma.engine.job import Job
    from retoma.engine.outcome import Happened, Park, Skip, Snooze
    from retoma.engine.remote import Edge, Remote, Status
    from retoma.engine.retry import Retry
    from retoma.engine.states import State
    from retoma.engine.transaction import Transaction
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
    "BadInput": "retoma.engine.errors",
    "Batch": "retoma.engine.batch",
    "Context": "retoma.engine.context",
    "Edge": "retoma.engine.remote",
    "Happened": "retoma.engine.outcome",
    "IdempotencyMismatch": "retoma.engine.errors",
    "IllegalMove": "retoma.engine.errors",
    "Job": "retoma.engine.job",
    "LeaseLost": "retoma.engine.errors",
    "Limit": "retoma.engine.gate",
    "NotFound": "retoma.engine.errors",
    "Park": "retoma.engine.outcome",
    "Permanent": "retoma.engine.errors",
    "Remote": "retoma.engine.remote",
    "Retoma": "retoma.library",
    "Retry": "retoma.engine.retry",
    "Skip": "retoma.engine.outcome",
    "Snooze": "retoma.engine.outcome",
    "State": "retoma.engine.states",
    "Status": "retoma.engine.remote",
    "Transaction": "retoma.engine.transaction",
    "Transient": "retoma.engine.errors",
    "Unsure": "retoma.engine.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
