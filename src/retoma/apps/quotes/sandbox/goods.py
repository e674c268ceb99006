"""What people ask the price of, and the words they do it in. Made of a seed and a number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Any, Final

from retoma.apps.quotes.sandbox.money import to_cents

# Noun, category, makers, features (one of each group), R$ from and to.
WARES: Final = (
    ("notebook", "informática", ("Dell", "Lenovo", "Acer"), (("8 GB", "16 GB"), ('tela 15,6"', 'tela 14"')), 2_500, 9_000),
    ("monitor", "informática", ("LG", "Samsung", "Dell"), (('24"', '27"'), ("Full HD", "4K")), 600, 2_800),
    ("impressora", "informática", ("HP", "Epson", "Brother"), (("laser", "tanque de tinta"), ("Wi-Fi",)), 700, 3_200),
    ("geladeira", "eletrodomésticos", ("Brastemp", "Consul", "Electrolux"), (("110 V", "220 V"), ("375 L", "400 L")), 2_200, 6_500),
    ("ar-condicionado", "climatização", ("LG", "Elgin", "Gree"), (("9000 BTU", "12000 BTU"), ("frio", "quente & frio")), 1_600, 4_500),
    ("cadeira de escritório", "mobiliário", ("Flexform", "Cavaletti"), (("com braços",), ("até 120 kg", "até 150 kg")), 450, 2_600),
    ("projetor", "audiovisual", ("Epson", "BenQ"), (("3600 lúmens", "4000 lúmens"), ("HDMI",)), 2_400, 7_800),
    ("furadeira", "ferramentas", ("Bosch", "Makita", "DeWalt"), (("127 V", "220 V"), ("650 W", "800 W")), 220, 1_100),
)  # fmt: skip
LINES: Final = ("Prime", "Essencial", "Pro", "Max", "Eco")
NEVER: Final = ("usado", "capa", "peça")  # in the title of what is something else
# How an inventory calls one thing: two letters, its number, and for an odd one two more letters.
CODE: Final = re.compile(r"\b([A-Z]{2})(\d{5,9})(?:-([A-Z]{2}))?\b", re.IGNORECASE)


class Odd(StrEnum):
    """What may be wrong with one thing, wherever it is asked about; the letters of its code."""

    NO_TOOL = "NT"  # the model answers with a sentence, no tool is used
    NOT_JSON = "NJ"  # the plan is a text that is no JSON
    WRONG_SHAPE = "WS"  # the plan has fields of other types, and lacks one
    CUT_SHORT = "CS"  # the model ran out of tokens in its plan
    REFUSED = "RF"  # the model will not
    NO_RESULTS = "NR"  # nobody sells it
    UNKNOWN_CAR = "UC"  # a car that is not in the table
    BLOCKED = "BL"  # from here on: every shop's page is of this one kind
    CAPTCHA = "CA"
    GONE = "GO"
    NO_PRICE = "NP"
    ON_REQUEST = "OR"
    ZERO = "ZR"
    NEGATIVE = "NG"
    DOLLARS = "US"
    SLOW = "SL"
    NESTED = "HB"
    SWOLLEN = "GZ"
    TO_LOOPBACK = "LO"
    TO_METADATA = "MD"
    TO_PRIVATE = "PV"
    ENDLESS = "EN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One thing that is sold in shops."""

    n: int
    odd: Odd | None
    noun: str
    category: str
    brand: str
    line: str
    features: tuple[str, ...]
    value: Decimal  # what it is worth; honest shops are near

    @property
    def code(self) -> str:
        return code(self.brand[:2], self.n, self.odd)

    @property
    def name(self) -> str:
        return f"{self.noun} {self.brand} {self.line} {self.code}"

    @property
    def description(self) -> str:
        return f"{self.name.capitalize()[:1]}{self.name[1:]}, {', '.join(self.features)}"

    @property
    def plan(self) -> Mapping[str, Any]:
        """What a search plan of it says."""
        return {
            "query": f"{self.name} {self.features[0]}",
            "category": self.category,
            "brand": self.brand,
            "must_have": list(self.features[:1]),
            "must_not": list(NEVER),
        }


def code(letters: str, n: int, odd: Odd | None) -> str:
    return f"{letters.upper()}{n:05d}" + ("" if odd is None else f"-{odd}")


def read_code(text: str) -> tuple[str, int, Odd | None] | None:
    """Letters, number and oddity of the first code in it."""
    found = CODE.search(text)
    if found is None:
        return None
    letters, number, odd = found.groups()
    known = odd is not None and odd.upper() in set(Odd)
    return letters.upper(), int(number), Odd(odd.upper()) if known else None


def product(seed: int, n: int, odd: Odd | None = None) -> Product:
    chance = Random(f"{seed}:product:{n}")  # noqa: S311 — a world, not a secret
    noun, category, makers, features, least, most = chance.choice(WARES)
    return Product(
        n=n,
        odd=odd,
        noun=noun,
        category=category,
        brand=chance.choice(makers),
        line=chance.choice(LINES),
        features=tuple(chance.choice(group) for group in features),
        value=to_cents(round(chance.uniform(least, most), 2)),
    )
