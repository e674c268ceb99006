"""The texts: contracts that say the same clauses, and an endpoint in a box that makes vectors of them.

What each contract says is known from its making: how many chunks there are, how many of them are not the same,
and which contract a question must find. The endpoint's own log says that each text was asked for once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from retoma import settings
from retoma.apps.embeddings import APP, store
from retoma.apps.embeddings.chunks import Rule
from retoma.apps.embeddings.model import KIND, Model, NewDocument
from retoma.apps.embeddings.providers import OpenAI
from retoma.apps.embeddings.sandbox import DIMS, KEY, MODEL
from retoma.apps.embeddings.vectors import Question, Searcher
from retoma.bootstrap import build_tools
from retoma.db import Transaction, verbatim
from retoma.demo.account import Witness
from retoma.demo.boxed_world import WHO, BoxedWorld, lines_of
from retoma.demo.world import World
from retoma.library import Retoma
from retoma.words import Said, say

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
AWAY: Final = {"trouble": "status", "status": 503, "after": 2, "times": 1}
DOCUMENTS: Final = verbatim("SELECT count(*) FROM embeddings_documents")
ENDS: Final = verbatim(
    "SELECT d.name, CASE WHEN d.embedded_at IS NULL THEN 'not embedded' ELSE d.chunks || ' chunks' END"
    " FROM embeddings_documents d"
)
VECTORS: Final = verbatim("SELECT count(*) FROM embeddings_vectors")


@dataclass(frozen=True, slots=True)
class EmbeddingsSize:
    """How many contracts there are, and how slow the endpoint is: 1 is as slow as a real one."""

    documents: int
    pace: float

    @property
    def chunks(self) -> int:
        return self.documents * CLAUSES


class EmbeddingsWorld(BoxedWorld):
    """Around one house, in one folder of it."""

    application = APP
    kind = KIND
    faults = (("", AWAY),)

    def __init__(self, place: World, size: EmbeddingsSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._said: dict[str, list[str]] = {}

    @property
    def addresses(self) -> Mapping[str, str]:
        return {
            "RETOMA_EMBEDDINGS_PROVIDER": "openai",
            "RETOMA_EMBEDDINGS_URL": f"{self.origin}/v1",
            "RETOMA_EMBEDDINGS_KEY": KEY,
            "RETOMA_EMBEDDINGS_MODEL": MODEL,
            "RETOMA_EMBEDDINGS_DIMS": str(DIMS),
        }

    async def begin(self, app: Retoma) -> None:
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(DOCUMENTS)))[0]
        wanted = [self._contract(before + n) for n in range(self.size.documents)]
        model = Model(MODEL, OpenAI.version, DIMS)

        await app.write(
            lambda tx: store.collections.add_documents(
                tx, COLLECTION, model, RULE, wanted, actor=WHO
            )
        )
        self.begun += len(wanted)

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

    def told(self) -> Said:
        size = self.size
        return say(
            "embeddings: {chunks} chunks of {n} contracts, half of them said by many",
            chunks=size.chunks,
            n=size.documents,
        )

    async def witness(self, app: Retoma, recovered: int) -> Witness:
        def read(tx: Transaction) -> tuple[list[tuple[str, str]], int]:
            [(vectors,)] = tx.for_caller(VECTORS)[0]
            return [(row[0], row[1]) for row in tx.for_caller(ENDS)[0]], vectors

        log = lines_of(self.log_file)  # before we ask ourselves
        found, vectors = await (await app.database()).read(read)
        paid = Counter(text for line in log if line.get("paid") for text in line["inputs"])
        every = [clause for said in self._said.values() for clause in said]
        return Witness(
            wanted={name: f"{len(said)} chunks" for name, said in self._said.items()},
            found=found,
            paid=paid,
            kept=vectors,
            may_repeat=recovered * CLAUSES,
            reused=len(every) - len({*every}),
            also=await self._not_found(app),
        )

    async def _not_found(self, app: Retoma) -> list[str]:
        """Of two contracts, by words that only they say."""
        searcher = Searcher(build_tools(app, settings.read()))
        lost = []
        for name in (min(self._said), max(self._said)):
            asked = Question(collection=COLLECTION, text=self._said[name][-1], most=1)
            if [name] != [hit.name for hit in (await searcher.find(asked)).hits]:
                lost.append(f"{name} is not found by its own words")
        return lost
