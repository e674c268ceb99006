"""Sealing and opening: AES-256-GCM, bound to the one place where it may be opened again."""

import base64
import json
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from retoma.engine.rules.errors import BadInput
from retoma.secret import Secret
from retoma.vault.keys import Keys
from retoma.vault.ref import SEALED, SecretRef, Source, Unreadable
from retoma.words import say

NONCE: Final = 12  # bytes
PART: Final = 200  # characters of a table's, column's or row's name


@dataclass(frozen=True, slots=True)
class Place:
    """Whose secret: a column of a row of a table."""

    table: str
    column: str
    row: str

    def __post_init__(self) -> None:
        for each in (self.table, self.column, self.row):
            if not 1 <= len(each) <= PART or not each.isprintable():
                raise BadInput(
                    say("the place of a secret is named in 1 to {most} characters", most=PART)
                )

    def __str__(self) -> str:
        return f"{self.table}.{self.column} {self.row}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a sealing needs besides the secret: the database, the id of the key, a fresh nonce."""

    database: str
    key: str
    nonce: bytes


def seal(keys: Keys, stamp: Stamp, place: Place, secret: Secret) -> SecretRef:
    key, nonce = stamp.key, stamp.nonce
    sealed = AESGCM(keys.key(key)).encrypt(
        nonce, secret.reveal().encode(), _bound(stamp.database, place, key)
    )
    return SecretRef.parse(f"{Source.SEALED}:v1:{key}:{_text(nonce)}:{_text(sealed)}")


def opened(keys: Keys, database: str, place: Place, ref: SecretRef) -> Secret:
    """Under the key that sealed it, if it is among these."""
    found = SEALED.fullmatch(ref.where)
    if ref.source is not Source.SEALED or found is None:
        raise Unreadable(say("the secret of {place} was not sealed by us", place=place))
    if found["key"] not in keys:
        raise Unreadable(
            say(
                "the secret of {place} is sealed with key {key}, which is not among ours: bring"
                " that key, or set the secret anew",
                place=place,
                key=found["key"],
            )
        )
    try:
        plain = AESGCM(keys.key(found["key"])).decrypt(
            _bytes(found["nonce"]),
            _bytes(found["sealed"]),
            _bound(database, place, found["key"]),
        )
    except InvalidTag:
        raise Unreadable(
            say(
                "the secret of {place} does not open: it was changed, or comes from another row,"
                " column or database; set it anew",
                place=place,
            )
        ) from None
    return Secret(plain.decode())


def _bound(database: str, place: Place, key: str) -> bytes:
    """What must be the same when it is opened. As JSON: no two places are spelt alike."""
    parts = ["retoma", "v1", key, database, place.table, place.column, place.row]
    return json.dumps(parts).encode()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
