"""Encrypt and decrypt secrets with AES-256-GCM, bound to the database field they belong to."""

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
class SecretSlot:
    """The database field that a secret belongs to: a column of a row of a table."""

    table: str
    column: str
    row: str

    def __post_init__(self) -> None:
        for part in (self.table, self.column, self.row):
            if not 1 <= len(part) <= PART or not part.isprintable():
                raise BadInput(
                    say(
                        "table, column and row of a secret must have 1 to {most} printable characters",
                        most=PART,
                    )
                )

    def __str__(self) -> str:
        return f"{self.table}.{self.column} {self.row}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The inputs of one encryption besides the secret: the database id, the key id, a fresh nonce."""

    database: str
    key: str
    nonce: bytes


def seal(keys: Keys, stamp: Stamp, slot: SecretSlot, secret: Secret) -> SecretRef:
    key, nonce = stamp.key, stamp.nonce
    sealed = AESGCM(keys.key(key)).encrypt(
        nonce, secret.reveal().encode(), _associated_data(stamp.database, slot, key)
    )
    return SecretRef.parse(f"{Source.SEALED}:v1:{key}:{_text(nonce)}:{_text(sealed)}")


def open_sealed(keys: Keys, database: str, slot: SecretSlot, ref: SecretRef) -> Secret:
    """Decrypt a secret with the key that encrypted it; Unreadable if it is not among `keys`."""
    match = SEALED.fullmatch(ref.where)
    if ref.source is not Source.SEALED or match is None:
        raise Unreadable(
            say("the secret of {slot} was not encrypted by a retoma vault", slot=slot)
        )
    if match["key"] not in keys:
        raise Unreadable(
            say(
                "the secret of {slot} is encrypted with key {key}, which this process does not have:"
                " copy that key here, or set the secret again",
                slot=slot,
                key=match["key"],
            )
        )
    try:
        plain = AESGCM(keys.key(match["key"])).decrypt(
            _bytes(match["nonce"]),
            _bytes(match["sealed"]),
            _associated_data(database, slot, match["key"]),
        )
    except InvalidTag:
        raise Unreadable(
            say(
                "the secret of {slot} cannot be decrypted: it was changed, or comes from another"
                " row, column or database; set it again",
                slot=slot,
            )
        ) from None
    return Secret(plain.decode())


def _associated_data(database: str, slot: SecretSlot, key: str) -> bytes:
    """Encode what must be the same at decryption. JSON, so that different fields never encode alike."""
    parts = ["retoma", "v1", key, database, slot.table, slot.column, slot.row]
    return json.dumps(parts).encode()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
