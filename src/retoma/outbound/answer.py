"""What came back: a status, headers, and a body that was small enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.engine.isolation.bounded_json import parse_beside
from retoma.engine.isolation.charset import charset_of, decode_text
from retoma.engine.rules.errors import Transient, Unsure
from retoma.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whole, unpacked, and in no text made of it."""

    status: int
    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: bytes = field(repr=False)
    url: str = field(repr=False)  # after the last redirect; may hold a key
    where: str
    changed: bool = False  # it was asked for something that changes things, or is paid for

    async def json(self) -> Any:
        """The body as JSON; what cannot be read, or is too much, is a failure of the other side."""
        try:
            return await parse_beside(self.body)
        except ValueError:
            pass
        text = say("{where}: the answer is not JSON", where=self.where)
        if self.changed:
            raise Unsure(say("{text}; it may have happened", text=text), code="unsure")
        raise Transient(text, code="bad_answer")

    def text(self) -> str:
        """The body, by the charset its header names; by UTF-8 where that is none of those we know."""
        return decode_text(self.body, charset_of(self.headers.get("content-type", "")))
