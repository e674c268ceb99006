"""The answer to an outbound request: status, headers and a size-capped body."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.engine.isolation.bounded_json import parse_beside
from retoma.engine.isolation.charset import charset_of, decode_text
from retoma.engine.rules.errors import Transient, Unsure
from retoma.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer, decompressed. Its repr shows neither headers, body nor URL."""

    status: int
    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: bytes = field(repr=False)
    url: str = field(repr=False)  # after the last redirect; may hold a key
    where: str
    changed: bool = False  # the request has side effects or costs money

    async def json(self) -> Any:
        """Parse the body as JSON. A body that is not JSON, or too large, is a failure of the service."""
        try:
            return await parse_beside(self.body)
        except ValueError:
            pass
        text = say("{where}: the answer is not JSON", where=self.where)
        if self.changed:
            raise Unsure(say("{text}; it may have happened", text=text), code="unsure")
        raise Transient(text, code="bad_answer")

    def text(self) -> str:
        """Decode the body with the charset of its header; with UTF-8 if the charset is unknown."""
        return decode_text(self.body, charset_of(self.headers.get("content-type", "")))
