"""The value itself: goes around as an object that nobody can print by accident."""

import hmac
from typing import Final, Never

from retoma.secret.known import known

STARS: Final = "***"


class Secret:
    """A text that must not be seen. `reveal()` is the only way to it, and easy to search for."""

    __slots__ = ("_plain",)

    def __init__(self, plain: str) -> None:
        if not plain:
            raise ValueError("a secret is not empty")
        self._plain = plain
        known.add(plain)  # from now on no log line of this process shows it

    def reveal(self) -> str:
        """The plain text, for whoever hands it to the other side at this very place."""
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
            "a secret does not leave its process: pass on where it lies, or reveal() it where"
            " it is used"
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
