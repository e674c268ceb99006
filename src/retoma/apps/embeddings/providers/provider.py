"""What every provider promises: for each text a vector or the reason why not, in the order of the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

MOST: Final = 256  # texts in one call


class Refusal(StrEnum):
    """Why one text has no vector, while its neighbours have theirs."""

    EMPTY_TEXT = "empty_text"
    BAD_TEXT = "bad_text"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    WRONG_DIMS = "wrong_dims"
    NOT_FINITE = "not_finite"
    MISSING_ROW = "missing_row"


# Never the text itself: it may be what nobody else should read.
MEANINGS: Final = {
    Refusal.EMPTY_TEXT: "the text has nothing in it",
    Refusal.BAD_TEXT: "the text has halves of characters in it, which nobody can send or keep",
    Refusal.TOO_LONG: "the text is longer than the provider takes",
    Refusal.REFUSED: "the provider does not take this text",
    Refusal.WRONG_DIMS: "the provider's vector has not as many numbers as were asked for",
    Refusal.NOT_FINITE: "the provider's vector has no direction: NaN, infinite, or all zeros",
    Refusal.MISSING_ROW: "the provider's answer has no row for this text",
}


@dataclass(frozen=True, slots=True)
class ItemRefused:
    """In the place of a vector."""

    code: str
    message: str

    @classmethod
    def by(cls, why: Refusal) -> "ItemRefused":
        return cls(why, MEANINGS[why])


@dataclass(frozen=True, slots=True)
class Used:
    """What a call cost. `usd`: as the provider itself says it; None: it does not."""

    model: str
    input_tokens: int = 0
    usd: float | None = None
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Embedded:
    """For each text, in order: little-endian float32 of length one, or why there is none."""

    items: Sequence[bytes | ItemRefused]
    used: Used


class Provider(Protocol):
    """Raises Transient or Permanent where the call as a whole came to nothing.

    A provider that costs money says so in `paid`. A reply that was lost is Transient `unsure`: it may
    have been charged, and to ask again is safe for all but the money.
    """

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dims(self) -> int: ...
    @property
    def most(self) -> int: ...
    @property
    def paid(self) -> bool: ...

    async def embed(self, texts: Sequence[str]) -> Embedded: ...


def unfit(text: str, longest: int) -> ItemRefused | None:
    """Why a text is not even tried."""
    if not text or text.isspace():
        return ItemRefused.by(Refusal.EMPTY_TEXT)
    if len(text) > longest:
        return ItemRefused.by(Refusal.TOO_LONG)
    try:
        text.encode()
    except UnicodeEncodeError:
        return ItemRefused.by(Refusal.BAD_TEXT)
    return None


def blob_of(vector: NDArray[Any], dims: int) -> bytes | ItemRefused:
    """As it is kept: of length one, so that a product of two is how near they are."""
    if vector.shape != (dims,):
        return ItemRefused.by(Refusal.WRONG_DIMS)
    largest = np.abs(vector).max()
    if not np.isfinite(largest) or largest == 0:
        return ItemRefused.by(Refusal.NOT_FINITE)
    scaled = vector / largest  # else the squares of very large numbers are infinite
    return np.asarray(scaled / np.linalg.norm(scaled), dtype="<f4").tobytes()
