"""Site adapters: how to query a site and parse its pages. A site is data: parameter names and selectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from selectolax.lexbor import LexborHTMLParser, LexborNode

from retoma.engine.rules.errors import Transient
from retoma.markup import too_hard
from retoma.programs.worker.model import Filters
from retoma.words import say

Ad = dict[str, Any]
FIELDS: Final = (
    *("id", "title", "advertiser", "text", "language", "media_type", "date", "url", "qtd_ads"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a site: its ads, the position of the next page, and the total number of ads."""

    ads: Sequence[Ad] = field(repr=False)
    next: str | None
    total: int | None = None


class SiteAdapter(Protocol):
    """Queries and parses one site."""

    @property
    def name(self) -> str: ...
    def query(self, filters: Filters, at: str | None) -> tuple[str, Sequence[tuple[str, str]]]:
        """Return path and parameters of a page; `at` is `Page.next` of the page before."""

    def read(self, text: str) -> Page:
        """Parse a page; Transient if it is not a page of this site."""


@dataclass(frozen=True, slots=True)
class Part:
    """Where a field is in an ad's element, and its format."""

    selector: str = ""  # empty: the element itself
    attribute: str | None = None  # None: its text
    means: Mapping[str, str] = field(default_factory=dict)
    day: str | None = None  # the format of a date


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A site whose pages list ads."""

    name: str
    path: str
    start: str  # names of parameters
    end: str
    media: str
    language: str
    joined: bool  # all languages in one parameter, with commas between them
    fixed: Sequence[tuple[str, str]]
    at: str
    frame: str  # what a page of this site has, even an empty one
    ad: str
    parts: Mapping[str, Part]
    next: Part
    total: Part | None = None

    def query(self, filters: Filters, at: str | None) -> tuple[str, Sequence[tuple[str, str]]]:
        asked = [(self.start, filters.start), (self.end, filters.end), *self.fixed]
        if filters.media_type:
            asked.append((self.media, filters.media_type))
        named = (",".join(filters.languages),) if self.joined else filters.languages
        asked += [(self.language, each) for each in named if each]
        if at is not None:
            asked.append((self.at, at))
        return self.path, asked

    def read(self, text: str) -> Page:
        if too_hard(text):
            raise Transient(
                say("{site}: no page of ads is so deep", site=self.name), code="bad_answer"
            )
        tree = LexborHTMLParser(text)
        root = tree.root
        if root is None or root.css_first(self.frame) is None:
            raise Transient(
                say("{site}: this is not a page of ads", site=self.name), code="bad_answer"
            )
        try:
            ads = [
                {name: _value(card, self.parts[name], name) for name in FIELDS}
                for card in root.css(self.ad)
            ]
            total = None if self.total is None else int(_text(root, self.total) or "")
        except (ValueError, KeyError):
            raise Transient(
                say("{site}: the layout of an ad has changed", site=self.name),
                code="bad_answer",
            ) from None
        return Page(ads=ads, next=_text(root, self.next), total=total)


def read_ads(path: str, adapter: str) -> Page:
    """Parse a page in a confined child process."""
    return ADAPTERS[adapter].read(Path(path).read_text(encoding="utf-8", errors="replace"))


def _value(card: LexborNode, part: Part, name: str) -> Any:
    text = _text(card, part)
    if text is None:
        raise ValueError
    if part.means:
        text = part.means[text]
    if part.day is not None:
        text = str(datetime.strptime(text, part.day).date())  # noqa: DTZ007 — a day alone
    return int(text) if name == "qtd_ads" else text


def _text(inside: LexborNode, part: Part) -> str | None:
    node = inside.css_first(part.selector) if part.selector else inside
    if node is None:
        return None
    if part.attribute is not None:
        return node.attributes.get(part.attribute)
    return str(node.text(strip=True))


GALLERY: Final = Layout(
    name="gallery",
    path="/gallery",
    start="from",
    end="to",
    media="media",
    language="lang",
    joined=True,
    fixed=(("sort", "qtd_ads"), ("per_page", "150")),
    at="page",
    frame="section.cards",
    ad="article.ad",
    parts=MappingProxyType(
        {
            "id": Part(attribute="data-id"),
            "title": Part("h2.title"),
            "advertiser": Part("p.by"),
            "text": Part("p.text"),
            "language": Part("span.lang", "lang"),
            "media_type": Part(attribute="data-media"),
            "date": Part("time", "datetime"),
            "url": Part("a.to", "href"),
            "qtd_ads": Part("b.count"),
        }
    ),
    next=Part('a[rel="next"]', "data-page"),
    total=Part("p.found", "data-total"),
)
ARCHIVE: Final = Layout(
    name="archive",
    path="/archive",
    start="since",
    end="until",
    media="kind",
    language="language",
    joined=False,
    fixed=(("order", "qtd_ads"),),
    at="after",
    frame="table#anuncios",
    ad="table#anuncios tbody tr",
    parts=MappingProxyType(
        {
            "id": Part(attribute="id"),
            "title": Part("td:nth-child(1) a"),
            "advertiser": Part("td:nth-child(2)"),
            "text": Part("td:nth-child(3)"),
            "language": Part("td:nth-child(4)"),
            "media_type": Part("td:nth-child(5)", means={"vídeo": "video", "imagem": "image"}),
            "date": Part("td:nth-child(6)", day="%d/%m/%Y"),
            "url": Part("td:nth-child(1) a", "href"),
            "qtd_ads": Part("td:nth-child(7)"),
        }
    ),
    next=Part("button.mais", "data-after"),
)
ADAPTERS: Final[Mapping[str, SiteAdapter]] = MappingProxyType(
    {adapter.name: adapter for adapter in (GALLERY, ARCHIVE)}
)
