"""What a job shows."""

from dataclasses import dataclass
from datetime import datetime

from retoma.db import Transaction
from retoma.engine.query.page import SQL
from retoma.engine.store import get_job


@dataclass(frozen=True, slots=True)
class EvidenceSeen:
    """One piece of it, without its bytes."""

    name: str
    media: str
    epoch: int
    sha256: str
    size: int
    cut_from: int | None  # how many bytes it had, where not all are kept
    at: datetime


def job_evidence(tx: Transaction, job: int) -> list[EvidenceSeen]:
    """The oldest first."""
    get_job(tx, job)  # says so where there is none
    return tx.all(SQL.job_evidence, into=EvidenceSeen, job=job)
