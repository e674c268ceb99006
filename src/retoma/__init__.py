"""retoma takes it up again: batches of slow, flaky, expensive work that always end.

app = Retoma("sqlite:///work.db")

@app.job(retry=Retry(attempts=3))
async def quote(ctx: Context, request: dict) -> dict: ...
"""

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
from retoma.engine.job import Job
from retoma.engine.outcome import Park, Skip, Snooze
from retoma.engine.retry import Retry
from retoma.engine.states import State
from retoma.library import Retoma

__all__ = [
    "BadInput",
    "Batch",
    "Context",
    "IdempotencyMismatch",
    "IllegalMove",
    "Job",
    "LeaseLost",
    "NotFound",
    "Park",
    "Permanent",
    "Retoma",
    "Retry",
    "Skip",
    "Snooze",
    "State",
    "Transient",
    "Unsure",
]
