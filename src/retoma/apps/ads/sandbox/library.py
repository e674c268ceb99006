"""The ads themselves: made of a seed and a day, so that nobody has to keep them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from random import Random
from typing import Final

FIRST: Final = date(2025, 1, 1)
LAST: Final = date(2025, 12, 31)
A_DAY: Final = (
    80,
    140,
)  # ads of one day, at least and at most: some forty thousand in the year
LANGUAGES: Final = ("pt", "en", "es", "fr")
WEIGHTS: Final = (4, 3, 2, 1)
MEDIA: Final = ("video", "image")
MOST: Final = 500  # how often one ad is shown at the same time

# Some of them on purpose such as a page must escape.
NAMES: Final = ("Casa & Luz", "Ótica Avenida", "<b>Bold</b> Bikes", 'O "Bom" Café', "Nuvem 9")
WARES: Final = ("lâmpada", "óculos", "bicicleta", "café ☕", "curso", "sofá", "bike & helmet")
PRAISE: Final = ("50% off", "só hoje", "frete grátis", "new in", "último dia", "desde €9")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ad:
    """One ad."""

    id: str
    title: str
    advertiser: str
    text: str
    language: str
    media_type: str
    date: date
    url: str
    qtd_ads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody looks for; empty: any."""

    start: date = FIRST
    end: date = LAST
    media_type: str = ""
    languages: frozenset[str] = frozenset()
    by_count: bool = False  # those shown most often first; else by day

    def meets(self, ad: Ad) -> bool:
        return self.media_type in ("", ad.media_type) and (
            not self.languages or ad.language in self.languages
        )


class Library:
    """Every ad of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._day = lru_cache(maxsize=512)(self._made)
        self._found = lru_cache(maxsize=64)(self._looked_up)

    def find(self, wanted: Wanted) -> Sequence[Ad]:
        """In an order that does not change while somebody turns pages."""
        return self._found(wanted)

    def _looked_up(self, wanted: Wanted) -> tuple[Ad, ...]:
        first, last = max(wanted.start, FIRST), min(wanted.end, LAST)
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        found = [ad for day in days for ad in self._day(day) if wanted.meets(ad)]
        if wanted.by_count:
            found.sort(key=lambda ad: (-ad.qtd_ads, ad.id))
        return tuple(found)

    def _made(self, day: date) -> tuple[Ad, ...]:
        chance = Random(f"{self.seed}:{day}")  # noqa: S311 — a world, not a secret
        return tuple(self._ad(chance, day, n) for n in range(chance.randint(*A_DAY)))

    def _ad(self, chance: Random, day: date, n: int) -> Ad:
        id_ = f"ad{self.seed}-{day:%Y%m%d}-{n:03d}"
        ware, praise = chance.choice(WARES), chance.choice(PRAISE)
        return Ad(
            id=id_,
            title=f"{ware.capitalize()}: {praise}",
            advertiser=chance.choice(NAMES),
            text=f"{praise} — {ware} nº {n}. {chance.choice(PRAISE)}!",
            language=chance.choices(LANGUAGES, WEIGHTS)[0],
            media_type=chance.choice(MEDIA),
            date=day,
            url=f"https://ads.example.org/{id_}?ref={n}&day={day:%d}",
            qtd_ads=chance.randint(1, MOST),
        )
