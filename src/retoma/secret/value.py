"""A secret value that cannot be printed by accident."""

import hmac
from typing import Final, Never

from retoma.secret.known import known

STARS: Final = "***"


class Secret:
    """A text that must stay hidden. Only `reveal()` returns it, so that uses are easy to find."""

    __slots__ = ("_plain",)

    def __init__(self, plain: str) -> None:
        if not plain:
            raise ValueError("a secret must not be empty")
        self._plain = plain
        known.add(plain)  # from now on redaction removes it from this process's logs

    def reveal(self) -> str:
        """Return the plain text. Call it only where the text is handed to the other side."""
        return self._plain

    def __repr__(self) -> str:
        return STARS

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(STARS, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._plain), _bytes(other._plain))

    def __hash__(self) -> int:
        return hash(("secret", self._plain))

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> Never:
        raise TypeError(
            "a Secret cannot be pickled: pass a reference to it, or call reveal() where the"
            " value is used"
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
