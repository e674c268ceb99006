"""The documents: files on the disk, some of them odd, and a model in a box.

What each file should come to is known from its making, and held against what it came to; what the model's own
log says was asked is held against what had to be.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from retoma import db
from retoma.apps.documents import APP, service, store
from retoma.apps.documents.model import KIND, Label, ProjectRules
from retoma.apps.documents.sandbox import KEY, LABELS, MODEL, Odd, Papers
from retoma.apps.documents.steps import CLASSIFY
from retoma.apps.documents.store.executions import NewDocument
from retoma.db import verbatim
from retoma.demo.account import Witness
from retoma.demo.boxed_world import WHO, BoxedWorld, lines_of
from retoma.demo.world import World
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.words import Said, say

PROJECT: Final = "demo"
# A second try after five seconds is shown; a third would only be waited for.
RULES: Final = ProjectRules(
    labels=tuple(Label(name, why) for name, why in LABELS.items()), max_retries_documento=1
)
# Answers that are paid for, and asked for again.
USELESS: Final = (Odd.PROSE, Odd.UNKNOWN_LABEL)
ODD: Final = (Odd.CORRUPT, Odd.PROSE, Odd.INJECTION, Odd.SCANNED, Odd.UNKNOWN_LABEL)
AWAY: Final = {"trouble": "status", "status": 502, "after": 2, "times": 1}
DOCUMENTS: Final = verbatim("SELECT count(*) FROM documents")
PROJECTS: Final = verbatim("SELECT max(id) FROM document_projects WHERE removed_at IS NULL")
ENDS: Final = verbatim(
    "SELECT codigo, coalesce(rotulo, erro_codigo, status) FROM resultados_classificacao"
)
KEPT: Final = verbatim("SELECT count(*) FROM steps WHERE state = 'saved' AND name = :step")


@dataclass(frozen=True, slots=True)
class DocumentsSize:
    """How many there are, how many of them odd, and how slow their model is: 1 is as slow as a real one."""

    documents: int
    odd: int
    pace: float


class DocumentsWorld(BoxedWorld):
    """Around one house, in one folder of it."""

    application = APP
    kind = KIND
    faults = (("", AWAY),)

    def __init__(self, place: World, size: DocumentsSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._papers = Papers(seed)
        self._made: dict[
            str, str
        ] = {}  # each document, and its label or the code of its trouble

    @property
    def addresses(self) -> Mapping[str, str]:
        return {
            "RETOMA_OPENROUTER_URL": f"{self.origin}/api/v1",
            "RETOMA_OPENROUTER_KEY": KEY,
            "RETOMA_OPENROUTER_MODEL": MODEL,
        }

    async def begin(self, app: Retoma) -> None:
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(DOCUMENTS)))[0]
        [(project,)] = (await database.read(lambda tx: tx.for_caller(PROJECTS)))[0]
        taken = await service.files.import_paths(app, [self._written(before)])
        wanted = [
            NewDocument(each.name.rpartition(".")[0], each.name, each.sha256, each.size)
            for each in taken.incoming
        ]

        def begin(tx: Transaction) -> None:
            of = project or store.projects.add_project(tx, PROJECT, RULES, actor=WHO)
            store.executions.add_execution(tx, of, wanted, actor=WHO)

        await app.write(begin)
        self.begun += len(wanted)

    def _written(self, first: int) -> Path:
        """Files that nobody has handed in yet."""
        folder = self._folder / f"papers-{first}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        step = max(1, self.size.documents // max(1, self.size.odd))
        for n in range(self.size.documents):
            place, between = divmod(n, step)
            odd = ODD[place % len(ODD)] if not between and place < self.size.odd else None
            paper = self._papers.make(first + n, odd)
            (folder / paper.name).write_bytes(paper.content)
            self._made[paper.codigo] = str(paper.label or paper.code)
        return folder

    def told(self) -> Said:
        size = self.size
        return say(
            "documents: {n} files, {odd} of them odd, and a model",
            n=size.documents,
            odd=size.odd,
        )

    async def witness(self, app: Retoma, recovered: int) -> Witness:
        def read(tx: db.Transaction) -> tuple[list[tuple[str, str]], int]:
            [(kept,)] = tx.for_caller(KEPT, step=CLASSIFY)[0]
            return [(row[0], row[1]) for row in tx.for_caller(ENDS)[0]], kept

        found, kept = await (await app.database()).read(read)
        useful = [
            str(line["item"])
            for line in lines_of(self.log_file)
            if line.get("paid") and line["odd"] not in USELESS
        ]
        return Witness(
            wanted=self._made,
            found=found,
            paid=Counter(useful),
            kept=kept,
            may_repeat=recovered,
        )
