"""Secrets, and their redaction from every text: only `Secret.reveal()` returns the plain value."""

from retoma.secret.known import known
from retoma.secret.redact import LONGEST, redact, redact_text
from retoma.secret.value import STARS, Secret

__all__ = ["LONGEST", "STARS", "Secret", "known", "redact", "redact_text"]
