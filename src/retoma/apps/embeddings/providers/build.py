"""The provider that the settings name."""

from retoma.apps.embeddings.providers.ngrams import NGrams
from retoma.apps.embeddings.providers.openai import OpenAI
from retoma.apps.embeddings.providers.provider import Provider
from retoma.apps.tools import Tools
from retoma.secret import Secret


def build_provider(tools: Tools) -> Provider:
    settings = tools.settings
    if settings.embeddings_provider == "ngrams":
        return NGrams(tools.retoma.clock)
    told = settings.embeddings_key
    return OpenAI(
        tools.out,
        settings.embeddings_url,
        None if told is None else Secret(told.get_secret_value()),
        settings.embeddings_model,
        settings.embeddings_dims,
    )
