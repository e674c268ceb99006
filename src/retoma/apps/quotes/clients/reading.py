"""The price that a shop's page says: by what it tells machines first, then by what it shows. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from retoma.apps.quotes.model import NotAPrice, read_price
from retoma.engine.isolation.bounded_json import parse_json
from retoma.engine.isolation.charset import charset_of, decode_text
from retoma.markup import too_hard
from retoma.words import say

# What shops show prices by, where they tell machines nothing.
SELECTORS: Final = (
    "[data-price]",
    "[data-product-price]",
    ".price-current",
    ".product-price",
    ".preco-por",
    ".preco",
    ".price",
    "#price",
)
BLOCKED: Final = ("captcha", "are you a robot", "acesso negado", "access denied")
SHORT: Final = 20_000  # characters of a page that only says we may not see it
DEEPEST: Final = 20  # levels of JSON that are looked into

Found = tuple[Decimal, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a page says: a price and by what it was read, or why it says none we may use."""

    price: Decimal | None = None
    method: str | None = None
    code: str | None = None
    message: str | None = None


def look_at_page(path: str, content_type: str) -> Looked:
    """As `read_page`, for a confined child: of the bytes that a shop sent."""
    html = decode_text(Path(path).read_bytes(), charset_of(content_type))
    try:
        price, method = read_page(html)
    except NotAPrice as error:
        return Looked(code=error.code, message=str(error)[:300])
    return Looked(price=price, method=method)


def read_page(html: str) -> Found:
    """A price in reais, and by what it was read; NotAPrice where the page says none we may use."""
    if too_hard(html):
        raise NotAPrice(
            "page_too_deep",
            say(
                "the page is nested deeper than any shop's, or a tag of it has too many attributes"
            ),
        )
    tree = LexborHTMLParser(html)
    refused: NotAPrice | None = None
    for method, look in WAYS:
        for said, currency in look(tree):
            try:
                return read_price(said, currency), method
            except NotAPrice as error:
                refused = refused or error
    if len(html) < SHORT and any(word in html.casefold() for word in BLOCKED):
        raise NotAPrice("blocked", say("the page asks whether we are a robot"))
    raise refused or NotAPrice("price_missing", say("the page says no price"))


Said = tuple[Any, Any]  # a price and its currency, as they stand there


def _json_ld(tree: LexborHTMLParser) -> Iterator[Said]:
    for node in tree.css('script[type="application/ld+json"]'):
        try:
            told = parse_json((node.text() or "").encode("utf-8", "replace"))
        except ValueError:
            continue
        for each in _objects(told, DEEPEST):
            if "Offer" in str(each.get("@type", "")):
                price = each.get("price", each.get("lowPrice"))
                if isinstance(price, str | int | float) and not isinstance(price, bool):
                    yield price, each.get("priceCurrency")


def _objects(told: Any, deeper: int) -> Iterator[dict[str, Any]]:
    if isinstance(told, dict):
        yield told
    inside = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    if deeper:
        for each in inside:
            yield from _objects(each, deeper - 1)


def _open_graph(tree: LexborHTMLParser) -> Iterator[Said]:
    for prefix in ("product", "og"):
        amount = _meta(tree, f"{prefix}:price:amount")
        if amount is not None:
            yield amount, _meta(tree, f"{prefix}:price:currency")


def _meta(tree: LexborHTMLParser, name: str) -> str | None:
    node = tree.css_first(f'meta[property="{name}"]')
    return None if node is None else node.attributes.get("content")


def _microdata(tree: LexborHTMLParser) -> Iterator[Said]:
    found = tree.css_first('[itemprop="priceCurrency"]')
    currency = None if found is None else _value(found)
    for node in tree.css('[itemprop="price"]'):
        yield _value(node), currency


def _value(node: LexborNode) -> str:
    return node.attributes.get("content") or node.text(strip=True)


def _shown(tree: LexborHTMLParser) -> Iterator[Said]:
    for selector in SELECTORS:
        for node in tree.css(selector):
            marked = node.attributes.get(selector.strip("[]")) if "[" in selector else None
            yield marked or node.text(strip=True), None


WAYS: Final[tuple[tuple[str, Callable[[LexborHTMLParser], Iterator[Said]]], ...]] = (
    ("json_ld", _json_ld),
    ("open_graph", _open_graph),
    ("microdata", _microdata),
    ("selector", _shown),
)
