"""How deep a page is nested and how many attributes its tags have, seen before a parser that takes the
square of either.

What a stranger writes is not always what a parser reads, so this counts to the safe side: an end counts
only where something of its name is open and in reach, and never within comments, attributes and scripts.
Where a page may hold anything, a child process with a timeout is the wall; this is the door.
"""

import re
from collections import Counter
from typing import Final

DEEP: Final = 1_000  # elements within each other; no page for people comes near
MANY: Final = 1_000  # attributes of one tag; nor here

# What has no end, or need not say it.
OPEN: Final = frozenset(
    [
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"),
        *("source", "track", "wbr", "p", "li", "dt", "dd", "option", "optgroup"),
        *("tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"),
    ]
)
# Within these a tag is text, up to their own end.
RAW: Final = {
    name: re.compile(rf"</{name}", re.IGNORECASE)
    for name in (
        *("script", "style", "textarea", "title"),
        *("xmp", "iframe", "noembed", "noframes"),
    )
}
# What was begun outside of these does not end within them.
WALLS: Final = frozenset(
    ["table", "caption", "select", "template", "object", "applet", "marquee", "svg", "math"]
)
FOREIGN: Final = ("svg", "math")  # where nothing is raw
# A comment, what is read as one, or a tag with its attributes; of quotes only those after a = hold. Groups
# are not possessive: they were not what they say before Python 3.11.5.
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
    """A tag has more attributes than any that was written for people."""


def too_hard(html: str) -> bool:
    """Whether a parser should not even begin: some take the square of what is within each other, and of
    the attributes of one tag."""
    try:
        return depth_of(html, enough=DEEP) > DEEP
    except TooHard:
        return True


def depth_of(html: str, *, enough: int | None = None) -> int:
    """How deep elements stand within each other, at most. `enough`: deeper than that need not be
    counted. TooHard where a tag has too many attributes."""
    depths, endless = _Depths(), set[str]()
    place = 0
    while part := PART.search(html, place):
        if enough is not None and depths.deepest > enough:
            break
        place = part.end()
        if part["rest"] and place < len(html) and html[place] != ">":
            raise TooHard  # a name, a value and a blank of each are counted
        name = (part["name"] or "").lower()
        if not name:
            depths.begin_within(part["data"] or part["comment"] or "")
        elif part["end"]:
            depths.end(name)
        else:
            depths.begin(name)
            if name in RAW and name not in endless:
                end = RAW[name].search(html, place)
                if end is None:
                    endless.add(name)  # looked for once: a page of nothing else is no trap
                else:
                    place = end.start()
                    depths.begin_within(html[part.end() : place])
    return depths.deepest


class _Depths:
    """What is open, wall by wall."""

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
        """Of what is text here, and may be none where drawings are: there ends do not count."""
        if self._foreign and "<" in text:
            for found in BEGIN.finditer(text):
                self.begin(found[1].lower())

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
