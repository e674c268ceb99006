"""Where the price of a quote comes from: every page that was tested, what it said, and what shows it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from retoma.apps.quotes.model import money_of
from retoma.apps.quotes.service.quotes import Quote
from retoma.engine.query import EvidenceSeen
from retoma.words import Said, say

WEB: Final = ("http://", "https://")
FIPE: Final = ("CodigoFipe", "MesReferencia")

# Why a page gave no price, where it is ours to say; else its code stands alone.
WHY: Final[Mapping[str, Said]] = {
    "blocked": say("the shop does not let us look"),
    "connection": say("the shop cannot be reached"),
    "foreign_currency": say("in another currency"),
    "page_gone": say("the page is gone"),
    "page_too_deep": say("the page is nested too deep"),
    "page_too_hard": say("the page takes too long to parse"),
    "price_absurd": say("too high to be a price"),
    "price_missing": say("the page says no price"),
    "price_not_positive": say("zero or less"),
    "price_on_request": say("on request only"),
    "price_unreadable": say("nobody can read it"),
    "ssrf_blocked": say("it leads to where we may not go"),
    "throttled": say("the shop wants us to come later"),
    "timeout": say("the shop takes too long"),
    "too_large": say("the page is too large"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """One page, or one line of the FIPE table."""

    store: str
    title: str
    url: str | None
    price: Decimal | None
    used: bool | None  # None: not decided yet
    read_by: str | None = None
    code: str | None = None
    why: str | None = None
    evidence: Sequence[EvidenceSeen] = ()
    no_picture: str | None = None  # why


def sources_of(quote: Quote, evidence: Sequence[EvidenceSeen]) -> list[Source]:
    """Those with a price first, the lowest first."""
    result = quote.result if isinstance(quote.result, dict) else {}
    decided = {str(each.get("url")): each for each in _dicts(result.get("sources"))}
    resume = quote.resume_data if isinstance(quote.resume_data, dict) else {}
    shown = _by_name(evidence)
    # A shop that was away was asked again: its last word counts.
    tested = {str(each.get("url")): each for each in _dicts(resume.get("tested_products"))}
    told: list[Mapping[str, Any]] = [
        {**each, "read_by": each.get("method"), **decided.pop(url, {})}
        for url, each in tested.items()
    ]
    told += decided.values()
    found = [_source(each, shown) for each in told]
    return sorted(found, key=lambda each: (each.price is None, each.price or 0, each.store))


def _source(told: Mapping[str, Any], shown: Mapping[str, Sequence[EvidenceSeen]]) -> Source:
    store = str(told.get("store") or "")
    used = told.get("used")
    code, url = told.get("code"), str(told.get("url") or "")
    title = told.get("title") or " ".join(
        str(told[name]) for name in ("Marca", "Modelo", "AnoModelo") if told.get(name)
    )
    more = [f"{name} {told[name]}" for name in FIPE if told.get(name)]
    return Source(
        store=store,
        title=str(title),
        url=url if url.startswith(WEB) else None,
        price=money_of(told.get("price")),
        used=used if isinstance(used, bool) else None,
        read_by=str(told.get("read_by") or " · ".join(more)) or None,
        code=str(code) if code else None,
        why=str(told["message"]) if told.get("message") else None,
        evidence=shown.get(str(told.get("evidence") or ""), ()),
        no_picture=str(told["no_picture"]) if told.get("no_picture") else None,
    )


def _by_name(evidence: Sequence[EvidenceSeen]) -> dict[str, list[EvidenceSeen]]:
    """A page and its picture are called alike; of several attempts the newest counts."""
    newest = {each.name: each for each in evidence}
    shown: dict[str, list[EvidenceSeen]] = {}
    for each in newest.values():
        shown.setdefault(each.name.rpartition(".")[0], []).append(each)
    return shown


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """What was taken over from elsewhere may be anything."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each
