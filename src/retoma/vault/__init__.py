"""Secrets at rest: in the environment, in a file, or sealed in the database. Goes in, never out."""

from retoma.vault.ref import SecretRef, Source, Unreadable, given
from retoma.vault.seal import Place
from retoma.vault.store import Face, SecretSeen
from retoma.vault.vault import Rotated, Sealer, Vault

__all__ = [
    "Face",
    "Place",
    "Rotated",
    "Sealer",
    "SecretRef",
    "SecretSeen",
    "Source",
    "Unreadable",
    "Vault",
    "given",
]
