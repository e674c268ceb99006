"""Decode text that strangers wrote, by a fixed list of charsets.

Python knows a hundred, and some of them take the square of a text, or raise what nobody expects: which of them reads
a page must not be the page's to say.
"""

from typing import Final

UNSAID: Final = "utf-8"
# By the names that pages use; in lower case, the list of the WHATWG.
CHARSETS: Final = {
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8"), "utf-8"),
    **dict.fromkeys(("windows-1252", "cp1252", "x-cp1252", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1"), "latin-1"),
    **dict.fromkeys(("utf-16", "utf16"), "utf-16"),
    **dict.fromkeys(("utf-16le", "utf-16-le"), "utf-16-le"),
    **dict.fromkeys(("utf-16be", "utf-16-be"), "utf-16-be"),
}
LONGEST: Final = 1_000  # characters of a Content-Type; a longer one says nothing


def decode_text(content: bytes, named: str | None = None) -> str:
    """Decode by the charset of this name; by UTF-8 where the name is not on the list. Never raises."""
    return content.decode(known_charset(named) or UNSAID, "replace")


def known_charset(named: str | None) -> str | None:
    """Python's name of a charset on the list; None for any other."""
    return None if named is None else CHARSETS.get(named.strip().lower())


def charset_of(content_type: str) -> str | None:
    """The charset that a Content-Type names, as it stands there."""
    for part in content_type[:LONGEST].split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return None
