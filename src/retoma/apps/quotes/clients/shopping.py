"""Google Shopping by SerpAPI: one paid search, its answer kept whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from retoma.apps.quotes.model import NotAPrice, Offer, Plan, read_price
from retoma.engine.rules.errors import Permanent, Unsure
from retoma.outbound import FailureType, Outbound, Policy
from retoma.secret import Secret
from retoma.words import say

DEADLINE: Final = 30.0
AT_ONCE: Final = 1_000  # searches: how many there are is for slots and rates to say
LARGEST: Final = 5 << 20  # bytes
MOST: Final = 1_000  # results that are kept; one search gives a hundred at most
LONGEST_URL: Final = 2_000  # characters
# They concern our key or how we ask, whatever the quote: it waits for a person.
ANSWERS: Final[Mapping[int, FailureType]] = {
    400: FailureType(Permanent, "rejected"),
    401: FailureType(Permanent, "unauthorized"),
    403: FailureType(Permanent, "unauthorized"),
    404: FailureType(Permanent, "wrong_address"),
}


@dataclass(frozen=True, slots=True)
class Shopping:
    """The search, at one address, by one key."""

    out: Outbound
    base: str
    key: Secret

    async def search(self, plan: Plan) -> dict[str, Any]:
        """What it answers; nothing found is an answer too."""
        asked = {"engine": "google_shopping", "q": plan.query, "hl": "pt-br", "gl": "br"}
        told = await self._told({**asked, "api_key": self.key})
        if not isinstance(told, dict):
            raise Permanent(
                say("{where}: the answer is no object", where="serpapi"), code="bad_answer"
            )
        results = told.get("shopping_results")
        return {
            "error": told.get("error"),
            "shopping_results": results[:MOST] if isinstance(results, list) else [],
        }

    async def _told(self, asked: dict[str, Any]) -> Any:
        """Unsure where nobody knows whether it was paid for; of one too large that is known."""
        url = self.base.rstrip("/") + "/search.json"
        try:
            answer = await self.out.get(_policy(self.base), url, params=asked)
            return await answer.json()
        except Unsure as error:
            if error.code != "too_large":
                raise
            raise Permanent(str(error), code=error.code) from None


@lru_cache(maxsize=4)
def _policy(base: str) -> Policy:
    return Policy.toward(
        "quotes serpapi",
        base,
        deadline=DEADLINE,
        most_bytes=LARGEST,
        most_unpacked=LARGEST,
        answers=ANSWERS,
        connections=AT_ONCE,
        paid=True,
    )


def offers_of(told: dict[str, Any], plan: Plan) -> list[Offer]:
    """The pages it names, each once; what the plan forbids is left out."""
    found = (_offer(each) for each in told["shopping_results"])
    fits = [each for each in found if each is not None and _fits(each, plan)]
    return list({each.url: each for each in reversed(fits)}.values())[::-1]


def chosen_of(offers: Sequence[Offer], most: int) -> list[Offer]:
    """Those that are tested: the first of each shop before a second of any."""
    firsts: dict[str, Offer] = {}
    for each in offers:
        firsts.setdefault(each.store, each)
    seconds = [each for each in offers if each is not firsts[each.store]]
    return [*firsts.values(), *seconds][:most]


def _offer(told: Any) -> Offer | None:
    if not isinstance(told, dict):
        return None
    url = told.get("link") or told.get("product_link")
    if not isinstance(url, str) or not url.isprintable() or len(url) > LONGEST_URL:
        return None
    if not url.casefold().startswith(("http://", "https://")):
        return None
    listed = told.get("extracted_price")
    try:
        price = None if listed is None else read_price(listed)
    except NotAPrice:
        price = None
    title, store = _words(told.get("title"), 300), _words(told.get("source"), 100)
    return Offer(title, url, store or _words(url.split("/")[2], 100) or "?", price)


def _words(said: Any, most: int) -> str:
    """What can be kept and shown of it."""
    return "".join(each for each in str(said or "")[:most] if each.isprintable()).strip()


def _fits(offer: Offer, plan: Plan) -> bool:
    title = offer.title.casefold()
    return all(word.casefold() in title for word in plan.must_have) and not any(
        word.casefold() in title for word in plan.must_not
    )
