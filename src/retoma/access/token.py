"""Tokens: what a person holds, what we keep of it, and how the two are compared."""

import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Final

from retoma.engine.ports import Ids

DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ENTROPY: Final = 32  # bytes: no list of hashes is long enough to find one
WIDTH: Final = 43  # digits to the base 62 that 32 bytes need
LONGEST: Final = 256  # characters; whatever is longer is no token, and is not worked on
NOBODY: Final = "0" * 16  # an id no key has: what is malformed is looked up as this one


class Sort(StrEnum):
    """What a token opens, as it begins."""

    KEY = "retoma"
    LINK = "retoma_link"
    SESSION = "retoma_session"


@dataclass(frozen=True, slots=True)
class Made:
    """A new token, and what is kept of it."""

    id: str
    token: str = field(repr=False)
    hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """A token as somebody brought it: which one it says it is, and the hash it must have."""

    id: str
    hash: str = field(repr=False)


def make(sort: Sort, ids: Ids) -> Made:
    id_ = ids.unguessable(8).hex()
    token = f"{sort}_{id_}_{_base62(ids.unguessable(ENTROPY))}"
    return Made(id_, token, digest(token))


def read(sort: Sort, text: str) -> Given:
    """Whatever was brought, at the same cost: what is no token asks for an id nobody has."""
    short = text if len(text) <= LONGEST else ""
    found = _PATTERNS[sort].fullmatch(short)
    return Given(found[1] if found else NOBODY, digest(short))


def same(kept: str | None, given: str) -> bool:
    """Compared in constant time; with nobody's hash too, so that an unknown id costs the same."""
    equal = hmac.compare_digest(kept or _NOBODYS, given)
    return equal and kept is not None


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(cookie: str) -> str:
    """What a form must bring, made of the cookie alone: nothing more is to be kept."""
    return sha256(b"csrf:" + cookie.encode()).hexdigest()


def _base62(raw: bytes) -> str:
    number, digits = int.from_bytes(raw), ""
    while number:
        number, last = divmod(number, 62)
        digits = DIGITS[last] + digits
    return digits.rjust(WIDTH, DIGITS[0])


_NOBODYS: Final = digest("")
_PATTERNS: Final = {
    sort: re.compile(rf"{sort}_([0-9a-f]{{16}})_[0-9A-Za-z]{{{WIDTH}}}", re.ASCII)
    for sort in Sort
}
