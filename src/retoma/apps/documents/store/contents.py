"""What documents say, in pieces, kept once by its digest."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from retoma import db
from retoma.apps.documents.store.rows import SQL
from retoma.db import Call, Row
from retoma.engine.run.transaction import Transaction

GRACE: Final = 24 * 3600.0  # seconds that bytes which no document names are left alone
BITE: Final = 100


def begin(tx: Transaction, sha256: str, size: int) -> bool:
    """Whether all of it is there already."""
    [whole] = tx.all(SQL.begin_content, into=bool, sha256=sha256, size=size)
    return whole


def keep(tx: Transaction, sha256: str, first: int, pieces: Sequence[bytes]) -> None:
    for n, piece in enumerate(pieces, start=first):
        tx.run(SQL.keep_piece, sha256=sha256, n=n, bytes=piece)


def end(tx: Transaction, sha256: str) -> bool:
    """Whether all of it is there now."""
    return tx.one(SQL.end_content, sha256=sha256) is not None


def begun(tx: db.Transaction, wanted: Sequence[str]) -> list[tuple[int | None, bytes | None]]:
    """Of each, how many bytes it has, and the first of them; None: it is not there, or not all of it."""
    calls = [Call(SQL.get_content, {"sha256": sha256}) for sha256 in wanted]
    return [_begun(rows) for rows in tx.together(calls)]


def _begun(rows: Sequence[Row]) -> tuple[int | None, bytes | None]:
    if not rows:
        return None, None
    size, piece = rows[0]
    return int(size), None if piece is None else bytes(piece)


def piece_of(tx: db.Transaction, sha256: str, n: int) -> bytes | None:
    return tx.one(SQL.get_piece, into=bytes, sha256=sha256, n=n)


def want(tx: Transaction, wanted: Iterable[str]) -> set[str]:
    """Of these, those that are there; they stay until documents name them. For whoever adds such
    documents, in the same transaction."""
    return {*tx.all(SQL.want_contents, into=str, wanted=json.dumps(sorted(set(wanted))))}


def drop_unneeded(tx: Transaction) -> int:
    """Of those that no document names, the next few; how many that was."""
    dropped = tx.all(SQL.drop_contents, into=str, grace=-GRACE, bite=BITE)
    if dropped:
        tx.run(SQL.drop_pieces, dropped=json.dumps(dropped))
    return len(dropped)
