"""Our own embedding, offline and free: which pieces of words a text has, hashed into 384 numbers.

Every piece of three to five letters counts at a place and with a sign that its hash gives it: texts that
share words, or forms of a word, come near to each other; texts that share meaning alone do not. It is no
language model, and does not say it is one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from retoma.apps.embeddings.providers.provider import (
    A_TOKEN,
    MOST,
    Embedded,
    InputType,
    ItemRefused,
    ProviderConfig,
    Used,
    pack_vector,
    unfit,
)
from retoma.engine.ports import Clock
from retoma.text import normalize

DIMS: Final = 384
LONGEST: Final = 100_000  # characters, as the longest chunk
SIZES: Final = (3, 4, 5)  # letters of a piece, the space before or behind a word among them
AT_ONCE: Final = 1 << 16  # characters between two looks at the loop: some milliseconds
MARKS: Final = re.compile("[\u0300-\u036f]+")
WORDS: Final = re.compile(r"[^\W_]{3,}")  # "de", "um", "of" are in every text, and of no use
ANY_WORDS: Final = re.compile(r"[^\W_]+")
SPACE: Final = 32
# Constants of hashes that spread neighbouring numbers well (Knuth's, and one of MurmurHash3's).
STEP: Final = np.uint32(0x9E3779B1)
MIX: Final = np.uint32(0x85EBCA6B)
HALF: Final = np.uint32(16)
TOP: Final = np.uint32(31)
LOW: Final = np.uint32(0x7FFFFFFF)


class NGrams:
    """The provider that needs nobody. Another `version` for other numbers: never change one."""

    name = "ngrams"
    model = "retoma-ngrams"
    version = "1"
    dims = DIMS
    most = MOST
    most_tokens = LONGEST // A_TOKEN
    paid = False
    asymmetric = False

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()

    @classmethod
    def build(cls, config: ProviderConfig) -> "NGrams":
        return cls(config.clock)

    async def embed(
        self,
        texts: Sequence[str],
        input_type: InputType = InputType.DOCUMENT,  # noqa: ARG002 — it makes no difference here
    ) -> Embedded:
        items: list[bytes | ItemRefused] = []
        for group in _groups(texts):
            items += _embedded(group)
            await self._clock.give_way()  # others on this loop have beats to send
        return Embedded(items, Used(self.model))


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    group, size = list[str](), 0
    for text in texts:
        if group and size + len(text) > AT_ONCE:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _embedded(texts: Sequence[str]) -> list[bytes | ItemRefused]:
    refused = [unfit(text, LONGEST) for text in texts]
    fit = [_plain(text) for text, no in zip(texts, refused, strict=True) if no is None]
    vectors = iter(_vectors(fit) if fit else ())
    return [pack_vector(next(vectors), DIMS) if no is None else no for no in refused]


def _plain(text: str) -> str:
    """Words in small letters without accents, one space around each; of what has none, itself."""
    folded = text.casefold()
    if not folded.isascii():
        folded = MARKS.sub("", normalize("NFKD", folded))
    words = WORDS.findall(folded) or ANY_WORDS.findall(folded) or text.split()
    return f" {' '.join(words)} "


def _vectors(texts: Sequence[str]) -> NDArray[Any]:
    """One row each. All texts are one array: two spaces meet where one ends, and no piece spans two."""
    letters = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4").astype(np.uint32)
    of = np.repeat(np.arange(len(texts)) * DIMS, [len(text) for text in texts])
    inside = letters != SPACE
    sums = np.zeros(len(texts) * DIMS)
    hashes, whole = letters, np.ones(len(letters), dtype=bool)
    for size in range(2, SIZES[-1] + 1):
        hashes = hashes[:-1] * STEP + letters[size - 1 :]
        if size > 2:  # a space may begin a piece or end it, not stand within
            whole = whole[: len(hashes)] & inside[size - 2 : size - 2 + len(hashes)]
        if size in SIZES:
            sums += _counted(hashes[whole], of[: len(hashes)][whole], len(sums))
    rows = sums.reshape(len(texts), DIMS)
    rows = np.sign(rows) * np.sqrt(np.abs(rows))  # said ten times is not ten times as near
    lost = ~rows.any(axis=1)  # of few pieces, some cancel each other to the last
    rows[lost, 0] = 1.0
    return rows


def _counted(hashes: NDArray[Any], of: NDArray[Any], size: int) -> NDArray[Any]:
    mixed = (hashes ^ (hashes >> HALF)) * MIX
    mixed ^= mixed >> HALF
    places = of + (mixed & LOW) % DIMS
    signs = (mixed >> TOP).astype(np.float64) * 2 - 1
    return np.bincount(places, weights=signs, minlength=size)
