"""Every question and every write about secrets. What is asked for lists never holds one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from retoma.codec import encode
from retoma.db import Row, Transaction, moment
from retoma.db.statements import Statements
from retoma.engine.rules.errors import NotFound
from retoma.engine.store import tell
from retoma.vault.ref import SecretRef, Source
from retoma.vault.seal import Place
from retoma.words import say

SHOWN: Final = 4  # characters that may be shown
LONG_ENOUGH: Final = 16  # characters of which the last four tell little
MOST: Final = 200  # rows of a page
BITE: Final = 200  # secrets sealed anew in one commit


SQL: Final = Statements("retoma.vault.sql")


@dataclass(frozen=True, slots=True)
class Face:
    """All that is ever shown of a secret."""

    set: bool
    last4: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSeen:
    """One secret in a list: where it belongs, where it lies, who set it."""

    place: Place
    source: Source
    where: str  # a variable, a path, or the id of a key
    last4: str | None
    set_at: datetime | None
    set_by: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """One secret that is to be sealed anew."""

    place: Place
    ref: SecretRef


def database_id(tx: Transaction) -> str:
    [(id_,)] = tx.all(SQL.database_id)
    return str(id_)


def secret_key(tx: Transaction) -> str | None:
    return tx.one(SQL.secret_key, into=str)


def held_key(tx: Transaction) -> str | None:
    """The id of the key that seals; nobody turns it meanwhile."""
    return tx.one(SQL.hold_secret_key, into=str)


def hold_key(tx: Transaction, first: str) -> str:
    """The same, and `first` where there was none."""
    tx.run(SQL.first_secret_key, key=first)
    [key] = tx.all(SQL.hold_secret_key, into=str)
    return key


def turn_key(tx: Transaction, key: str) -> None:
    tx.run(SQL.turn_secret_key, key=key)


def put(
    tx: Transaction,
    place: Place,
    ref: SecretRef,
    *,
    key: str | None,
    last4: str | None,
    actor: str,
) -> None:
    tx.run(SQL.put_secret, **_at(place), ref=ref.text, key=key, last4=last4, actor=actor)
    details = encode({"lies": ref.source})
    tell(tx, actor=actor, verb="secret.set", subject=str(place), details=details)


def find(tx: Transaction, place: Place) -> SecretRef | None:
    text = tx.one(SQL.find_secret, into=str, **_at(place))
    return None if text is None else SecretRef.parse(text)


def remove(tx: Transaction, place: Place, *, actor: str) -> None:
    if tx.one(SQL.remove_secret, **_at(place)) is None:
        raise NotFound(say("{place} has no secret", place=place))
    tell(tx, actor=actor, verb="secret.removed", subject=str(place))


def faces(tx: Transaction, table: str, column: str, rows: Sequence[str]) -> dict[str, Face]:
    found = tx.all(SQL.secret_faces, owner=table, field=column, rows=json.dumps(list(rows)))
    shown = {row: Face(set=True, last4=last4) for row, last4 in found}
    return {row: shown.get(row, Face(set=False)) for row in rows}


def last4(plain: str) -> str | None:
    """Nothing of what is short: four characters would be too much of it."""
    return plain[-SHOWN:] if len(plain) >= LONG_ENOUGH else None


def page(tx: Transaction, after: Place | None) -> list[SecretSeen]:
    return [_seen(row) for row in tx.all(SQL.list_secrets, **_at(after), most=MOST)]


def sealed_otherwise(tx: Transaction, key: str, after: Place | None) -> list[Sealed]:
    rows = tx.all(SQL.sealed_otherwise, **_at(after), key=key, bite=BITE)
    return [Sealed(Place(*place), SecretRef.parse(ref)) for *place, ref in rows]


def any_sealed_otherwise(tx: Transaction, key: str) -> bool:
    return tx.one(SQL.any_sealed_otherwise, key=key) is not None


def seal_anew(tx: Transaction, key: str, anew: Sequence[tuple[Sealed, SecretRef]]) -> int:
    rows = [{**_at(old.place), "old": old.ref.text, "new": new.text} for old, new in anew]
    return len(tx.all(SQL.seal_anew, key=key, rows=json.dumps(rows)))


def _at(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {"owner": "", "field": "", "row": ""}
    return {"owner": place.table, "field": place.column, "row": place.row}


def _seen(row: Row) -> SecretSeen:
    table, column, id_, text, shown, at, by = row
    ref = SecretRef.parse(text)
    return SecretSeen(
        place=Place(table, column, id_),
        source=ref.source,
        where=ref.where.split(":")[1] if ref.source is Source.SEALED else ref.where,
        last4=shown,
        set_at=moment(at),
        set_by=by,
    )
