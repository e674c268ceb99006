"""The four services that quotes are made with, in a box: analyses, searches, cars, and shops."""

from retoma.sandbox.quotes.cars import Car, Table
from retoma.sandbox.quotes.catalogue import SIZE, Catalogue, Expected, Vehicle
from retoma.sandbox.quotes.goods import Odd, Product
from retoma.sandbox.quotes.messages import KEY as ANTHROPIC_KEY
from retoma.sandbox.quotes.messages import fingerprint
from retoma.sandbox.quotes.offers import SPREAD, STORES, Offer, Page
from retoma.sandbox.quotes.search import KEY as SERPAPI_KEY
from retoma.sandbox.quotes.services import LATENCIES, Services, build_services, paid_twice
from retoma.sandbox.quotes.shops import SELECTORS

__all__ = [
    "ANTHROPIC_KEY",
    "LATENCIES",
    "SELECTORS",
    "SERPAPI_KEY",
    "SIZE",
    "SPREAD",
    "STORES",
    "Car",
    "Catalogue",
    "Expected",
    "Odd",
    "Offer",
    "Page",
    "Product",
    "Services",
    "Table",
    "Vehicle",
    "build_services",
    "fingerprint",
    "paid_twice",
]
