"""Tables that people hand in, as their spreadsheets write them."""

import unicodedata
from contextlib import suppress
from typing import Final

from retoma.engine.errors import BadInput
from retoma.words import Said

ENCODINGS: Final = ("utf-8-sig", "cp1252")  # the second is Brazil's, when nobody says otherwise


def decoded(content: bytes, refusal: Said) -> str:
    for encoding in ENCODINGS:
        with suppress(UnicodeDecodeError):
            return content.decode(encoding)
    raise BadInput(refusal)


def plain(word: str) -> str:
    """What stands in a heading, without its accents and capitals."""
    parts = unicodedata.normalize("NFD", word.strip().casefold())
    return "".join(each for each in parts if not unicodedata.combining(each))
