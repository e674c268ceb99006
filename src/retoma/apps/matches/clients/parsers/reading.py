"""What every parser reads with: a page that was looked at before it was opened, and selectors that must be there."""

from collections.abc import Mapping
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from retoma.apps.matches.model import LayoutChanged, Problem, SchemaInvalid
from retoma.outbound.markup import DEEP, MANY, too_hard

LARGEST: Final = 2 << 20  # bytes; as much as is kept of a page (H-44)


def opened(html: str | bytes) -> LexborHTMLParser:
    """The page, unless it is too much for a parser: that is a flaw of the whole of it."""
    if len(html) > LARGEST:
        raise _refused(f"has {len(html)} bytes, and {LARGEST} are read at most")
    try:
        text = html.decode() if isinstance(html, bytes) else html
        text.encode()  # half a character is none
    except UnicodeError:
        raise _refused("is not UTF-8") from None
    if too_hard(text):
        raise _refused(
            f"is nested deeper than {DEEP} elements, or a tag of it has more than {MANY} attributes"
        )
    return LexborHTMLParser(text)


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
