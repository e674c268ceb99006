"""Recall@5 of search on a small labelled set: of the texts that answer a question, how many are among five hits.

The set is `recall.toml`: 68 short texts of one city, 30 questions in other words than the texts. By our own
n-grams, which know words and not meanings: a model that knows meanings is measured by the same command with
RETOMA_EMBEDDINGS_PROVIDER set.
"""

import tomllib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench import ours
from bench.child import call
from bench.compare import Figures, Measure
from bench.ours import Address
from bench.places import Places

HERE: Final = "bench.recall"
LIMIT: Final = 120.0  # seconds
SET: Final = Path(__file__).with_suffix(".toml")
COLLECTION: Final = "cidade"
HITS: Final = 5
MODES: Final = ("vector", "hybrid")


def recall(address: Address) -> Measure:
    """In percent: by vectors alone, and by vectors and words."""

    def measure(places: Places) -> Figures:
        found = call(f"{HERE}:work", limit=LIMIT, url=address(places))
        return tuple(found[mode] for mode in MODES)

    return measure


def work(url: str) -> dict[str, float]:
    return ours.run(_work(url))


async def _work(url: str) -> dict[str, float]:
    from bench.embeddings import house
    from retoma.apps.embeddings.vectors import Mode, Question, Searcher

    async with house(url) as app:
        await app.upgrade()
        await fill(app)
        await app.run(until_idle=True)
        searcher = app.tools["embeddings"].one(Searcher)

        async def find(text: str, *, mode: str) -> list[str]:
            asked = Question(collection=COLLECTION, text=text, most=HITS, mode=Mode(mode))
            return [hit.name for hit in (await searcher.find(asked)).hits]

        return {mode: await percent(partial(find, mode=mode)) for mode in MODES}


async def fill(app: Any) -> None:
    """The texts of the set, each a document under its label."""
    from retoma.apps.embeddings import store
    from retoma.apps.embeddings.model import NewDocument, checked_rule
    from retoma.apps.embeddings.providers import build_provider
    from retoma.apps.embeddings.steps import model_of

    model = model_of(app.tools["embeddings"].one(build_provider))
    new = [NewDocument(name, text) for name, text in labelled()["texts"].items()]

    def add(tx: Any) -> None:
        made = store.collections.add(tx, COLLECTION, model, checked_rule(), actor="bench")
        store.documents.add(tx, made.id, COLLECTION, new, actor="bench")

    await app.write(add)


async def percent(find: Callable[[str], Awaitable[list[str]]]) -> float:
    """The mean over the questions."""
    questions = labelled()["questions"]
    shares = []
    for text, answers in questions.items():
        found = await find(text)
        shares.append(len({*answers} & {*found[:HITS]}) / len(answers))
    return 100 * sum(shares) / len(shares)


def labelled() -> dict[str, Any]:
    return tomllib.loads(SET.read_text(encoding="utf-8"))
