"""What texts are embedded with, in a box: an endpoint that speaks as OpenAI's does, as Voyage's and as Cohere's."""

from retoma.apps.embeddings.sandbox.openai import (
    DIMS,
    KEY,
    MODEL,
    MODELS,
    Odd,
    fingerprint,
    marked,
)
from retoma.apps.embeddings.sandbox.services import LATENCY, build_service, embedded_twice

__all__ = [
    "DIMS",
    "KEY",
    "LATENCY",
    "MODEL",
    "MODELS",
    "Odd",
    "build_service",
    "embedded_twice",
    "fingerprint",
    "marked",
]
