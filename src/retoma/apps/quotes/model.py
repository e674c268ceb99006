"""Nouns of the quotes application: a quote, what it asks for, how far it came, what a thing costs.

The words are those of the document. A checkpoint is the name of the last step a quote has reached.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import StrEnum
from statistics import median
from typing import Any, Final

from retoma.engine.rules.errors import ENGINE_CODES, Action, Code, ErrorClass, table
from retoma.words import Language, Said, say

KIND: Final = "quotes.quote"
CURRENCY: Final = "BRL"


class QuoteStatus(StrEnum):
    """Of a quote, as the document says it."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    DONE = "DONE"
    ERROR = "ERROR"
    CANCELED = "CANCELED"


class QuoteKind(StrEnum):
    """What is to be quoted; `auto` leaves it to the analysis."""

    AUTO = "auto"
    PRODUCT = "product"
    VEHICLE = "vehicle"


class VehicleKind(StrEnum):
    """Each has a table of its own."""

    CAR = "car"
    MOTORCYCLE = "motorcycle"
    TRUCK = "truck"


class ProcessingCheckpoint(StrEnum):
    """How far a quote came, in the order of the document's diagram."""

    INIT = "INIT"
    AI_ANALYSIS_START = "AI_ANALYSIS_START"
    AI_ANALYSIS_DONE = "AI_ANALYSIS_DONE"
    FIPE_SEARCH = "FIPE_SEARCH"
    SHOPPING_SEARCH_START = "SHOPPING_SEARCH_START"
    SHOPPING_SEARCH_DONE = "SHOPPING_SEARCH_DONE"
    PRICE_EXTRACTION_START = "PRICE_EXTRACTION_START"
    PRICE_EXTRACTION_PROGRESS = "PRICE_EXTRACTION_PROGRESS"
    PRICE_EXTRACTION_DONE = "PRICE_EXTRACTION_DONE"
    FINALIZATION = "FINALIZATION"
    COMPLETED = "COMPLETED"


_C = ProcessingCheckpoint

# What may come next. A vehicle goes by FIPE and never by the shops; anything else the other way.
NEXT: Final[Mapping[ProcessingCheckpoint, frozenset[ProcessingCheckpoint]]] = {
    _C.INIT: frozenset({_C.AI_ANALYSIS_START}),
    _C.AI_ANALYSIS_START: frozenset({_C.AI_ANALYSIS_DONE}),
    _C.AI_ANALYSIS_DONE: frozenset({_C.FIPE_SEARCH, _C.SHOPPING_SEARCH_START}),
    _C.FIPE_SEARCH: frozenset({_C.FINALIZATION}),
    _C.SHOPPING_SEARCH_START: frozenset({_C.SHOPPING_SEARCH_DONE}),
    _C.SHOPPING_SEARCH_DONE: frozenset({_C.PRICE_EXTRACTION_START}),
    _C.PRICE_EXTRACTION_START: frozenset({_C.PRICE_EXTRACTION_PROGRESS}),
    _C.PRICE_EXTRACTION_PROGRESS: frozenset(
        {_C.PRICE_EXTRACTION_PROGRESS, _C.PRICE_EXTRACTION_DONE}
    ),
    _C.PRICE_EXTRACTION_DONE: frozenset({_C.FINALIZATION}),
    _C.FINALIZATION: frozenset({_C.COMPLETED}),
    _C.COMPLETED: frozenset(),
}

# Begins the key of a step that draws a picture. Its name is FINALIZATION: a picture is no checkpoint.
PICTURE: Final = "picture/"

# How much of a quote is done at each, in percent.
PERCENT: Final[Mapping[ProcessingCheckpoint, int]] = {
    _C.INIT: 0,
    _C.AI_ANALYSIS_START: 10,
    _C.AI_ANALYSIS_DONE: 30,
    _C.FIPE_SEARCH: 80,
    _C.SHOPPING_SEARCH_START: 35,
    _C.SHOPPING_SEARCH_DONE: 50,
    _C.PRICE_EXTRACTION_START: 55,
    _C.PRICE_EXTRACTION_PROGRESS: 60,
    _C.PRICE_EXTRACTION_DONE: 90,
    _C.FINALIZATION: 95,
    _C.COMPLETED: 100,
}


def percentage(checkpoint: str | None) -> int:
    """How much of a quote is done; 0 before its first checkpoint."""
    return 0 if checkpoint is None else PERCENT[ProcessingCheckpoint(checkpoint)]


