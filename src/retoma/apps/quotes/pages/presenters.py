"""How the pages of quotes present rows: the colour of a status, labels, bars, money."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from retoma.apps.quotes.model import KIND, METHOD, QuoteStatus, meanings_in
from retoma.apps.quotes.service.lotes import Lote
from retoma.apps.quotes.service.quotes import QuoteLine
from retoma.engine.rules.money import NANOS, Currency, Money
from retoma.engine.store.cost import CostSeen, Total
from retoma.web.pages.bars import parts_of
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View
from retoma.words import Said, say

CONCERN: Final = Concern(kinds=(KIND,), pause=0.5)

# A status is shown by its own name; this is the colour of it.
LOOKS: Final[Mapping[QuoteStatus, str]] = {
    QuoteStatus.PENDING: "waiting",
    QuoteStatus.PROCESSING: "running",
    QuoteStatus.DONE: "done",
    QuoteStatus.ERROR: "dead",
    QuoteStatus.CANCELED: "canceled",
}
# What the analysis of a description answers with; what has no word here is told by its own name.
FIELDS: Final[Mapping[str, Said]] = {
    "tool": say("Quoted as"),
    "brand": say("Brand"),
    "model": say("Model of it"),
    "year": say("Year"),
    "fuel": say("Fuel"),
    "kind": say("Kind of vehicle"),
    "query": say("Looked for"),
    "category": say("Category"),
    "must_have": say("Must have"),
    "must_not": say("Must not have"),
}
# What is to be quoted, and by what the analysis goes about it.
KINDS: Final[Mapping[str, Said]] = {
    "auto": say("product or vehicle, by its analysis"),
    "product": say("product"),
    "vehicle": say("vehicle"),
    "car": say("car"),
    "motorcycle": say("motorcycle"),
    "truck": say("truck"),
    "search_plan": say("product"),
}
# How a price came about.
METHODS: Final[Mapping[str, Said]] = {
    METHOD: say("median of the prices, outliers set apart"),
    "fipe": say("FIPE table"),
}
# Of a bar, from left to right: what has ended, then what is at it.
PARTS: Final = (
    *(QuoteStatus.DONE, QuoteStatus.CANCELED, QuoteStatus.ERROR),
    QuoteStatus.PROCESSING,
)


def present_lote(lote: Lote, view: View) -> dict[str, Any]:
    """Return what the templates of a lote show."""
    budget = lote.orcamento
    return {
        "lote": lote,
        "looks": LOOKS,
        "bar": parts_of(((LOOKS[each], lote.by_status[each]) for each in PARTS), lote.total),
        "share": lote.progress_percentage / 100,
        "spent": format_spent(view, lote.cost),
        "saved": view.money(Total.sum(each.saved for each in lote.cost)),
        "state": _look_of(lote),
        "budget": budget and _format_money(view, budget.budget.money),
        "uncounted": budget and budget.unconverted and _format_money(view, budget.unconverted),
        "meanings": meanings_in(view.language),
    }


def _look_of(lote: Lote) -> str:
    """The colour of a lote."""
    if lote.finished:
        if lote.by_status[QuoteStatus.ERROR]:
            return "dead"
        return "canceled" if lote.by_status[QuoteStatus.CANCELED] else "done"
    return "paused" if lote.paused else "running"


def format_spent(view: View, costs: Sequence[CostSeen]) -> str:
    """In the currencies it was paid in; nothing, where nothing was paid."""
    return view.money(Total.sum(each.spent for each in costs))


def _format_money(view: View, money: Money) -> str:
    amount = Decimal(money.nanos) / NANOS
    is_real = money.currency is Currency.BRL
    return view.money(Total(brl=amount) if is_real else Total(usd=amount))


def format_price(view: View, price: Decimal) -> str:
    return view.money(Total(brl=price))


def render_quote_rows(
    pages: Pages, view: View, quotes: Sequence[QuoteLine], *, mixed: bool = False
) -> dict[str, Markup]:
    """Render the row of each quote; with its lote where a page mixes lotes."""
    return {
        f"quote-{each.id}": pages.render(
            "quotes/quote_row.html",
            view,
            quote=each,
            look=LOOKS[each.status],
            mixed=mixed,
            kinds=KINDS,
            meanings=meanings_in(view.language),
            price=None if each.price is None else format_price(view, each.price),
        )
        for each in quotes
    }
