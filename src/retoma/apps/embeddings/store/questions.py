"""Vectors of questions: kept for a week beside those of chunks, each once for its content."""

from datetime import timedelta
from typing import Final

from retoma import db
from retoma.apps.embeddings.model import Asked, Model
from retoma.apps.embeddings.store.rows import SQL
from retoma.engine.run.transaction import Transaction

KEPT: Final = timedelta(days=7)


def get(tx: db.Transaction, hash_: str) -> bytes | None:
    """The vector of a text, whoever it was made for."""
    return tx.one(SQL.get_vector, into=bytes, hash=hash_)


def keep(tx: Transaction, asked: Asked, model: Model, vector: bytes, job: int) -> None:
    tx.run(
        SQL.keep_question,
        hash=asked.hash,
        vector=vector,
        job=job,
        model=model.name,
        version=model.version,
        dims=model.dims,
        kept=KEPT.total_seconds(),
    )
