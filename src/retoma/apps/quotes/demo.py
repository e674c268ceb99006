"""The quotes: four services in a box, and a lote.

What the services themselves have written down is held against what the lote has: nothing that was paid for
is paid again, but for calls that were on their way when their runner was killed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from retoma.apps.quotes import APP
from retoma.apps.quotes.model import KIND
from retoma.apps.quotes.model import ProcessingCheckpoint as At
from retoma.apps.quotes.sandbox import ANTHROPIC_KEY, SERPAPI_KEY, SIZE, Catalogue
from retoma.apps.quotes.service.lotes import add_lote
from retoma.apps.quotes.store import NewQuote
from retoma.db import Transaction, verbatim
from retoma.demo.account import Witness
from retoma.demo.boxed_world import WHO, BoxedWorld, lines_of
from retoma.demo.world import World
from retoma.library import Retoma
from retoma.words import Said, say

PAID: Final = ("anthropic", "serpapi")
PRICED: Final = "priced"
OVERLOADED: Final = {"trouble": "status", "status": 529, "after": 3, "times": 3}
QUOTES: Final = verbatim("SELECT count(*) FROM quotes")
ENDS: Final = verbatim(
    "SELECT q.description, CASE WHEN j.state = 'done' THEN 'priced' ELSE coalesce(j.code, j.state) END"
    " FROM quotes q JOIN jobs j ON j.id = q.job"
)
STEPS: Final = {
    "analysis": At.AI_ANALYSIS_START.value,
    "search": At.SHOPPING_SEARCH_START.value,
}
KEPT: Final = verbatim(
    "SELECT count(*) FROM steps WHERE state = 'saved' AND name IN (:analysis, :search)"
)


@dataclass(frozen=True, slots=True)
class QuotesSize:
    """How many there are, and how slow their services are: 1 is as slow as the real ones."""

    quotes: int
    pace: float


class QuotesWorld(BoxedWorld):
    """Around one house, in one folder of it."""

    application = APP
    kind = KIND
    faults = (("/anthropic", OVERLOADED),)

    def __init__(self, place: World, size: QuotesSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._catalogue = Catalogue(seed)
        self._asked: dict[str, str] = {}  # each description, and how it must end

    def lacks(self) -> Said | None:
        if find_spec("anthropic") is not None:
            return None
        return say("Anthropic's SDK: pip install 'retoma[anthropic]'")

    @property
    def log_file(self) -> Path:
        return self._folder  # one for each service in it

    @property
    def addresses(self) -> Mapping[str, str]:
        return {
            "RETOMA_ANTHROPIC_URL": f"{self.origin}/anthropic",
            "RETOMA_ANTHROPIC_KEY": ANTHROPIC_KEY,
            "RETOMA_SERPAPI_URL": f"{self.origin}/serpapi",
            "RETOMA_SERPAPI_KEY": SERPAPI_KEY,
            "RETOMA_FIPE_URL": self.origin,
            "RETOMA_SHOP_HOSTS": self.server,
            "RETOMA_SCREENSHOTS": "off",
        }

    async def begin(self, app: Retoma) -> None:
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(QUOTES)))[0]
        numbers = [(before + n) % SIZE for n in range(self.size.quotes)]
        wanted = [self._catalogue.describe(n) for n in numbers]
        self._asked |= dict.fromkeys(wanted, PRICED)
        self.begun += len(wanted)
        lote = [NewQuote(each) for each in wanted]
        await add_lote(app, lote, actor=WHO, name="demo")

    def told(self) -> Said:
        return say("quotes: a lote of {n}, and the four services they need", n=self.size.quotes)

    async def witness(self, app: Retoma, recovered: int) -> Witness:
        def read(tx: Transaction) -> tuple[list[tuple[str, str]], int]:
            [(kept,)] = tx.for_caller(KEPT, **STEPS)[0]
            return [(row[0], row[1]) for row in tx.for_caller(ENDS)[0]], kept

        found, kept = await (await app.database()).read(read)
        paid = [
            f"{name} {line['input']}"
            for name in PAID
            for line in lines_of(self._folder / f"{name}.jsonl")
            if line.get("paid")
        ]
        return Witness(
            wanted=self._asked,
            found=found,
            paid=Counter(paid),
            kept=kept,
            may_repeat=recovered,
        )
