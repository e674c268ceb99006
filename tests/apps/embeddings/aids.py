"""A house with the embeddings application in it, and a provider that keeps its own account."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from retoma import Retoma
from retoma.apps.embeddings import APP, completion, questions, store
from retoma.apps.embeddings.model import PROVIDER, Model, NewDocument, checked_rule
from retoma.apps.embeddings.providers import Embedded, InputType, ItemRefused, NGrams, Used
from retoma.apps.embeddings.questions import Questions
from retoma.apps.embeddings.steps import Documents, kinds_of, model_of
from retoma.apps.embeddings.store.documents import Added
from retoma.apps.embeddings.vectors import Searcher
from retoma.apps.tools import Tools
from retoma.db import adhoc
from retoma.engine.ports import Clock
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.testing import FakeClock, drain

WHO = "ana"
COLLECTION = "livros"


@dataclass(slots=True)
class Counting:
    """Our own n-grams, and beside them a list of all that was ever asked: the ledger of these tests."""

    name: str = "openai"
    model: str = "hashed-ngrams"
    version: str = "1"
    dims: int = 384
    most: int = 256
    most_tokens: int = 8_192
    paid: bool = False
    asymmetric: bool = False
    calls: list[list[str]] = field(default_factory=list)
    input_types: list[InputType] = field(default_factory=list)  # of those calls
    gate: asyncio.Event | None = None  # closed: a call waits here, after it was counted
    refuses: Mapping[str, str] = field(
        default_factory=dict
    )  # a word, and the code it is refused by
    fails: list[Exception] = field(default_factory=list)  # what the next calls raise
    tokens: int = 0
    usd: float | None = None  # of a call

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        self.calls.append([*texts])
        self.input_types.append(input_type)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise self.fails.pop(0)
        made = await NGrams().embed(texts)
        items = [
            next(
                (ItemRefused(c, "no") for word, c in self.refuses.items() if word in text), item
            )
            for text, item in zip(texts, made.items, strict=True)
        ]
        return Embedded(items, Used(self.model, self.tokens, self.usd))

    @property
    def asked(self) -> Counter[str]:
        """How often each text was embedded."""
        return Counter(text for call in self.calls for text in call)


@dataclass(frozen=True, slots=True)
class House:
    """One house and its provider."""

    app: Retoma
    provider: Counting
    story: Documents

    def gathered(self) -> int:
        """Texts that wait for a call to end, to go out with the next."""
        batcher = self.story.batcher(self.provider)
        return sum(len(request.texts) for request in batcher._waiting)

    async def collection(self, name: str = COLLECTION, **rule: int) -> None:
        model, cut = model_of(self.provider), checked_rule(**rule)
        await self.app.write(
            lambda tx: store.collections.find_or_add(tx, name, model, cut, actor=WHO)
        )

    async def add(self, *given: tuple[str, str], to: str = COLLECTION, **how: Any) -> Added:
        await self.collection(to)
        new = [NewDocument(name, text) for name, text in given]

        def add(tx: Any) -> Added:
            found = store.collections.lock(tx, to)
            return store.documents.add(tx, found.id, to, new, actor=WHO, **how)

        return await self.app.write(add)

    async def reembed(
        self, to: str = COLLECTION, *, follow: bool = False, **rule: int
    ) -> tuple[int | None, int]:
        model = model_of(self.provider)
        cut = checked_rule(**rule) if rule else None
        await self.app.write(lambda tx: store.collections.change(tx, to, model, cut, actor=WHO))
        return await self.app.write(
            lambda tx: store.collections.reembed(tx, to, actor=WHO, follow=follow)
        )

    def searcher(self) -> Searcher:
        """As another process would have it, with the same provider, and the patience of a busy machine."""
        tools = self.app.tools["embeddings"]
        questions = Questions(tools, self.provider, looks=[0.05] * 2_000)
        return Searcher(tools, self.provider, questions=questions)

    async def remove(self, document: int) -> None:
        await self.app.write(lambda tx: store.documents.remove(tx, document, actor=WHO))

    async def read(self, fn: Callable[[Any], Any]) -> Any:
        return await (await self.app.database()).read(fn)

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        found: list[Any] = await self.read(lambda tx: tx.all(adhoc(sql), **params))
        return found

    async def documents(self, of: str = COLLECTION) -> dict[str, dict[str, Any]]:
        def read(tx: Any) -> list[dict[str, Any]]:
            found = store.collections.get(tx, of)
            return store.documents.list_documents(tx, found.id, embedded=None, after=0, n=1000)

        return {each["name"]: each for each in await self.read(read)}

    async def progress(self, of: str = COLLECTION) -> Any:
        return await self.read(
            lambda tx: store.collections.progress(tx, store.collections.get(tx, of))
        )

    async def drained(self) -> None:
        await drain(self.app, within=60.0)


def long_text(word: str, n: int = 10) -> str:
    """So many chunks of their own, cut by the rule of 100 characters."""
    return "\n\n".join(f"{word} {place:04d} " + f"{word}{place} " * 8 for place in range(n))


MODEL = Model("hashed-ngrams", "1", 384)


@asynccontextmanager
async def house(
    url: str,
    provider: Counting | None = None,
    *,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    made = provider or Counting()
    async with (
        Retoma(url, clock=clock or FakeClock()) as app,
        Outbound(private=frozenset({"127.0.0.1"})) as out,
    ):
        tools = Tools(app, out, settings=Settings(database_url=url, **settings))
        there = House(app, made, install(app, tools, made))
        # By this clock nobody waits for a rate that is looked for.
        await app.rates.set(PROVIDER, 10_000)
        yield there


def install(app: Retoma, tools: Tools, provider: Counting) -> Documents:
    """The application as it is, with this provider in the place of the one the settings name."""
    story = Documents(tools, provider)
    kinds = [
        *kinds_of(tools, story),
        *questions.kinds_of(Questions(tools, provider)),
        *completion.kinds_of(tools),
    ]
    app.install(replace(APP, stories=None, kinds=kinds), tools)
    return story