# What may end an attempt of a quote, and what follows.
CODES: Final = table(
    Code("bad_plan", ErrorClass.DATA, Action.RETRY, 3, "o modelo não deu um plano válido"),
    Code("no_results", ErrorClass.DATA, Action.BURY, None, "nenhum resultado de busca"),
    Code("no_price", ErrorClass.DATA, Action.BURY, None, "nenhum preço aceito"),
    Code("shops_away", ErrorClass.TRANSIENT, Action.RETRY, 4, "nenhuma loja respondeu"),
    Code("no_vehicle", ErrorClass.DATA, Action.BURY, None, "veículo não encontrado na FIPE"),
    Code(
        "bad_payload", ErrorClass.DATA, Action.BURY, None, "o que já foi pago não se deixa ler"
    ),
    Code("moved_code", ErrorClass.DATA, Action.BURY, None, "o código migrado terminou em erro"),
    Code("no_key", ErrorClass.CONFIG, Action.PARK, None, "falta a chave do serviço"),
    Code(
        "wrong_address", ErrorClass.CONFIG, Action.PARK, None, "não há tal serviço, ou modelo"
    ),
    Code(
        "unauthorized", ErrorClass.CONFIG, Action.PARK, None, "a chave do serviço foi recusada"
    ),
    Code("rejected", ErrorClass.CONFIG, Action.PARK, None, "o serviço rejeitou o pedido"),
    replace(ENGINE_CODES["config"], meaning="uma configuração ou uma chave está errada"),
    replace(ENGINE_CODES["budget"], meaning="o crédito ou o orçamento acabou"),
)

# The same for whoever reads English.
MEANINGS: Final[Mapping[str, Said]] = {
    "bad_plan": say("the model gave no valid plan"),
    "no_results": say("the search found nothing"),
    "no_price": say("no price was accepted"),
    "shops_away": say("no shop answered"),
    "no_vehicle": say("FIPE does not know this vehicle"),
    "bad_payload": say("what was paid for already cannot be read"),
    "moved_code": say("the code that was moved ended in an error"),
    "no_key": say("the key of the service is missing"),
    "wrong_address": say("there is no such service, or no such model"),
    "unauthorized": say("the key of the service was refused"),
    "rejected": say("the service rejected the request"),
    "config": say("a setting or a key is wrong"),
    "budget": say("the credit or the budget is spent"),
}


# Quotes that these have parked go on once somebody has put the configuration right and resumes them.
CONFIGURATION: Final = frozenset(
    code
    for code, each in CODES.items()
    if each.error_class is ErrorClass.CONFIG or code == "budget"
)


def meanings_in(language: Language | None) -> dict[str, str]:
    """What each code means. What is written down, and who says no language, has Portuguese."""
    return {
        code: each.meaning if language is not Language.EN else str(MEANINGS[code])
        for code, each in CODES.items()
    }


def no_key(setting: str) -> Said:
    """What a quote that waits for a key says: which setting is missing."""
    return say("{setting} is not set where the runners run", setting=setting)


# — what an analysis says —


@dataclass(frozen=True, slots=True)
class Plan:
    """What to look for in the shops."""

    query: str
    category: str | None = None
    brand: str | None = None
    must_have: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vehicle:
    """What to look up in the FIPE table."""

    brand: str
    model: str
    year: int
    fuel: str | None = None
    kind: VehicleKind = VehicleKind.CAR


# — what shops offer —


@dataclass(frozen=True, slots=True)
class Offer:
    """One result of a search: a page that may say a price."""

    title: str
    url: str
    store: str
    listed: Decimal | None = None  # what the search says it costs; the page decides


@dataclass(frozen=True, slots=True)
class Tested:
    """What a page said. Exactly one of price and code is there."""

    url: str
    store: str
    title: str
    price: Decimal | None = None
    method: str | None = None
    code: str | None = None
    message: str | None = None
    evidence: str | None = None  # what the page and its picture are called, before the dot
    no_picture: str | None = None  # why, where no step of its own says it
    away: bool = False  # the shop did not answer: asked again it may


CENT: Final = Decimal("0.01")
ABSURD: Final = Decimal(10) ** 10
THOUSAND: Final = 3  # digits behind a sign that parts thousands
_NUMBER = re.compile(r"\d[\d.,\s]*")
_FOREIGN = re.compile(r"(US\$|USD|U\$S|€|EUR|£|GBP|¥)", re.IGNORECASE)


