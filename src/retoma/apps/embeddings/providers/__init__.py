"""Who makes vectors of texts: our own n-grams, or any endpoint that speaks as OpenAI's does."""

from retoma.apps.embeddings.providers.build import build_provider
from retoma.apps.embeddings.providers.ngrams import NGrams
from retoma.apps.embeddings.providers.openai import OpenAI
from retoma.apps.embeddings.providers.provider import (
    MOST,
    Embedded,
    ItemRefused,
    Provider,
    Refusal,
    Used,
)

__all__ = [
    "MOST",
    "Embedded",
    "ItemRefused",
    "NGrams",
    "OpenAI",
    "Provider",
    "Refusal",
    "Used",
    "build_provider",
]
