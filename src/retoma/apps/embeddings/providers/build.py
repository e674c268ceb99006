"""The provider that the settings name: one of ours, or one that another package brings by an entry point."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import numpy as np

from retoma.apps.embeddings.providers.cohere import Cohere
from retoma.apps.embeddings.providers.local import Local
from retoma.apps.embeddings.providers.ngrams import NGrams
from retoma.apps.embeddings.providers.openai import OpenAI
from retoma.apps.embeddings.providers.provider import (
    MOST_DIMS,
    Embedded,
    InputType,
    ItemRefused,
    Provider,
    ProviderConfig,
    Refusal,
    pack_vector,
)
from retoma.apps.embeddings.providers.voyage import Voyage
from retoma.engine.rules.errors import BadInput
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from retoma.words import say

GROUP: Final = (
    "retoma.embeddings.providers"  # of entry points: the name is what the setting says
)
OURS: Final[Mapping[str, Callable[[ProviderConfig], Provider]]] = {
    "ngrams": NGrams.build,
    "openai": OpenAI.build,
    "cohere": Cohere.build,
    "voyage": Voyage.build,
    "local": Local.build,
}


def build_provider(tools: Tools) -> Provider:
    """BadInput where the settings name one that is not installed, or that is no provider."""
    name = tools.settings.embeddings_provider
    config = _config(tools)
    brought = check_provider_name(name)
    if brought is None:
        return OURS[name](config)
    made = brought.load()(config)
    flaw = _flaw(made)
    if flaw is not None:
        raise BadInput(
            say(
                "{where} returned no provider of embeddings: {attribute} is missing or wrong",
                where=brought.value,
                attribute=flaw,
            )
        )
    return Checked(made)


def check_provider_name(name: str) -> EntryPoint | None:
    """Where the provider of this name comes from, None for one of ours. Loads nothing."""
    brought = [each for each in entry_points(group=GROUP) if each.name == name]
    if name in OURS and not brought:
        return None
    if not brought:
        known = sorted({*OURS, *(each.name for each in entry_points(group=GROUP))})
        raise BadInput(
            say(
                "RETOMA_EMBEDDINGS_PROVIDER: {name} is not installed; there are {known}",
                name=name,
                known=", ".join(known),
            )
        )
    if name in OURS or len(brought) > 1:
        raise BadInput(
            say(
                "the provider of embeddings {name} is brought by {where}, and by another: uninstall one",
                name=name,
                where=brought[0].value,
            )
        )
    return brought[0]


class Checked:
    """A provider of another package: what it returns is checked before anything is kept."""

    def __init__(self, made: Provider) -> None:
        self._made = made
        self.name = made.name
        self.model = made.model
        self.version = made.version
        self.dims = made.dims
        self.most = made.most
        self.most_tokens = made.most_tokens
        self.paid = made.paid
        self.asymmetric = made.asymmetric

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        """More rows than texts, or fewer: nobody knows which is whose, and none is kept."""
        told = await self._made.embed(texts, input_type)
        if len(told.items) != len(texts):
            missing = ItemRefused.by(Refusal.MISSING_ROW)
            return Embedded([missing] * len(texts), told.used)
        return Embedded([self._checked(item) for item in told.items], told.used)

    def _checked(self, item: object) -> bytes | ItemRefused:
        if isinstance(item, ItemRefused):
            return item
        if not isinstance(item, bytes) or len(item) % 4:
            return ItemRefused.by(Refusal.WRONG_DIMS)
        return pack_vector(np.frombuffer(item, dtype="<f4").astype(np.float64), self.dims)


def _flaw(made: Any) -> str | None:
    """Which attribute of the protocol is missing or wrong."""
    for name in ("name", "model", "version"):
        value = getattr(made, name, None)
        if not isinstance(value, str) or not 1 <= len(value) <= 100:
            return name
    for name, most in (("dims", MOST_DIMS), ("most", 10_000), ("most_tokens", 10_000_000)):
        value = getattr(made, name, None)
        if type(value) is not int or not 1 <= value <= most:
            return name
    for name in ("paid", "asymmetric"):
        if not isinstance(getattr(made, name, None), bool):
            return name
    return None if callable(getattr(made, "embed", None)) else "embed"


def _config(tools: Tools) -> ProviderConfig:
    settings = tools.settings
    url, key = _service(settings)
    return ProviderConfig(
        out=tools.out,
        clock=tools.retoma.clock,
        url=url,
        key=key,
        model=settings.embeddings_model,
        dims=settings.embeddings_dims,
        dimensions=settings.embeddings_dimensions,
        most=settings.embeddings_batch,
        most_tokens=settings.embeddings_tokens,
        folder=settings.embeddings_folder,
    )


def _service(settings: Settings) -> tuple[str | None, Secret | None]:
    """A key that is named for one service goes to no other."""
    url, key = settings.embeddings_url, settings.embeddings_key
    match settings.embeddings_provider:
        case "openai":
            url, key = url or settings.openai_url, key or settings.openai_key
        case "cohere":
            key = key or settings.cohere_key
        case "voyage":
            key = key or settings.voyage_key
        case _:
            pass
    return url, None if key is None else Secret(key.get_secret_value())
