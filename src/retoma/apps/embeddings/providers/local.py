"""Models that run on this machine, by fastembed (`retoma[local]`): no key, no money, no service.

The model is loaded once in a process, with the first text, from the files in RETOMA_EMBEDDINGS_FOLDER. They
are never downloaded from here: a runner asks nobody but whom the settings name.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from retoma.apps.embeddings.providers.provider import (
    A_TOKEN,
    Embedded,
    InputType,
    ItemRefused,
    ProviderConfig,
    Refusal,
    Used,
    pack_vector,
    unfit,
)
from retoma.engine.rules.errors import Permanent
from retoma.outbound.sdk import import_module
from retoma.words import say

T = TypeVar("T")

MODEL: Final = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
DIMS: Final = 384
MOST: Final = 64  # texts at a time: half a second of a core
MOST_TOKENS: Final = 512


class Local:
    """One model in this process. Texts of one call at a time: the cores are shared with the jobs."""

    name = "local"
    version = "1"
    paid = False
    asymmetric = True  # some models put another word before a query than before a document

    def __init__(
        self,
        folder: str | None,
        model: str = MODEL,
        dims: int = DIMS,
        *,
        most: int = MOST,
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        self.model = model
        self.dims = dims
        self.most = most
        self.most_tokens = most_tokens
        self._folder = folder
        self._loaded: Any = None
        self._one = asyncio.Lock()

    @classmethod
    def build(cls, config: ProviderConfig) -> "Local":
        return cls(
            config.folder,
            config.model or MODEL,
            config.dims or DIMS,
            most=config.most or MOST,
            most_tokens=config.most_tokens or MOST_TOKENS,
        )

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        items: list[bytes | ItemRefused | None] = [
            unfit(text, self.most_tokens * A_TOKEN) for text in texts
        ]
        fit = [text for text, no in zip(texts, items, strict=True) if no is None]
        async with self._one:
            if self._loaded is None:
                self._loaded = await self._load()
            made = iter(await _in_thread(self._vectors, fit, input_type))
        missing = ItemRefused.by(Refusal.MISSING_ROW)
        whole = [next(made, missing) if item is None else item for item in items]
        return Embedded(whole, Used(self.model))

    async def _load(self) -> Any:
        try:
            fastembed = await import_module("fastembed")
        except ImportError as error:
            raise Permanent(
                say(
                    "RETOMA_EMBEDDINGS_PROVIDER is local, and fastembed is not installed: install"
                    " retoma[local]"
                ),
                code="config",
            ) from error
        make = partial(
            fastembed.TextEmbedding,
            self.model,
            cache_dir=self._folder,
            local_files_only=True,
        )
        try:
            return await _in_thread(make)
        except Exception as error:
            raise Permanent(
                say(
                    "the model {model} could not be loaded ({type}: {error}): put its files into"
                    " RETOMA_EMBEDDINGS_FOLDER",
                    model=self.model,
                    type=type(error).__name__,
                    error=error,
                ),
                code="config",
            ) from error

    def _vectors(
        self, texts: Sequence[str], input_type: InputType
    ) -> list[bytes | ItemRefused]:
        """In a thread: onnxruntime lets go of the interpreter while it computes."""
        made: Iterable[Any] = ()
        if texts and input_type is InputType.QUERY:
            made = self._loaded.query_embed([*texts])
        elif texts:
            made = self._loaded.passage_embed([*texts], batch_size=self.most)
        return [pack_vector(np.asarray(each, dtype=np.float64), self.dims) for each in made]


async def _in_thread(work: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))
