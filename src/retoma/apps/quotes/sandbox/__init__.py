"""The four services that quotes are made with, in a box: analyses, searches, cars, and shops."""

from retoma.apps.quotes.sandbox.cars import Car, Table
from retoma.apps.quotes.sandbox.catalogue import SIZE, Catalogue, Expected, Vehicle
from retoma.apps.quotes.sandbox.goods import Odd, Product
from retoma.apps.quotes.sandbox.messages import KEY as ANTHROPIC_KEY
from retoma.apps.quotes.sandbox.messages import fingerprint
from retoma.apps.quotes.sandbox.offers import SPREAD, STORES, Offer, Page
from retoma.apps.quotes.sandbox.search import KEY as SERPAPI_KEY
from retoma.apps.quotes.sandbox.services import LATENCIES, Services, build_services
from retoma.apps.quotes.sandbox.shops import SELECTORS
from retoma.sandbox.box import paid_twice

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
