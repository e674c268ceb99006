"""Services that make vectors over HTTP: many texts in one request, each judged alone.

What one service wants to be asked and how it answers is in a file of its own. What comes back is believed row by row. A request that is refused as a whole (400) is sent in halves until
the text that is to blame stands alone: its neighbours get their vectors. Before any text is blamed the service
has taken another one: a service that refuses every request rejects the key, the model or a setting, not texts.
"""

import base64
import binascii
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self
from urllib.parse import quote

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
from retoma.engine.isolation.bounded_json import parse_json
from retoma.engine.isolation.off_loop import SMALL, off_loop
from retoma.engine.rules.errors import Permanent, Throttled, Transient, Unsure
from retoma.manifest import ServiceCheck
from retoma.outbound import Answer, FailureType, Outbound, Policy
from retoma.secret import Secret
from retoma.toolkit.readers.cutting import clean_text
from retoma.toolkit.service_checks import check_service, no_key
from retoma.words import say

DEADLINE: Final = 60.0
CAUTIOUS: Final = 3  # characters of a token, where many texts share a limit
MOST_BYTES: Final = 64 << 20  # 256 vectors of 3,072 numbers as text are 16 MiB
MOST_VALUES: Final = 1_000_000  # numbers of those, and what stands between them
MOST_CALLS: Final = 64  # for one batch: to find four texts to blame among 256
MOST_REFUSED: Final = 15  # calls of which none went well: then it is not the texts
REFUSED_IN_A_ROW: Final = 3  # requests, before a text of ours is tried
PROBE: Final = "retoma"  # a text that every service takes
LONGEST_WORDS: Final = 300  # characters of what a service says about a request
BLAMED: Final = (400, 413, 422)  # for what one of the texts is
# What a service says of the key, the account or the model: it concerns every text, which waits for a person.
REJECTIONS: Final[Mapping[int, str]] = {
    401: "unauthorized",
    402: "budget",
    403: "unauthorized",
    404: "wrong_address",  # no such model, or no such address
}
THROTTLED: Final = 429
NO_MONEY: Final = "insufficient_quota"  # said with a 429, and no waiting helps
AWAY: Final = FailureType(Transient, "transient")  # nothing was made, and nothing is charged
ANSWERS: Final[Mapping[int, FailureType]] = {
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
    probed: bool = False  # the service has taken a text of ours

    @property
    def went_well(self) -> bool:
        return self.probed or any(isinstance(each, bytes) for each in self.items)

    def pay(self, tokens: Any, cost: Any) -> None:
        """Add what an answer says that it cost."""
        self.tokens += _count(tokens)
        if isinstance(cost, int | float) and 0 <= cost < 1 << 20:
            self.usd = (self.usd or 0.0) + float(cost)

    def embedded(self) -> Embedded:
        missing = ItemRefused.by(Refusal.MISSING_ROW)
        used = Used(self.model, self.tokens, self.usd, self.calls)
        return Embedded([missing if each is None else each for each in self.items], used)


@dataclass(frozen=True, slots=True)
class _Said:
    """What one answer says: vectors, or why there is none, by the place of their text."""

    items: Mapping[int, bytes | ItemRefused]
    usage: tuple[Any, Any]  # tokens, dollars


class HttpProvider:
    """One model of a service at one address. A subclass says how it is asked and how it answers."""

    name: ClassVar[str]
    home: ClassVar[str]  # where its maker has it
    path: ClassVar[str]
    usual_model: ClassVar[str]
    usual_dims: ClassVar[int]
    usual_most: ClassVar[int]  # texts of one request
    usual_tokens: ClassVar[int]  # of one text
    call_tokens: ClassVar[int]  # of all texts of one request
    model_path: ClassVar[str | None] = None  # where it says for free whether it has `{model}`
    asymmetric: ClassVar[bool] = False
    version = "1"
    paid = True

    def __init__(
        self,
        out: Outbound,
        url: str,
        key: Secret | None,
        model: str,
        dims: int,
        *,
        dimensions: int | None = None,
        most: int | None = None,
        most_tokens: int | None = None,
    ) -> None:
        self.model = model
        self.dims = dims if dimensions is None else dimensions
        self.dimensions = dimensions
        self.most = most or self.usual_most
        self.most_tokens = most_tokens or self.usual_tokens
        self._out = out
        self._base = url.rstrip("/")
        self._key = key
        self._url = f"{url.rstrip('/')}{self.path}"
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

    @classmethod
    def build(cls, config: ProviderConfig) -> Self:
        return cls(
            config.out,
            config.url or cls.home,
            config.key,
            config.model or cls.usual_model,
            config.dims or cls.usual_dims,
            dimensions=config.dimensions,
            most=config.most,
            most_tokens=config.most_tokens,
        )

    async def check(self) -> ServiceCheck | None:
        """Ask whether it takes our key and has our model; None: it does not say that for free."""
        setting = "RETOMA_EMBEDDINGS_KEY"
        if self._key is None and self._base == self.home.rstrip("/"):
            return no_key(self.name, setting)
        if self.model_path is None:
            return None
        url = self._base + self.model_path.format(model=quote(self.model, safe=""))
        model = (self.model, "RETOMA_EMBEDDINGS_MODEL")
        return await check_service(
            self._out,
            self.name,
            url,
            headers=self._headers,
            key=setting,
            model=model,
            certain=self._base == self.home.rstrip("/"),
        )

    @abstractmethod
    def request(self, texts: Sequence[str], input_type: InputType) -> dict[str, Any]:
        """The body of a request."""

    @staticmethod
    @abstractmethod
    def rows(told: Mapping[str, Any], asked: int) -> Mapping[int, Any] | None:
        """The vectors of an answer by the place of their text; None: it has no list of them."""

    @staticmethod
    @abstractmethod
    def usage(told: Mapping[str, Any]) -> tuple[Any, Any]:
        """The tokens and the dollars that an answer names, as it names them."""

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        longest = self.most_tokens * A_TOKEN
        batch = _Batch([unfit(text, longest) for text in texts], self.model)
        fit = [place for place, no in enumerate(batch.items) if no is None]
        batch.left = _requests(texts, fit, self.most, self.call_tokens * CAUTIOUS)
        while batch.left:
            places = batch.left.pop(0)
            answer = await self._answer([texts[place] for place in places], input_type)
            batch.calls += 1
            if answer.status in BLAMED:
                alone = len(places) == 1 or batch.calls >= REFUSED_IN_A_ROW
                if alone and not batch.went_well:
                    await self._probe(batch, input_type)
                _blame(batch, places)
            else:
                size = len(answer.body)
                self._take(
                    batch,
                    places,
                    await off_loop(size, self._read, answer, len(places)),
                )
        return batch.embedded()

    async def _probe(self, batch: _Batch, input_type: InputType) -> None:
        """Ask for a text of ours. Permanent `rejected` where the service does not take that either."""
        answer = await self._answer([PROBE], input_type)
        batch.calls += 1
        if answer.status in BLAMED:
            raise self._rejection(answer, "rejected")
        batch.probed = True
        tokens, cost = self._read(answer, 1).usage
        batch.pay(tokens, cost)

    async def _answer(self, texts: Sequence[str], input_type: InputType) -> Answer:
        try:
            answer = await self._out.post(
                self._policy,
                self._url,
                headers=self._headers,
                json=self.request(texts, input_type),
                accept=(*BLAMED, *REJECTIONS, THROTTLED),
            )
        except Unsure as error:
            code = "bad_answer" if error.code == "too_large" else error.code
            raise Transient(str(error), code=code) from None
        if answer.status == THROTTLED:
            raise _throttled(answer, self._out.retry_after(answer.headers))
        if answer.status in REJECTIONS:
            raise self._rejection(answer, REJECTIONS[answer.status])
        return answer

    def _rejection(self, answer: Answer, code: str) -> Permanent:
        """In the service's own words, as far as it has any; never with our key in them."""
        words = _words(answer)
        if self._key is not None:
            words = words.replace(self._key.reveal(), "…")
        said = f"{self.name}: {answer.status} {words}".rstrip()
        return Permanent(said, code=code)

    def _take(self, batch: _Batch, places: Sequence[int], said: _Said) -> None:
        batch.pay(*said.usage)
        for place, item in said.items.items():
            batch.items[places[place]] = item

    def _read(self, answer: Answer, asked: int) -> _Said:
        """The vectors of an answer; for a thread, where they are many."""
        told = _told(answer)
        rows = self.rows(told, asked)
        if rows is None:
            raise Transient(
                say("{where}: the answer has no list of vectors", where=answer.where),
                code="bad_answer",
            )
        items = {place: _item(row, self.dims) for place, row in rows.items()}
        return _Said(items, self.usage(told))


def _requests(
    texts: Sequence[str], places: Sequence[int], most: int, characters: int
) -> list[list[int]]:
    """As few requests as have room for these texts; a text that is larger than all goes alone."""
    requests: list[list[int]] = []
    room = 0
    for place in places:
        size = len(texts[place])
        if not requests or len(requests[-1]) == most or size > room:
            requests.append([])
            room = characters
        requests[-1].append(place)
        room -= size
    return requests


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


def _item(row: Any, dims: int) -> bytes | ItemRefused:
    try:
        vector = np.array(_numbers(row), dtype=np.float64)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        return ItemRefused.by(Refusal.NOT_FINITE)
    return pack_vector(vector, dims)


def _told(answer: Answer) -> dict[str, Any]:
    """Not `answer.json()`, which takes no NaN: one bad vector would cost all of them."""
    try:
        told = parse_json(answer.body, nan=True, values=MOST_VALUES, largest=MOST_BYTES)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise Transient(
            say("{where}: the answer has no list of vectors", where=answer.where),
            code="bad_answer",
        )
    return told


def _throttled(answer: Answer, wait: float | None) -> Transient | Permanent:
    try:
        error = parse_json(answer.body[:SMALL])["error"]
        code = error["code"] or error["type"]
    except (ValueError, KeyError, TypeError):
        code = None
    if code == NO_MONEY:
        return Permanent(
            say("{where}: the quota is used up", where=answer.where), code="budget"
        )
    return Throttled(
        say("{where}: answered {status}", where=answer.where, status=THROTTLED),
        retry_after=wait,
    )


def _words(answer: Answer) -> str:
    """What the service says went wrong, wherever its maker puts that."""
    try:
        told = parse_json(answer.body[:SMALL])
    except ValueError:
        return ""
    told = told if isinstance(told, dict) else {}
    error = told.get("error")
    found = (error.get("message") if isinstance(error, dict) else error, told.get("message"))
    said = next((each for each in (*found, told.get("detail")) if isinstance(each, str)), "")
    return clean_text(said)[:LONGEST_WORDS]


def indexed_rows(told: Mapping[str, Any], asked: int) -> dict[int, Any] | None:
    """Of `data`: by the place they name; by where they stand only where nobody names one and none is missing."""
    given = told.get("data")
    if not isinstance(given, list):
        return None
    rows = [each for each in given if isinstance(each, dict)]
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
