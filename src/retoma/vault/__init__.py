"""Stored secrets: in the environment, in a file, or encrypted in the database. The API never returns them."""

from retoma.vault.keys import EnvKeys, KeyFile, key_file
from retoma.vault.ref import SecretRef, Source, Unreadable, parse_secret
from retoma.vault.seal import SecretSlot
from retoma.vault.sign import Signer, signer_with
from retoma.vault.store import MaskedSecret, SecretSeen
from retoma.vault.vault import Rotated, Sealer, Vault

__all__ = [
    "EnvKeys",
    "KeyFile",
    "MaskedSecret",
    "Rotated",
    "Sealer",
    "SecretRef",
    "SecretSeen",
    "SecretSlot",
    "Signer",
    "Source",
    "Unreadable",
    "Vault",
    "key_file",
    "parse_secret",
    "signer_with",
]
