"""Any endpoint that speaks as OpenAI's `/embeddings` does: many texts in one request, each judged alone.

What comes back is believed row by row. A request that is refused as a whole (400) is sent in halves until
the text that is to blame stands alone: its neighbours get their vectors.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from retoma.apps.embeddings.providers.provider import (
    MOST,
    Embedded,
    ItemRefused,
    Refusal,
    Used,
    blob_of,
    unfit,
)
from retoma.engine.bounded_json import parse_json
from retoma.engine.errors import Permanent, Throttled, Transient, Unsure
from retoma.engine.off_loop import SMALL, off_loop
from retoma.engine.retry import retry_after
from retoma.outbound import Answer, Outbound, Policy, Sort
from retoma.secret import Secret

DEADLINE: Final = 60.0
LONGEST: Final = 32_000  # characters: about the 8,192 tokens that OpenAI's models take
MOST_BYTES: Final = 64 << 20  # 256 vectors of 3,072 numbers as text are 16 MiB
MOST_VALUES: Final = 1_000_000  # numbers of those, and what stands between them
MOST_CALLS: Final = 64  # for one batch: to find four texts to blame among 256
MOST_REFUSED: Final = 15  # calls of which none went well: then it is not the texts
BLAMED: Final = (400, 413, 422)  # for what one of the texts is
THROTTLED: Final = 429
NO_MONEY: Final = "insufficient_quota"  # said with a 429, and no waiting helps
AWAY: Final = Sort(Transient, "transient")  # nothing was made, and nothing is charged
ANSWERS: Final[Mapping[int, Sort]] = {
    403: Sort(Permanent, "config"),
    404: Sort(Permanent, "config"),  # no such model, or no such address
    500: AWAY,
    502: AWAY,
    504: AWAY,
}


@dataclass(slots=True)
class _Batch:
    """What has become of it so far."""

    items: list[bytes | ItemRefused | None]
    model: str
    tokens: int = 0
    usd: float | None = None
    calls: int = 0
    left: list[list[int]] = field(default_factory=list)  # places that were not asked for yet

    def embedded(self) -> Embedded:
        missing = ItemRefused.by(Refusal.MISSING_ROW)
        used = Used(self.model, self.tokens, self.usd, self.calls)
        return Embedded([missing if each is None else each for each in self.items], used)


@dataclass(frozen=True, slots=True)
class _Said:
    """What one answer says: vectors, or why there is none, by the place of their text."""

    items: Mapping[int, bytes | ItemRefused]
    usage: Mapping[str, Any]


class OpenAI:
    """One model at one address."""

    name = "openai"
    version = "1"
    most = MOST
    paid = True

    def __init__(
        self, out: Outbound, url: str, key: Secret | None, model: str, dims: int
    ) -> None:
        self.model = model
        self.dims = dims
        self._out = out
        self._url = f"{url.rstrip('/')}/embeddings"
        self._headers = {} if key is None else {"authorization": _bearer(key)}
        self._policy = Policy.toward(
            "embeddings",
            url,
            deadline=DEADLINE,
            read=DEADLINE,
            most_bytes=MOST_BYTES,
            most_unpacked=MOST_BYTES,
            answers=ANSWERS,
        )

    async def embed(self, texts: Sequence[str]) -> Embedded:
        batch = _Batch([unfit(text, LONGEST) for text in texts], self.model)
        first = [place for place, no in enumerate(batch.items) if no is None]
        batch.left = [first] if first else []
        while batch.left:
            places = batch.left.pop(0)
            answer = await self._answer([texts[place] for place in places])
            batch.calls += 1
            if answer.status in BLAMED:
                _blame(batch, places)
            else:
                size = len(answer.body)
                self._take(
                    batch,
                    places,
                    await off_loop(size, _read, answer, len(places), self.dims),
                )
        return batch.embedded()

    async def _answer(self, texts: Sequence[str]) -> Answer:
        asked = {"model": self.model, "input": texts, "encoding_format": "float"}
        try:
            answer = await self._out.post(
                self._policy,
                self._url,
                headers=self._headers,
                json=asked,
                accept=(*BLAMED, THROTTLED),
            )
        except Unsure as error:
            code = "bad_answer" if error.code == "too_large" else error.code
            raise Transient(str(error), code=code) from None
        if answer.status == THROTTLED:
            raise _throttled(answer)
        return answer

    def _take(self, batch: _Batch, places: Sequence[int], said: _Said) -> None:
        usage = said.usage
        batch.tokens += _count(usage.get("prompt_tokens", usage.get("total_tokens")))
        cost = usage.get("cost")
        if isinstance(cost, int | float) and 0 <= cost < 1 << 20:
            batch.usd = (batch.usd or 0.0) + float(cost)
        for place, item in said.items.items():
            batch.items[places[place]] = item


def _blame(batch: _Batch, places: list[int]) -> None:
    """Halves of what was refused are asked for, until one text stands alone, or it was asked enough:
    then who is to blame among the last is not known, and they are left for another try."""
    well = any(isinstance(each, bytes) for each in batch.items)
    asked = batch.calls + len(batch.left) + 2
    if len(places) > 1 and asked <= (MOST_CALLS if well else MOST_REFUSED):
        half = len(places) // 2
        batch.left += [places[:half], places[half:]]
        return
    known = len(places) == 1 or not well
    for place in places:
        batch.items[place] = ItemRefused.by(Refusal.REFUSED if known else Refusal.MISSING_ROW)


def _bearer(key: Secret) -> Secret:
    return Secret(f"Bearer {key.reveal()}")


# — what is answered —


def _read(answer: Answer, asked: int, dims: int) -> _Said:
    """The vectors of an answer; for a thread, where they are many."""
    told = _told(answer)
    usage = told.get("usage")
    items = {place: _item(row, dims) for place, row in _rows(told, asked).items()}
    return _Said(items, usage if isinstance(usage, dict) else {})


def _item(row: Any, dims: int) -> bytes | ItemRefused:
    try:
        vector = np.array(_numbers(row), dtype=np.float64)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        return ItemRefused.by(Refusal.NOT_FINITE)
    return blob_of(vector, dims)


def _told(answer: Answer) -> dict[str, Any]:
    """Not `answer.json()`, which takes no NaN: one bad vector would cost all of them."""
    try:
        told = parse_json(answer.body, nan=True, values=MOST_VALUES, largest=MOST_BYTES)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("data"), list):
        raise Transient(f"{answer.where}: the answer has no list of vectors", code="bad_answer")
    return told


def _throttled(answer: Answer) -> Transient | Permanent:
    try:
        error = parse_json(answer.body[:SMALL])["error"]
        code = error["code"] or error["type"]
    except (ValueError, KeyError, TypeError):
        code = None
    if code == NO_MONEY:
        return Permanent(f"{answer.where}: the quota is used up", code="budget")
    wait = retry_after(answer.headers.get("retry-after"))
    return Throttled(f"{answer.where}: answered {THROTTLED}", retry_after=wait)


def _rows(told: Mapping[str, Any], asked: int) -> dict[int, Any]:
    """By the place they name; by where they stand only where nobody names one and none is missing."""
    rows = [each for each in told["data"] if isinstance(each, dict)]
    if len(rows) == asked and all("index" not in row for row in rows):
        return {place: row.get("embedding") for place, row in enumerate(rows)}
    found: dict[int, Any] = {}
    twice = set[int]()
    for row in rows:
        place = row.get("index")
        if type(place) is int and 0 <= place < asked:
            if place in found:
                twice.add(place)
            found[place] = row.get("embedding")
    return {place: row for place, row in found.items() if place not in twice}


def _numbers(row: Any) -> Any:
    """A list of numbers, or what they are in base64, as some send them unasked."""
    if isinstance(row, str):
        return np.frombuffer(base64.b64decode(row, validate=True), dtype="<f4")
    if not isinstance(row, list) or not all(type(each) in (int, float) for each in row):
        raise TypeError
    return row


def _count(told: Any) -> int:
    return told if type(told) is int and 0 <= told < 2**31 else 0
