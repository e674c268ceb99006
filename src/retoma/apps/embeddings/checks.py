"""Whether the provider of embeddings takes our key and has our model, asked before texts are handed in."""

from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.providers.http import HttpProvider
from retoma.apps.tools import Tools
from retoma.manifest import ServiceCheck


async def check(tools: Tools) -> list[ServiceCheck]:
    """Nothing where the provider is our own, or says nothing of itself for free."""
    made = tools.one(build_provider)
    found = await made.check() if isinstance(made, HttpProvider) else None
    return [] if found is None else [found]
