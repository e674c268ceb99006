"""What every parser reads with: a page that was looked at before it was opened, and selectors that must be there."""

import codecs
import re
from collections.abc import Mapping
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from retoma.apps.matches.model import LayoutChanged, Problem, SchemaInvalid
from retoma.engine.isolation.bounded_json import parse_json
from retoma.engine.isolation.charset import UNSAID, known_charset
from retoma.markup import DEEP, MANY, too_hard

HEAD: Final = 1024  # bytes in which a page names its charset
DECLARED: Final = re.compile(
    rb"""<meta[^<>]{0,200}?charset=["']?([a-zA-Z0-9_-]{1,40})""", re.IGNORECASE
)
MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
LARGEST: Final = 2 << 20  # bytes; as much as is kept of a page (H-44)


def opened(html: str | bytes, charset: str | None = None) -> LexborHTMLParser:
    """The page, unless it is too much for a parser: that is a flaw of the whole of it.

    `charset`: as the header of the answer names it. Else as the page itself does; else UTF-8."""
    if len(html) > LARGEST:
        raise _refused(f"has {len(html)} bytes, and {LARGEST} are read at most")
    name = "utf-8"
    try:
        if isinstance(html, bytes):
            name = _charset(html, charset)
            html = html.decode(name)
        html.encode()  # half a character is none
    except UnicodeError:
        raise _refused(f"is not {name.upper()}") from None
    text = html
    if too_hard(text):
        raise _refused(
            f"is nested deeper than {DEEP} elements, or a tag of it has more than {MANY} attributes"
        )
    return LexborHTMLParser(text)


def shown(html: bytes, charset: str | None) -> str:
    """The same text for a person to look at, whatever it holds."""
    return html.decode(_charset(html, charset), "replace")


def _charset(html: bytes, told: str | None) -> str:
    """Its byte order mark before the header, the header before the page; what nobody knows is UTF-8."""
    for mark, name in MARKS.items():
        if html.startswith(mark):
            return name
    found = DECLARED.search(html[:HEAD])
    declared = None if found is None else found[1].decode("ascii")
    return known_charset(told) or known_charset(declared) or UNSAID


def _refused(why: str) -> SchemaInvalid:
    return SchemaInvalid(problems=[Problem("page", why)])


class Page:
    """An open page, and the layout by which it is read."""

    def __init__(self, tree: LexborHTMLParser, layout: str) -> None:
        self._tree = tree
        self._layout = layout

    def one(self, selector: str, within: LexborNode | None = None) -> LexborNode:
        found = (self._tree if within is None else within).css_first(selector)
        if found is None:
            raise self.lacks(selector)
        return found

    def many(self, selector: str, within: LexborNode | None = None) -> list[LexborNode]:
        """Where none is an answer."""
        return (self._tree if within is None else within).css(selector)

    def text(self, selector: str, within: LexborNode | None = None) -> str:
        return text_of(self.one(selector, within))

    def attribute(self, node: LexborNode, selector: str, name: str) -> str:
        """`selector`: where the node was found, for whoever reads that it lacks the attribute."""
        said = node.attributes.get(name)
        if said is None:
            raise self.lacks(f"{selector}[{name}]")
        return said

    def json(self, selector: str) -> Any:
        """What a page holds as JSON: many show what stands in a script of theirs."""
        try:
            return parse_json(self.text(selector).encode())
        except ValueError:
            raise _refused(f"holds no JSON at {selector}") from None

    def lacks(self, selector: str) -> LayoutChanged:
        return LayoutChanged(selector=selector, layout=self._layout)


class Lenient(Page):
    """What is not there is empty: for a person who puts a page right, never to be stored."""

    def __init__(self, tree: LexborHTMLParser, layout: str) -> None:
        super().__init__(tree, layout)
        self._nothing = LexborHTMLParser("<i></i>")

    def one(self, selector: str, within: LexborNode | None = None) -> LexborNode:
        found = self.many(selector, within)
        return found[0] if found else self._nothing.css("i")[0]

    def attribute(self, node: LexborNode, selector: str, name: str) -> str:  # noqa: ARG002
        return node.attributes.get(name) or ""


def text_of(node: LexborNode) -> str:
    return node.text(deep=True).strip()


def word(known: Mapping[str, Any], said: str) -> Any:
    """What a word of the page means; one that nobody knows is left as it is, to be refused."""
    return known.get(said.casefold(), said)
