"""What was paid for before a quote came to us, read as our own: an analysis, a search, pages that were tested.

From an adopted table, or from moved code. What cannot be read is not paid for again behind anybody's back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from retoma.apps.quotes.clients.analysis import TOOLS, Asked
from retoma.apps.quotes.model import NotAPrice, Offer, Tested, read_price

ANALYSIS: Final = "claude_payload_json"
SEARCH: Final = "google_shopping_response_json"
TESTED: Final = "tested_products"
PAID: Final = (ANALYSIS, SEARCH)
LONGEST: Final = 2000  # characters of an address


class Unreadable(ValueError):
    """What was paid for, in a shape that we do not know."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True, slots=True)
class Before:
    """What need not be done again."""

    asked: Asked | None
    found: dict[str, Any] | None
    tested: Mapping[str, Tested]  # by address

    @property
    def offers(self) -> list[Offer]:
        """The tested, as if a search had named them."""
        return [Offer(each.title, each.url, each.store) for each in self.tested.values()]


def read_before(was: Mapping[str, Any]) -> Before:
    """Unreadable where something was paid for and is in no shape of ours."""
    analysis, search = was.get(ANALYSIS), was.get(SEARCH)
    resume = was.get("resume_data")
    listed = resume.get(TESTED) if isinstance(resume, Mapping) else None
    tested = [_tested(each) for each in listed] if isinstance(listed, list) else []
    return Before(
        None if analysis is None else _asked(analysis),
        None if search is None else _found(search),
        {each.url: each for each in tested if each is not None},
    )


# — an analysis: as we keep it, as the service answered, or the bare arguments of the tool —


def _asked(told: Any) -> Asked:
    if not isinstance(told, Mapping):
        raise Unreadable(ANALYSIS)
    try:
        usage = told.get("usage") or {}
        tokens = [
            int(told.get(name) or usage.get(name) or 0)
            for name in ("input_tokens", "output_tokens")
        ]
        tool, said = _used(told)
        read = TOOLS[tool].model_validate({**said}, strict=False)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Unreadable(ANALYSIS) from None
    model = told.get("model") if tool == "search_plan" or "usage" in told else None
    named = model if isinstance(model, str) else "adopted"
    return Asked(
        "vehicle" if tool == "vehicle" else "search_plan",
        read.model_dump(mode="json"),
        named,
        *tokens,
    )


def _used(told: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(told.get("said"), Mapping):
        return str(told.get("tool")), told["said"]
    blocks = told.get("content")
    if isinstance(blocks, list):
        uses = [each for each in blocks if isinstance(each, Mapping) and "input" in each]
        return (str(uses[0].get("name")), uses[0]["input"]) if len(uses) == 1 else ("", {})
    if isinstance(told.get("query"), str):
        return "search_plan", _known("search_plan", told)
    return "vehicle", _known("vehicle", told)


def _known(tool: str, told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in TOOLS[tool].model_fields if name in told}


# — a search —


def _found(told: Any) -> dict[str, Any]:
    results = told.get("shopping_results") if isinstance(told, Mapping) else told
    if not isinstance(results, list):
        raise Unreadable(SEARCH)
    error = told.get("error") if isinstance(told, Mapping) else None
    return {"error": error, "shopping_results": results}


# — pages —


def _tested(told: Any) -> Tested | None:
    """None where nobody could say which page that was."""
    given: dict[str, Any] = dict(told) if isinstance(told, Mapping) else {"url": told}
    url = given.get("url") or given.get("link")
    host = _host_of(url)
    if not isinstance(url, str) or host is None:
        return None
    store = str(given.get("store") or host)[:100]
    page = partial(Tested, url[:LONGEST], store, str(given.get("title") or "")[:300])
    if given.get("price") is None:
        return page(code=str(given.get("code") or "tested_before")[:100])
    try:
        price = read_price(given["price"], given.get("currency"))
    except NotAPrice as error:
        return page(code=error.code)
    return page(price=price, method=str(given.get("method") or "adopted")[:100])


def _host_of(url: Any) -> str | None:
    """None where it is no address of a page."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return None
    return parts.netloc if parts and parts.scheme in ("http", "https") else None
