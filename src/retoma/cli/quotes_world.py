"""The quotes of the demo: the four services in a box, runners of their own, and a lote that one of them dies over.

What the services themselves have written down is held against what the lote needs: nothing that was
paid for is paid again, but for calls that were on their way when their runner was killed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from retoma import settings
from retoma.apps.quotes import APP, store
from retoma.apps.quotes.model import KIND
from retoma.bootstrap import build_tools
from retoma.cli.boxed_world import BoxedWorld, Left, lines_of
from retoma.cli.world import World
from retoma.db import verbatim
from retoma.engine.batch import Batch
from retoma.engine.states import State
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.sandbox.quotes import ANTHROPIC_KEY, SERPAPI_KEY, SIZE, Catalogue

WHO: Final = "demo"
PAID: Final = ("anthropic", "serpapi")
QUOTES: Final = verbatim("SELECT count(*) FROM quotes")


@dataclass(frozen=True, slots=True)
class QuotesSize:
    """How many there are, and how slow their world is: 1 is as slow as the real one."""

    quotes: int
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotesAccount:
    """What became of a lote; `problems` is what should not have."""

    quotes: int
    done: int
    paid_calls: int
    paid_again: int
    kept: int  # paid calls of the killed runner's quotes that were read back
    taken_over: int
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class QuotesWorld(BoxedWorld[QuotesAccount]):
    """Around one house, in one folder of it."""

    name = "quotes"
    kind = KIND
    paid_steps = ("AI_ANALYSIS_START", "SHOPPING_SEARCH_START")
    slots = 12

    def __init__(self, place: World, size: QuotesSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._catalogue = Catalogue(seed)

    @property
    def log_file(self) -> Path:
        return self._folder  # one for each service in it

    @property
    def addresses(self) -> Mapping[str, str]:
        assert self.services is not None  # noqa: S101 — they are started first
        return {
            "RETOMA_ANTHROPIC_URL": f"{self.origin}/anthropic",
            "RETOMA_ANTHROPIC_KEY": ANTHROPIC_KEY,
            "RETOMA_SERPAPI_URL": f"{self.origin}/serpapi",
            "RETOMA_SERPAPI_KEY": SERPAPI_KEY,
            "RETOMA_FIPE_URL": self.origin,
            "RETOMA_SHOP_HOSTS": self.services.server,
            "RETOMA_SCREENSHOTS": "off",
        }

    async def begin(self, app: Retoma) -> Batch:
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(QUOTES)))[0]
        numbers = [(before + n) % SIZE for n in range(self.size.quotes)]
        wanted = [store.NewQuote(self._catalogue.describe(n)) for n in numbers]
        added = await app.write(lambda tx: store.add_lote(tx, wanted, actor=WHO, name="demo"))
        return await app.batch(added.lote or 0)

    def told(self) -> str:
        return f"a lote of {self.size.quotes}, and the four services they need"

    async def account(
        self,
        app: Retoma,  # noqa: ARG002 — its lote says all
        batch: Batch,
        left: Left,
        seconds: float,
    ) -> QuotesAccount:
        counts = await batch.counts()
        paid = Counter(
            each["input"]
            for name in PAID
            for each in lines_of(self._folder / f"{name}.jsonl")
            if each["paid"]
        )
        again = paid.total() - len(paid)
        done = counts.get(State.DONE, 0)
        problems = (
            [f"{self.size.quotes - done} quotes have no price"]
            if done < self.size.quotes
            else []
        )
        if again > left.held:
            problems.append(
                f"{again} paid calls were made again and {left.held} quotes were taken over"
            )
        return QuotesAccount(
            quotes=self.size.quotes,
            done=done,
            paid_calls=paid.total(),
            paid_again=again,
            kept=left.kept,
            taken_over=left.held,
            seconds=seconds,
            problems=problems,
        )

    def summary(self, account: QuotesAccount) -> str:
        return (
            f"{account.quotes} quotes have ended, in {account.seconds:.1f} s:"
            f" {account.paid_calls} paid calls, {account.paid_again} of them again"
        )


def install(app: Retoma, folder: Path) -> Sequence[Application]:
    """Quotes, in a house of the demo."""
    chosen = settings.read(secret_key_file=str(folder / "secret.key"))
    app.install(APP, build_tools(app, chosen))
    return [APP]


def rows_of(account: QuotesAccount) -> Sequence[tuple[str, int, str]]:
    """For the table at the end of a demo."""
    return [
        ("quotes", account.quotes, f"{account.done} with a price"),
        ("paid calls", account.paid_calls, "analyses and searches, by the services' own logs"),
        (
            "not paid again",
            account.kept,
            f"of the {account.taken_over} quotes in the hands of the runner that was killed",
        ),
        ("paid again", account.paid_again, "were on their way just then"),
    ]
