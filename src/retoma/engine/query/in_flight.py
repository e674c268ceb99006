"""What has not ended, as it is stored: for whoever wants to know whether new code can read it."""

from dataclasses import dataclass

from retoma.db import Transaction
from retoma.engine.query.page import SQL

PAGE = 500  # jobs; each may bring megabytes


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that would be read back."""

    job: int
    name: str
    version: int
    value: str


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that has not ended."""

    id: int
    kind: str
    version: int
    payload: str


def open_jobs(tx: Transaction, after: int) -> tuple[list[OpenJob], list[OpenStep]]:
    """A page of them, and what they have saved."""
    jobs = tx.all(SQL.open_jobs, into=OpenJob, after=after, limit=PAGE)
    if not jobs:
        return [], []
    steps = tx.all(SQL.open_steps, after=after, until=jobs[-1].id)
    return jobs, [
        OpenStep(job, name, version, "null" if value is None else value)
        for job, name, version, value in steps
    ]
