"""The truth of this world: for each description, what a right answer to every question is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from random import Random
from typing import Any, Final

from retoma.apps.quotes.sandbox.cars import CAR, Car, Table
from retoma.apps.quotes.sandbox.goods import Odd, Product, code, product, read_code
from retoma.apps.quotes.sandbox.offers import Offer, median, offers
from retoma.engine.rules.errors import BadInput
from retoma.words import say

SIZE: Final = 10_000  # descriptions
VEHICLES: Final = 0.2  # of them
MARK: Final = "PT"  # before the number of a car in an inventory
AS_FAR: Final = 100  # products looked at for one that is like some words
LOST: Final = {"brand": "Volkswagen", "model": "Brasília 1.6", "year": 1974, "fuel": "Gasolina"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vehicle:
    """A car as somebody asks for its value."""

    n: int
    odd: Odd | None
    car: Car | None  # None: it is not in the table
    asked: Mapping[str, Any]  # brand, model, year, fuel: as people say them

    @property
    def code(self) -> str:
        return code(MARK, self.n, self.odd)

    @property
    def description(self) -> str:
        asked = self.asked
        return (
            f"Veículo {asked['brand']} {asked['model']} ano {asked['year']}"
            f" {asked['fuel'].lower()}, patrimônio {self.code}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What becomes of a description, if all goes well."""

    tool: str  # search_plan or vehicle
    input: Mapping[str, Any]  # of the tool
    offers: Sequence[Offer] = ()
    car: Car | None = None
    price: Decimal | None  # the median of honest offers, or the table's; None: there is none


class Catalogue:
    """Every product and vehicle of one seed."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.table = Table(seed)
        self._offers = lru_cache(maxsize=4096)(self._made_offers)

    def describe(self, n: int, odd: Odd | None = None) -> str:
        """The words of one request. 10,000 of them, no two alike; an odd one is so on purpose."""
        if not 0 <= n < SIZE:
            raise BadInput(
                say("the catalogue has the numbers 0 to {last}, not {n}", last=SIZE - 1, n=n)
            )
        return self.item(n, odd).description

    def item(self, n: int, odd: Odd | None = None) -> Product | Vehicle:
        if self.is_vehicle(n, odd):
            return self._vehicle(n, odd)
        return product(self.seed, n, odd)

    def is_vehicle(self, n: int, odd: Odd | None = None) -> bool:
        """Who is odd is a product, but for a car that is in no table."""
        if odd is not None:
            return odd is Odd.UNKNOWN_CAR
        return Random(f"{self.seed}:kind:{n}").random() < VEHICLES  # noqa: S311 — a world

    def expected(self, n: int, odd: Odd | None = None) -> Expected:
        item = self.item(n, odd)
        if isinstance(item, Vehicle):
            price = None if item.car is None else item.car.value
            return Expected(tool="vehicle", input=item.asked, car=item.car, price=price)
        found = self.offers(item)
        honest = [each.price for each in found if each.honest and each.price is not None]
        return Expected(tool="search_plan", input=item.plan, offers=found, price=median(honest))

    def read(self, text: str) -> Product | Vehicle:
        """What somebody means: by its code, by a car's name, else something made of the words."""
        marked = read_code(text)
        if marked is None:
            return self._guessed(text)
        letters, n, odd = marked
        if letters == MARK:
            return self._vehicle(n, odd)
        return product(self.seed, n, odd)

    def find(self, query: str) -> Sequence[Offer]:
        """Who sells what somebody looks for."""
        meant = self.read(query)
        return () if isinstance(meant, Vehicle) else self.offers(meant)

    def offers(self, item: Product) -> Sequence[Offer]:
        return self._offers(item.n, item.odd)

    def _made_offers(self, n: int, odd: Odd | None) -> Sequence[Offer]:
        return offers(self.seed, product(self.seed, n, odd))

    def _vehicle(self, n: int, odd: Odd | None) -> Vehicle:
        if odd is Odd.UNKNOWN_CAR:
            return Vehicle(n=n, odd=odd, car=None, asked=LOST)
        chance = Random(f"{self.seed}:vehicle:{n}")  # noqa: S311 — a world, not a secret
        model = chance.choice(self.table.cars)
        return self._seen(n, odd, self.table.car(model, chance.choice(model.years)))

    def _seen(self, n: int, odd: Odd | None, car: Car) -> Vehicle:
        asked: dict[str, Any] = {
            "brand": car.model.make.called,
            "model": car.model.called,
            "year": car.year,
            "fuel": car.model.fuel,
        }
        if car.model.make.kind != CAR:
            asked["kind"] = car.model.make.kind
        return Vehicle(n=n, odd=odd, car=car, asked=asked)

    def _guessed(self, text: str) -> Product | Vehicle:
        n = SIZE + int(sha256(text.strip().casefold().encode()).hexdigest()[:6], 16)
        model = self.table.named(text)
        if model is None:
            return self._like(text.casefold(), n)
        said = [int(word) for word in text.replace(",", " ").split() if word.isdigit()]
        years = [year for year in said if year in model.years]
        return self._seen(n, None, self.table.car(model, years[0] if years else model.years[0]))

    def _like(self, text: str, n: int) -> Product:
        """The next product whose noun is among the words; if none is, the next."""
        near = (product(self.seed, each) for each in range(n, n + AS_FAR))
        return next((each for each in near if each.noun in text), product(self.seed, n))
