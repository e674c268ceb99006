"""The texts of the demo: contracts that say the same clauses, runners of their own, one of which dies over them.

What each contract says is known from its making: how many chunks there are, how many of them are not the same,
and which contract a question must find. Vectors are made by our own n-grams: no box, no keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from retoma import settings
from retoma.apps.embeddings import APP, store
from retoma.apps.embeddings.chunks import Rule
from retoma.apps.embeddings.model import KIND, Model, NewDocument
from retoma.apps.embeddings.providers import NGrams
from retoma.apps.embeddings.vectors import Question, Searcher
from retoma.bootstrap import build_tools
from retoma.cli.boxed_world import BoxedWorld, Left
from retoma.cli.world import World
from retoma.db import verbatim
from retoma.engine.batch import Batch
from retoma.engine.states import State
from retoma.engine.transaction import Transaction
from retoma.library import Retoma
from retoma.manifest import Application

WHO: Final = "demo"
COLLECTION: Final = "contratos"
# A clause is a paragraph, and a chunk: two of them are longer than one may be.
RULE: Final = Rule(400, 0)
CLAUSES: Final = 10  # of a contract
COMMON: Final = 20  # that many contracts say; half of each contract are of these
WORDS: Final = (
    *("contrato", "cláusula", "parte", "prazo", "multa", "entrega", "pagamento", "serviço"),
    *("produto", "garantia", "rescisão", "foro", "sigilo", "reajuste", "vigência", "objeto"),
    *("contratante", "contratada", "obrigação", "valor", "mensal", "imóvel", "veículo", "obra"),
)
SAID: Final = 36  # words of a clause: 280 to 380 characters
DOCUMENTS: Final = verbatim("SELECT count(*) FROM embeddings_documents")
VECTORS: Final = verbatim("SELECT count(*) FROM embeddings_vectors")


@dataclass(frozen=True, slots=True)
class EmbeddingsSize:
    """How many contracts there are."""

    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsAccount:
    """What became of the texts; `problems` is what should not have."""

    documents: int
    chunks: int
    vectors: int  # of texts that are not the same
    found: int  # questions that found their contract
    taken_over: int
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class EmbeddingsWorld(BoxedWorld[EmbeddingsAccount]):
    """Around one house, in one folder of it."""

    name = "embeddings"
    kind = KIND
    paid_steps = ()
    slots = 8

    def __init__(self, place: World, size: EmbeddingsSize, seed: int) -> None:
        super().__init__(place, seed, 0.0)
        self.size = size
        self._seed = seed
        self._said: dict[str, list[str]] = {}

    @property
    def log_file(self) -> Path:
        return self._folder / "nobody.jsonl"

    @property
    def addresses(self) -> Mapping[str, str]:
        return {}

    async def start(self) -> None:
        """There is nobody to ask."""
        self._folder.mkdir(mode=0o700, exist_ok=True)

    async def begin(self, app: Retoma) -> Batch:
        """Contracts that nobody has handed in yet."""
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(DOCUMENTS)))[0]
        wanted = [self._contract(before + n) for n in range(self.size.documents)]
        model = Model(NGrams.model, NGrams.version, NGrams.dims)

        def begin(tx: Transaction) -> int | None:
            store.collections.find_or_add(tx, COLLECTION, model, RULE, actor=WHO)
            of = store.collections.lock(tx, COLLECTION)
            return store.documents.add(tx, of.id, COLLECTION, wanted, actor=WHO).batch

        batch = await app.write(begin)
        assert batch is not None  # noqa: S101 — none of these was there before
        return await app.batch(batch)

    def _contract(self, n: int) -> NewDocument:
        chance = Random(f"{self._seed}:{n}")  # noqa: S311 — a world, not a secret
        common = chance.sample(range(COMMON), CLAUSES // 2)
        said = [self._clause(f"comum {each}") for each in common]
        said += [self._clause(f"{n}.{each}") for each in range(CLAUSES - len(said))]
        name = f"contrato-{n:05}.txt"
        self._said[name] = said
        return NewDocument(name, "\n\n".join(said))

    def _clause(self, number: str) -> str:
        chance = Random(f"{self._seed}:{number}")  # noqa: S311 — a world, not a secret
        return f"Cláusula {number}: {' '.join(chance.choices(WORDS, k=SAID))}."

    def told(self) -> str:
        n = self.size.documents
        return f"{n} contracts of {CLAUSES} clauses, half of them said by many"

    async def account(
        self, app: Retoma, batch: Batch, left: Left, seconds: float
    ) -> EmbeddingsAccount:
        database = await app.database()
        progress = await database.read(
            lambda tx: store.collections.progress(tx, store.collections.get(tx, COLLECTION))
        )
        [(vectors,)] = (await database.read(lambda tx: tx.for_caller(VECTORS)))[0]
        account = EmbeddingsAccount(
            documents=progress.embedded,
            chunks=progress.chunks,
            vectors=vectors,
            found=await self._found(app),
            taken_over=left.held,
            seconds=seconds,
        )
        account.problems.extend(self._problems(account))
        ended = await batch.counts()
        if {*ended} != {State.DONE}:
            account.problems.append(f"contracts have ended otherwise: {ended}")
        return account

    async def _found(self, app: Retoma) -> int:
        """Of two contracts, by words that only they say."""
        searcher = Searcher(build_tools(app, settings.read()))
        found = 0
        for name in (min(self._said), max(self._said)):
            asked = Question(collection=COLLECTION, text=self._said[name][-1], most=1)
            found += [name] == [hit.name for hit in (await searcher.find(asked)).hits]
        return found

    def _problems(self, account: EmbeddingsAccount) -> list[str]:
        every = [clause for said in self._said.values() for clause in said]
        wanted = {
            "documents": (len(self._said), account.documents),
            "chunks": (len(every), account.chunks),
            "vectors": (len({*every}), account.vectors),
            "questions": (2, account.found),
        }
        return [
            f"{actual} {name} and not {expected}"
            for name, (expected, actual) in wanted.items()
            if expected != actual
        ]

    def summary(self, account: EmbeddingsAccount) -> str:
        return (
            f"{account.documents} contracts are embedded, in {account.seconds:.1f} s:"
            f" {account.chunks} chunks, {account.vectors} texts"
        )


def install(app: Retoma) -> Sequence[Application]:
    """Embeddings, in a house of the demo."""
    app.install(APP, build_tools(app, settings.read()))
    return [APP]


def rows_of(account: EmbeddingsAccount) -> Sequence[tuple[str, int, str]]:
    """For the table at the end of a demo."""
    return [
        ("chunks", account.chunks, f"of {account.documents} contracts, found again by search"),
        ("texts embedded", account.vectors, "each once, however many contracts say it"),
        ("taken over", account.taken_over, "contracts of the runner that was killed"),
    ]
