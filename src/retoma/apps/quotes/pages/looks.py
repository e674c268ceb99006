"""What the pages of quotes have in common: what moves them, how a status looks, what a form says."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from retoma.apps.quotes.api.how import QuoteLine
from retoma.apps.quotes.api.lotes import LoteShown
from retoma.apps.quotes.model import KIND, METHOD, QuoteStatus, meanings_in
from retoma.engine.store.cost import Total
from retoma.web.money import TotalShown
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


def lote_given(lote: LoteShown, view: View) -> dict[str, Any]:
    """What a template says of a lote."""
    return {
        "lote": lote,
        "looks": LOOKS,
        "bar": bar_of(lote),
        "share": lote.progress_percentage / 100,
        "spent": money(view, lote.cost.spent),
        "saved": money(view, lote.cost.saved),
        "state": lote_state(lote),
        "budget": lote.orcamento and sum_told(view, lote.orcamento.budget),
        "uncounted": lote.orcamento
        and lote.orcamento.unconverted
        and sum_told(view, lote.orcamento.unconverted),
        "meanings": meanings_in(view.language),
    }


def lote_state(lote: LoteShown) -> str:
    """Its colour."""
    if lote.finished:
        if lote.by_status[QuoteStatus.ERROR]:
            return "dead"
        return "canceled" if lote.by_status[QuoteStatus.CANCELED] else "done"
    return "paused" if lote.paused else "running"


def bar_of(lote: LoteShown) -> list[tuple[str, float, float]]:
    """Its parts: the look of each, where it begins, how wide it is."""
    return parts_of(((LOOKS[each], lote.by_status[each]) for each in PARTS), lote.total)


def money(view: View, total: TotalShown) -> str:
    """In the currencies it was paid in; nothing, where nothing was paid."""
    return view.money(Total(usd=Decimal(total.usd), brl=Decimal(total.brl)))


def sum_told(view: View, amount: str) -> str:
    """Of `25.00 BRL`."""
    number, currency = amount.split()
    paid = Decimal(number)
    return view.money(Total(brl=paid) if currency == "BRL" else Total(usd=paid))


def reais(view: View, price: Decimal) -> str:
    """What a thing costs."""
    return view.money(Total(brl=price))


def quote_rows(
    pages: Pages, view: View, quotes: list[QuoteLine], *, mixed: bool = False
) -> dict[str, Markup]:
    """Of each quote its row, whichever page it stands on; its lote too where they are mixed."""
    return {
        f"quote-{each.id}": pages.render(
            "quotes/quote_row.html",
            view,
            quote=each,
            look=LOOKS[each.status],
            mixed=mixed,
            kinds=KINDS,
            meanings=meanings_in(view.language),
            price=None if each.price is None else reais(view, each.price),
        )
        for each in quotes
    }
