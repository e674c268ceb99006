"""Who sells a product, at what price, and what becomes of somebody who opens the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Final

from retoma.apps.quotes.sandbox.goods import NEVER, Odd, Product
from retoma.apps.quotes.sandbox.money import to_cents

SPREAD: Final = 0.05  # honest prices are at most this share away from the value
HONEST: Final = (5, 7, 9, 11)  # how many of them; odd, so that their median is one of them
MANY: Final = (45, 61, 75)  # for one product in twenty: more than a page of results
DOLLAR: Final = Decimal("5.40")


class Page(StrEnum):
    """How a page shows its price, or why it does not."""

    JSON_LD = "json_ld"
    OPEN_GRAPH = "open_graph"
    MICRODATA = "microdata"
    MARKUP = "markup"  # in the page's own words only
    SLOW = "slow"  # right, but late
    BLOCKED = "blocked"  # 403
    CAPTCHA = "captcha"  # 200, and a riddle
    GONE = "gone"  # 404
    NO_PRICE = "no_price"
    ON_REQUEST = "on_request"  # sob consulta
    ZERO = "zero"
    NEGATIVE = "negative"
    DOLLARS = "dollars"
    NESTED = "nested"  # a hundred thousand elements, each in the other
    SWOLLEN = "swollen"  # small as sent, huge when unpacked
    TO_LOOPBACK = "to_loopback"  # leads to this machine
    TO_METADATA = "to_metadata"  # leads to the cloud's own address
    TO_PRIVATE = "to_private"  # leads into the house
    ENDLESS = "endless"  # larger than any page, as it is sent


WELL: Final = (Page.JSON_LD, Page.OPEN_GRAPH, Page.MICRODATA, Page.MARKUP)
READABLE: Final = frozenset({*WELL, Page.SLOW})
USUAL_ILLS: Final = (
    *(Page.BLOCKED, Page.CAPTCHA, Page.GONE, Page.NO_PRICE),
    *(Page.ON_REQUEST, Page.ZERO, Page.NEGATIVE, Page.DOLLARS),
)
RARE_ILLS: Final = (Page.NESTED, Page.SWOLLEN, Page.TO_LOOPBACK, Page.TO_METADATA)
RARELY: Final = 0.04  # of the ills
# An odd product whose pages are all of one kind.
ONLY: Final[Mapping[Odd, Page]] = {
    odd: Page(odd.name.lower()) for odd in Odd if odd.name.lower() in set(Page)
}

_FIRST: Final = ("Loja", "Casa", "Mundo", "Super", "Ponto", "Tech", "Mega", "Empório")
_SECOND: Final = ("Ideal", "Boa Vista", "& Cia", "do Norte", "Avenida")
STORES: Final[Mapping[str, str]] = {
    f"loja-{n:02d}": f"{_FIRST[n % len(_FIRST)]} {_SECOND[n // len(_FIRST)]}"
    for n in range(len(_FIRST) * len(_SECOND))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One result of a search, and the page it leads to."""

    product: Product
    place: int  # from 1, in the order of the search
    store: str
    title: str
    page: Page
    price: Decimal | None  # in R$, as the page says; None: it says none, or in other money
    listed: Decimal  # what the search says
    honest: bool  # the thing itself, at a price near its value, that can be read

    @property
    def id(self) -> str:
        odd = "" if self.product.odd is None else str(self.product.odd)
        return f"{self.product.n}{odd or '-'}{self.place}"

    @property
    def path(self) -> str:
        return f"/{self.store}/p/{self.id}"


def offers(seed: int, product: Product) -> Sequence[Offer]:
    """In the order of the search. None where the product says that nobody sells it."""
    if product.odd is Odd.NO_RESULTS:
        return ()
    chance = Random(f"{seed}:offers:{product.n}")  # noqa: S311 — a world, not a secret
    made = [_Made(chance, product, role) for role in _roles(chance)]
    chance.shuffle(made)
    return tuple(each.offer(place) for place, each in enumerate(made, 1))


def median(prices: Sequence[Decimal]) -> Decimal | None:
    """The one in the middle; for an even number of them the lower of the two."""
    return sorted(prices)[(len(prices) - 1) // 2] if prices else None


def _roles(chance: Random) -> list[str]:
    honest = chance.choice(MANY if chance.random() < 0.05 else HONEST)
    return (
        ["honest"] * honest
        + ["ill"] * chance.randint(1, 5)
        + ["outlier"] * chance.randint(0, 2)
        + ["decoy"] * chance.randint(0, 2)
    )


class _Made:
    """An offer before its place is known."""

    def __init__(self, chance: Random, product: Product, role: str) -> None:
        self._product = product
        self._role = role
        self._near = _times(product.value, chance.uniform(1 - SPREAD, 1 + SPREAD))
        self._far = _times(product.value, chance.choice((0.06, 0.15, 4.0, 7.5)))
        self._store = chance.choice(tuple(STORES))
        self._page = _page(chance, role, int(self._store[-2:]))
        if product.odd is not None and product.odd in ONLY:
            self._page, self._role = ONLY[product.odd], "honest"

    def offer(self, place: int) -> Offer:
        listed = self._near if self._role in ("honest", "ill") else self._far
        return Offer(
            product=self._product,
            place=place,
            store=self._store,
            title=self._title(place),
            page=self._page,
            price=_shown(self._page, listed),
            listed=listed,
            honest=self._role == "honest" and self._page in READABLE,
        )

    def _title(self, place: int) -> str:
        own = f"{self._product.name} {' '.join(self._product.features)}"
        return f"{NEVER[place % len(NEVER)]} {own}" if self._role == "decoy" else own


def _page(chance: Random, role: str, store: int) -> Page:
    ill = chance.choice(RARE_ILLS if chance.random() < RARELY else USUAL_ILLS)
    late = chance.random() < RARELY / 4
    if role == "ill":
        return ill
    return Page.SLOW if late else WELL[store % len(WELL)]  # a shop has one way of writing


def _shown(page: Page, price: Decimal) -> Decimal | None:
    match page:
        case Page.ZERO:
            return Decimal("0.00")
        case Page.NEGATIVE:
            return -price
        case _:
            return price if page in READABLE else None


def _times(value: Decimal, share: float) -> Decimal:
    return to_cents(value * Decimal(str(round(share, 4))))
