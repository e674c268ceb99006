"""Who makes vectors of texts: our own n-grams, services, models of this machine, and other packages' providers."""

from retoma.apps.embeddings.providers.build import build_provider, check_provider_name
from retoma.apps.embeddings.providers.cohere import Cohere
from retoma.apps.embeddings.providers.local import Local
from retoma.apps.embeddings.providers.ngrams import NGrams
from retoma.apps.embeddings.providers.openai import OpenAI
from retoma.apps.embeddings.providers.provider import (
    MOST,
    Embedded,
    InputType,
    ItemRefused,
    Provider,
    ProviderConfig,
    Refusal,
    Used,
    pack_vector,
)
from retoma.apps.embeddings.providers.voyage import Voyage

__all__ = [
    "MOST",
    "Cohere",
    "Embedded",
    "InputType",
    "ItemRefused",
    "Local",
    "NGrams",
    "OpenAI",
    "Provider",
    "ProviderConfig",
    "Refusal",
    "Used",
    "Voyage",
    "build_provider",
    "check_provider_name",
    "pack_vector",
]
