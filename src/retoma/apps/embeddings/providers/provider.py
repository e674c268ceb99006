"""What every provider promises: for each text a vector or the reason why not, in the order of the texts.

Ours are in this package. Another package brings its own by an entry point in `retoma.embeddings.providers`,
a function that takes a `ProviderConfig` and returns a `Provider`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from retoma.engine.ports import Clock
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.words import say

MOST: Final = 256  # texts in one call
A_TOKEN: Final = (
    4  # characters, at most on average: a text with more of them for each token is too long
)
MOST_DIMS: Final = 16_000


class InputType(StrEnum):
    """What a text is for: to be found, or to find with."""

    DOCUMENT = "document"
    QUERY = "query"


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
    Refusal.EMPTY_TEXT: say("the text has nothing in it"),
    Refusal.BAD_TEXT: say(
        "the text has halves of characters in it, which nobody can send or keep"
    ),
    Refusal.TOO_LONG: say("the text is longer than the provider takes"),
    Refusal.REFUSED: say("the provider does not take this text"),
    Refusal.WRONG_DIMS: say("the provider's vector has not as many numbers as were asked for"),
    Refusal.NOT_FINITE: say(
        "the provider's vector has no direction: NaN, infinite, or all zeros"
    ),
    Refusal.MISSING_ROW: say("the provider's answer has no row for this text"),
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
    """Makes vectors of texts. Raises Transient or Permanent where the call as a whole failed.

    A reply that was lost is Transient `unsure`: it may have been charged, and asking again is safe for
    all but the money.
    """

    @property
    def name(self) -> str:
        """Who charges for it, in costs and budgets."""

    @property
    def model(self) -> str:
        """Vectors of two models are never compared."""

    @property
    def version(self) -> str:
        """Another one where the same model gives other numbers."""

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""

    @property
    def most(self) -> int:
        """Batch size: how many texts one call of `embed` takes."""

    @property
    def most_tokens(self) -> int:
        """Token limit of one text; a text that is surely longer is refused without a call."""

    @property
    def paid(self) -> bool:
        """Whether a call costs money: its intent is committed first, and it keeps to a rate."""

    @property
    def asymmetric(self) -> bool:
        """Whether the same text has another vector as a query than as a document."""

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        """For each text, in order, its vector by `pack_vector`, or an `ItemRefused`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """What a provider is made with: the only way out, and what the settings RETOMA_EMBEDDINGS_… say.

    None: that setting is not set. `dims`: how many numbers the model gives; `dimensions`: how many the
    service is asked for. `folder`: where the files of a local model are.
    """

    out: Outbound
    clock: Clock
    url: str | None = None
    key: Secret | None = None
    model: str | None = None
    dims: int | None = None
    dimensions: int | None = None
    most: int | None = None
    most_tokens: int | None = None
    folder: str | None = None


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


def pack_vector(vector: NDArray[Any], dims: int) -> bytes | ItemRefused:
    """As it is kept: of length one, so that a product of two is how near they are."""
    if vector.shape != (dims,):
        return ItemRefused.by(Refusal.WRONG_DIMS)
    largest = np.abs(vector).max()
    if not np.isfinite(largest) or largest == 0:
        return ItemRefused.by(Refusal.NOT_FINITE)
    scaled = vector / largest  # else the squares of very large numbers are infinite
    return np.asarray(scaled / np.linalg.norm(scaled), dtype="<f4").tobytes()
