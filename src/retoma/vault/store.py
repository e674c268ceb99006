"""Read and write the secrets table. Lists never contain a secret."""

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
from retoma.vault.seal import SecretSlot
from retoma.words import say

SHOWN: Final = 4  # characters that may be shown
LONG_ENOUGH: Final = 16  # secrets from this length on may show their last characters
MOST: Final = 200  # rows of a page
SLICE: Final = 200  # secrets encrypted again in one commit


SQL: Final = Statements("retoma.vault.sql")


@dataclass(frozen=True, slots=True)
class MaskedSecret:
    """What may be shown of a secret."""

    set: bool
    last4: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSeen:
    """One secret in a list: the field it belongs to, where it is stored, who set it."""

    slot: SecretSlot
    source: Source
    where: str  # a variable, a path, or the id of a key
    last4: str | None
    set_at: datetime | None
    set_by: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted secret that must be encrypted with another key."""

    slot: SecretSlot
    ref: SecretRef


def database_id(tx: Transaction) -> str:
    [(id_,)] = tx.all(SQL.database_id)
    return str(id_)


def secret_key(tx: Transaction) -> str | None:
    return tx.one(SQL.secret_key, into=str)


def lock_key(tx: Transaction) -> str | None:
    """Return the id of the current key and lock it until the commit."""
    return tx.one(SQL.lock_secret_key, into=str)


def lock_or_set_key(tx: Transaction, first: str) -> str:
    """Like `lock_key`, but set `first` if there was no key."""
    tx.run(SQL.first_secret_key, key=first)
    [key] = tx.all(SQL.lock_secret_key, into=str)
    return key


def set_key(tx: Transaction, key: str) -> None:
    tx.run(SQL.set_secret_key, key=key)


def put(
    tx: Transaction,
    slot: SecretSlot,
    ref: SecretRef,
    *,
    key: str | None,
    last4: str | None,
    actor: str,
) -> None:
    tx.run(SQL.put_secret, **_at(slot), ref=ref.text, key=key, last4=last4, actor=actor)
    details = encode({"lies": ref.source})
    tell(tx, actor=actor, verb="secret.set", subject=str(slot), details=details)


def find(tx: Transaction, slot: SecretSlot) -> SecretRef | None:
    text = tx.one(SQL.find_secret, into=str, **_at(slot))
    return None if text is None else SecretRef.parse(text)


def remove(tx: Transaction, slot: SecretSlot, *, actor: str) -> None:
    if tx.one(SQL.remove_secret, **_at(slot)) is None:
        raise NotFound(say("{slot} has no secret", slot=slot))
    tell(tx, actor=actor, verb="secret.removed", subject=str(slot))


def masked_secrets(
    tx: Transaction, table: str, column: str, rows: Sequence[str]
) -> dict[str, MaskedSecret]:
    stored = tx.all(SQL.masked_secrets, owner=table, field=column, rows=json.dumps(list(rows)))
    shown = {row: MaskedSecret(set=True, last4=last4) for row, last4 in stored}
    return {row: shown.get(row, MaskedSecret(set=False)) for row in rows}


def last4(plain: str) -> str | None:
    """Return the last four characters; None for a short secret, of which they would reveal too much."""
    return plain[-SHOWN:] if len(plain) >= LONG_ENOUGH else None


def page(tx: Transaction, after: SecretSlot | None) -> list[SecretSeen]:
    return [_seen(row) for row in tx.all(SQL.list_secrets, **_at(after), most=MOST)]


def sealed_otherwise(tx: Transaction, key: str, after: SecretSlot | None) -> list[Sealed]:
    rows = tx.all(SQL.sealed_otherwise, **_at(after), key=key, bite=SLICE)
    return [Sealed(SecretSlot(*slot), SecretRef.parse(ref)) for *slot, ref in rows]


def any_sealed_otherwise(tx: Transaction, key: str) -> bool:
    return tx.one(SQL.any_sealed_otherwise, key=key) is not None


def seal_anew(tx: Transaction, key: str, anew: Sequence[tuple[Sealed, SecretRef]]) -> int:
    rows = [{**_at(old.slot), "old": old.ref.text, "new": new.text} for old, new in anew]
    return len(tx.all(SQL.seal_anew, key=key, rows=json.dumps(rows)))


def _at(slot: SecretSlot | None) -> dict[str, Any]:
    if slot is None:
        return {"owner": "", "field": "", "row": ""}
    return {"owner": slot.table, "field": slot.column, "row": slot.row}


def _seen(row: Row) -> SecretSeen:
    table, column, id_, text, shown, at, by = row
    ref = SecretRef.parse(text)
    return SecretSeen(
        slot=SecretSlot(table, column, id_),
        source=ref.source,
        where=ref.where.split(":")[1] if ref.source is Source.SEALED else ref.where,
        last4=shown,
        set_at=moment(at),
        set_by=by,
    )
