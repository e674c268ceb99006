"""The services a quote is made with: the analysis, the search, the FIPE table, the shops."""

from retoma.apps.quotes.clients.analysis import Analyst, Asked
from retoma.apps.quotes.clients.fipe import Fipe
from retoma.apps.quotes.clients.shopping import Shopping
from retoma.apps.quotes.clients.shops import Shops

__all__ = ["Analyst", "Asked", "Fipe", "Shopping", "Shops"]
