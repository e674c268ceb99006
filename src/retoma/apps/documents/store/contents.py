"""What documents say, in pieces, kept once by its digest."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from retoma import db
from retoma.apps.documents.store.rows import verb
from retoma.db import Call, Row
from retoma.engine.run.transaction import Transaction

BEGIN_CONTENT = verb("begin_content")
DROP_CONTENTS = verb("drop_contents")
DROP_PIECES = verb("drop_pieces")
END_CONTENT = verb("end_content")
GET_CONTENT = verb("get_content")
GET_PIECE = verb("get_piece")
KEEP_PIECE = verb("keep_piece")
WANT_CONTENTS = verb("want_contents")

GRACE: Final = 24 * 3600.0  # seconds that bytes which no document names are left alone
BITE: Final = 100


def begin(tx: Transaction, sha256: str, size: int) -> bool:
    """Whether all of it is there already."""
    [whole] = tx.all(BEGIN_CONTENT, into=bool, sha256=sha256, size=size)
    return whole


def keep(tx: Transaction, sha256: str, first: int, pieces: Sequence[bytes]) -> None:
    for n, piece in enumerate(pieces, start=first):
        tx.run(KEEP_PIECE, sha256=sha256, n=n, bytes=piece)


def end(tx: Transaction, sha256: str) -> bool:
    """Whether all of it is there now."""
    return tx.one(END_CONTENT, sha256=sha256) is not None


def begun(tx: db.Transaction, wanted: Sequence[str]) -> list[tuple[int | None, bytes | None]]:
    """Of each, how many bytes it has, and the first of them; None: it is not there, or not all of it."""
    calls = [Call(GET_CONTENT, {"sha256": sha256}) for sha256 in wanted]
    return [_begun(rows) for rows in tx.together(calls)]


def _begun(rows: Sequence[Row]) -> tuple[int | None, bytes | None]:
    if not rows:
        return None, None
    size, piece = rows[0]
    return int(size), None if piece is None else bytes(piece)


def piece_of(tx: db.Transaction, sha256: str, n: int) -> bytes | None:
    return tx.one(GET_PIECE, into=bytes, sha256=sha256, n=n)


def want(tx: Transaction, wanted: Iterable[str]) -> set[str]:
    """Of these, those that are there; they stay until documents name them. For whoever adds such
    documents, in the same transaction."""
    return {*tx.all(WANT_CONTENTS, into=str, wanted=json.dumps(sorted(set(wanted))))}


def drop_unneeded(tx: Transaction) -> int:
    """Of those that no document names, the next few; how many that was."""
    dropped = tx.all(DROP_CONTENTS, into=str, grace=-GRACE, bite=BITE)
    if dropped:
        tx.run(DROP_PIECES, dropped=json.dumps(dropped))
    return len(dropped)