class NotAPrice(ValueError):
    """A text that says no price we may use; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_price(text: object, currency: object = None) -> Decimal:
    """Of `R$ 1.234,56`, `1234.56` or a number; NotAPrice where it is none, or none in reais."""
    said = str(text).strip()
    if isinstance(currency, str) and currency.strip() and currency.strip().upper() != CURRENCY:
        raise NotAPrice("foreign_currency", f"{said} {currency}")
    if _FOREIGN.search(said):
        raise NotAPrice("foreign_currency", said[:100])
    found = _NUMBER.search(said)
    if found is None:
        raise NotAPrice("price_on_request", said[:100])
    # A number of a program has no sign that parts thousands.
    value = money_of(text) if isinstance(text, float) else _decimal(found[0])
    if value is None:
        raise NotAPrice("price_absurd", said[:100])
    if value <= 0 or _is_negative(said[: found.start()]):
        raise NotAPrice("price_not_positive", said[:100])
    if value >= ABSURD:
        raise NotAPrice("price_absurd", said[:100])
    return cents(value)


def cents(value: Decimal) -> Decimal:
    """To two places; of what lies in the middle, up, as people count."""
    return value.quantize(CENT, ROUND_HALF_UP)


def money_of(told: object) -> Decimal | None:
    """A price as it is stored: as text, or as a number where another program wrote it."""
    if isinstance(told, bool) or not isinstance(told, str | int | float | Decimal):
        return None
    try:
        value = Decimal(str(told))
    except InvalidOperation:
        return None
    return cents(value) if value.is_finite() and abs(value) < ABSURD else None


def _is_negative(before: str) -> bool:
    """Whether a sign stands before a number, or before the R$ in front of it."""
    return before.endswith("-") or before.rstrip().removesuffix("R$").rstrip().endswith("-")


def _decimal(text: str) -> Decimal:
    """Of several signs the last is the decimal one; a lone point before three digits is none."""
    plain = re.sub(r"\s", "", text).rstrip(".,")
    comma, point = plain.rfind(","), plain.rfind(".")
    if comma > point:
        decimal = "," if plain.count(",") == 1 else ""
    elif comma >= 0:
        decimal = "." if plain.count(".") == 1 else ""
    else:
        decimal = "." if plain.count(".") == 1 and len(plain) - point - 1 != THOUSAND else ""
    whole, _, part = plain.rpartition(decimal) if decimal else ("", "", plain)
    digits = re.sub(r"[.,]", "", whole if decimal else part)
    plain = f"{digits}.{part}" if decimal else digits
    try:
        return Decimal(plain)
    except InvalidOperation:
        raise NotAPrice("price_unreadable", text[:100]) from None


# — the price —

METHOD: Final = "median_mad"
DEVIATION: Final = Decimal("1.4826")  # of a normal spread, by its median
SPREAD: Final = Decimal(3)  # deviations from the median beyond which a price is set apart
LEAST_SPREAD: Final = Decimal("0.15")  # of the median: prices so close are never set apart


@dataclass(frozen=True, slots=True)
class Price:
    """What a thing costs, and by which prices."""

    value: Decimal
    accepted: tuple[int, ...]  # places among the prices given
    apart: tuple[int, ...]


def robust_price(prices: Sequence[Decimal]) -> Price:
    """The median of what is left when outliers are set apart: one shop's mistake moves nothing."""
    middle = median(prices)
    deviation = DEVIATION * median(abs(each - middle) for each in prices)
    most = max(SPREAD * deviation, LEAST_SPREAD * middle)
    near = [place for place, each in enumerate(prices) if abs(each - middle) <= most]
    apart = [place for place in range(len(prices)) if place not in set(near)]
    value = median(prices[place] for place in near)
    return Price(cents(value), tuple(near), tuple(apart))


def result_of(tested: Sequence[Tested]) -> dict[str, Any]:
    """What a quote by shops ends with."""
    priced = [each for each in tested if each.price is not None]
    chosen = robust_price([each.price for each in priced if each.price is not None])
    apart = set(chosen.apart)
    return {
        "price": str(chosen.value),
        "currency": CURRENCY,
        "method": METHOD,
        "sources": [
            {
                "store": each.store,
                "url": each.url,
                "title": each.title,
                "price": str(each.price),
                "read_by": each.method,
                "used": place not in apart,
            }
            for place, each in enumerate(priced)
        ],
    }
