"""Plain text and HTML: whatever they were written in; of a page what a person would read of it."""

import codecs
import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from retoma.engine.isolation.charset import known_charset
from retoma.engine.rules.errors import Permanent
from retoma.words import say

MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset=[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
LOOKED_AT: Final = 4_096  # bytes by which a file is judged
MOST_CONTROL: Final = 0.02  # of them, that no text has
CONTROL: Final = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
DECLARED: Final = re.compile(rb"<\?xml[^>]{0,200}\?>")
PAGE: Final = re.compile(rb"<(!doctype html|html|head|body)\b", re.IGNORECASE)
UNSEEN: Final = ["script", "style", "noscript", "template", "iframe", "object", "svg"]
BLOCKS: Final = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4"
        " h5 h6 header hr li main nav ol p pre section table td th title tr ul",
    )
)


def looks_like_text(content: bytes) -> bool:
    head = content[:LOOKED_AT]
    if head.startswith(tuple(mark for mark, _ in MARKS)) or _is_wide(head) is not None:
        return True
    return len(CONTROL.findall(head)) <= MOST_CONTROL * len(head)


def looks_like_page(content: bytes) -> bool:
    """Whether it says that it is HTML, or begins as it does."""
    plain = content[:LOOKED_AT]
    wide = _is_wide(plain)
    if wide is not None:
        plain = plain.decode(wide, "replace").encode()
    plain = plain.removeprefix(codecs.BOM_UTF8).lstrip()
    if (declared := DECLARED.match(plain)) is not None:
        plain = plain[declared.end() :].lstrip()
    while plain.startswith(b"<!--"):
        plain = plain[4:].partition(b"-->")[2].lstrip()
    return PAGE.match(plain) is not None


def read_text(content: bytes) -> str:
    return _decoded(content, None)


def read_page(content: bytes) -> str:
    """Permanent `corrupt` where it is nested deeper than any page."""
    said = CHARSET.search(content[:LOOKED_AT])
    html = _decoded(content, None if said is None else said[1].decode("ascii", "replace"))
    # The way out of the house comes along with it: only who reads a page waits for that.
    from retoma.markup import too_hard  # noqa: PLC0415

    if too_hard(html):
        raise Permanent(
            say("the page is nested deeper than any, or a tag of it has too many attributes"),
            code="corrupt",
        )
    tree = LexborHTMLParser(html)
    tree.strip_tags(UNSEEN)
    parts = []
    root = tree.root
    for node in root.traverse(include_text=True) if root is not None else ():
        if node.tag == "-text":
            parts.append(node.text(deep=False) or "")
        elif node.tag in BLOCKS:
            parts.append("\n")
    return "".join(parts)


def _decoded(content: bytes, said: str | None) -> str:
    """By its mark, by its shape, by UTF-8 if it can be that, by what it says, else as Windows has it."""
    for mark, name in MARKS:
        if content.startswith(mark):
            return content.decode(name, "replace")
    wide = _is_wide(content[:LOOKED_AT])
    if wide is not None:
        return content.decode(wide, "replace")
    for name in filter(None, ("utf-8", known_charset(said))):
        try:
            return content.decode(name)
        except UnicodeDecodeError:
            continue
    return content.decode("cp1252", "replace")


def _is_wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of it is zero, or nearly."""
    half = len(head) // 2
    if half < 2:
        return None
    for name, zeros, others in (
        ("utf-16-le", head[1::2], head[0::2]),
        ("utf-16-be", head[0::2], head[1::2]),
    ):
        if zeros.count(0) > 0.7 * half and others.count(0) < 0.1 * half:
            return name
    return None
