"""Secrets at rest: in the environment, in a file, or sealed in the database. Goes in, never out."""

from retoma.vault.keys import EnvKeys, KeyFile, key_file
from retoma.vault.ref import SecretRef, Source, Unreadable, given
from retoma.vault.seal import Place
from retoma.vault.sign import Signer, signer_with
from retoma.vault.store import Face, SecretSeen
from retoma.vault.vault import Rotated, Sealer, Vault

__all__ = [
    "EnvKeys",
    "Face",
    "KeyFile",
    "Place",
    "Rotated",
    "Sealer",
    "SecretRef",
    "SecretSeen",
    "Signer",
    "Source",
    "Unreadable",
    "Vault",
    "given",
    "key_file",
    "signer_with",
]
