"""Measure the nesting depth and attribute counts of a page, before a parser whose time is quadratic in both.

Parsers differ on invalid HTML, so the depth is an upper bound: an end tag counts only if an element of its
name is open and in reach, and never within comments, attributes and scripts. This is a cheap first check;
untrusted pages are parsed in a child process with a timeout.
"""

import re
from collections import Counter
from typing import Final

DEEP: Final = 1_000  # nested elements; far more than real pages have
MANY: Final = 1_000  # attributes of one tag; likewise

# Elements without an end tag, or with an optional one.
OPEN: Final = frozenset(
    [
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"),
        *("source", "track", "wbr", "p", "li", "dt", "dd", "option", "optgroup"),
        *("tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"),
    ]
)
# Elements whose content is text up to their own end tag.
RAW: Final = {
    name: re.compile(rf"</{name}", re.IGNORECASE)
    for name in (
        *("script", "style", "textarea", "title"),
        *("xmp", "iframe", "noembed", "noframes"),
    )
}
# End tags within these elements do not close elements outside of them.
WALLS: Final = frozenset(
    ["table", "caption", "select", "template", "object", "applet", "marquee", "svg", "math"]
)
FOREIGN: Final = ("svg", "math")  # no element within them is raw text
# A comment, a bogus comment, or a tag with its attributes; quotes count only after a =. Groups are not
# possessive, because possessive groups were broken before Python 3.11.5.
PART: Final = re.compile(
    r"""<!--(?:-?>|(?P<comment>.*?)(?:--!?>|\Z))"""
    r"""|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)"""
    r"""|<(?:[?!]|/[^a-zA-Z>])[^>]*+"""
    r"""|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"""
    rf"""(?P<rest>(?:[^\s/>=]++|[\s/]++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)?){{0,{3 * MANY}}})""",
    re.DOTALL,
)
BEGIN: Final = re.compile(r"<([a-zA-Z][^\s/>]*+)")


class TooHard(Exception):
    """A tag has too many attributes."""


def too_hard(html: str) -> bool:
    """Whether a page is too nested, or a tag has too many attributes, for a parser of quadratic time."""
    try:
        return depth_of(html, enough=DEEP) > DEEP
    except TooHard:
        return True


def depth_of(html: str, *, enough: int | None = None) -> int:
    """Return an upper bound of the nesting depth. Stops counting above `enough`. Raises TooHard if a
    tag has too many attributes."""
    depths, endless = _Depths(), set[str]()
    at = 0
    while part := PART.search(html, at):
        if enough is not None and depths.deepest > enough:
            break
        at = part.end()
        if part["rest"] and at < len(html) and html[at] != ">":
            raise TooHard  # the pattern counts a name, a value and a blank for each attribute
        name = (part["name"] or "").lower()
        if not name:
            depths.begin_within(part["data"] or part["comment"] or "")
        elif part["end"]:
            depths.end(name)
        else:
            depths.begin(name)
            if name in RAW and name not in endless:
                end = RAW[name].search(html, at)
                if end is None:
                    endless.add(name)  # searched only once, so that many such tags stay linear
                else:
                    at = end.start()
                    depths.begin_within(html[part.end() : at])
    return depths.deepest


class _Depths:
    """The open elements, grouped by the WALLS elements that enclose them."""

    def __init__(self) -> None:
        self._walls: list[tuple[str, int, Counter[str]]] = [("", 0, Counter())]
        self._foreign = 0
        self._depth = 0
        self.deepest = 0

    def begin(self, name: str) -> None:
        if name in OPEN:
            return
        if name in WALLS:
            self._walls.append((name, self._depth, Counter()))
            self._foreign += name in FOREIGN
        else:
            self._walls[-1][2][name] += 1
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)

    def begin_within(self, text: str) -> None:
        """Count tags in raw text within svg and math, where a parser may read them as elements."""
        if self._foreign and "<" in text:
            for tag in BEGIN.finditer(text):
                self.begin(tag[1].lower())

    def end(self, name: str) -> None:
        wall, before, inside = self._walls[-1]
        if name in WALLS:
            if name == wall:
                self._walls.pop()
                self._foreign -= name in FOREIGN
                self._depth = before
        elif inside[name]:
            inside[name] -= 1
            self._depth -= 1
