"""A secret shows itself only when it is asked by name; whatever is told of it is `***`."""

from retoma.secret.known import known
from retoma.secret.redact import LONGEST, redact, redact_text
from retoma.secret.value import STARS, Secret

__all__ = ["LONGEST", "STARS", "Secret", "known", "redact", "redact_text"]
