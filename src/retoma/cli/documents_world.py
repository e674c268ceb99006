"""The documents of the demo: files on the disk, a model in a box, runners of their own, one of which dies over them.

What each file should come to is known from its making, and held against what it came to; what the model's own
log says was asked is held against what had to be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from retoma import settings
from retoma.apps.documents import APP, store
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.intake import Intake
from retoma.apps.documents.model import KIND, Label, ProjectRules
from retoma.apps.documents.steps import CLASSIFY
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import NewDocument
from retoma.bootstrap import build_tools
from retoma.cli.boxed_world import BoxedWorld, Left, lines_of
from retoma.cli.world import World
from retoma.db import verbatim
from retoma.engine.batch import Batch
from retoma.engine.transaction import Transaction
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.sandbox.documents import KEY, LABELS, MODEL, Odd, Paper, Papers

WHO: Final = "demo"
PROJECT: Final = "demo"
# A second try after five seconds is shown; a third would only be waited for.
RULES: Final = ProjectRules(
    labels=tuple(Label(name, why) for name, why in LABELS.items()), max_retries_documento=1
)
USELESS: Final = (
    Odd.PROSE,
    Odd.UNKNOWN_LABEL,
)  # answers that are paid for, and asked for again
ODD: Final = (Odd.CORRUPT, Odd.PROSE, Odd.INJECTION, Odd.SCANNED, Odd.UNKNOWN_LABEL)
DOCUMENTS: Final = verbatim("SELECT count(*) FROM documents")
PROJECTS: Final = verbatim("SELECT max(id) FROM document_projects WHERE removed_at IS NULL")


@dataclass(frozen=True, slots=True)
class DocumentsSize:
    """How many there are, how many of them odd, and how slow their model is: 1 is as slow as a real one."""

    documents: int
    odd: int
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsAccount:
    """What became of an execution; `problems` is what should not have."""

    documents: int
    labelled: int
    explained: dict[str, int]  # documents without a label, by their code
    paid_calls: int
    paid_again: int
    kept: int  # answers to the killed runner's documents that were read back
    taken_over: int
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class DocumentsWorld(BoxedWorld[DocumentsAccount]):
    """Around one house, in one folder of it."""

    name = "documents"
    kind = KIND
    paid_steps = (CLASSIFY,)
    slots = 6

    def __init__(self, place: World, size: DocumentsSize, seed: int) -> None:
        super().__init__(place, seed, size.pace)
        self.size = size
        self._papers = Papers(seed)
        self._made: dict[str, Paper] = {}

    @property
    def log_file(self) -> Path:
        return self._folder / "openrouter.jsonl"

    @property
    def addresses(self) -> Mapping[str, str]:
        return {
            "RETOMA_OPENROUTER_URL": f"{self.origin}/api/v1",
            "RETOMA_OPENROUTER_KEY": KEY,
            "RETOMA_OPENROUTER_MODEL": MODEL,
        }

    async def begin(self, app: Retoma) -> Batch:
        database = await app.database()
        [(before,)] = (await database.read(lambda tx: tx.for_caller(DOCUMENTS)))[0]
        [(project,)] = (await database.read(lambda tx: tx.for_caller(PROJECTS)))[0]
        folder = self._written(before)
        taken = await Intake(Contents(app)).paths([folder])
        wanted = [
            NewDocument(each.name.rpartition(".")[0], each.name, each.sha256, each.size)
            for each in taken.incoming
        ]

        def begin(tx: Transaction) -> int:
            of = project or store.projects.add_project(tx, PROJECT, RULES, actor=WHO)
            return store.executions.add_execution(tx, of, wanted, actor=WHO)

        return await app.batch(await app.write(begin))

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
            self._made[paper.codigo] = paper
        return folder

    def told(self) -> str:
        return f"{self.size.documents} files, {self.size.odd} of them odd, and a model"

    async def account(
        self, app: Retoma, batch: Batch, left: Left, seconds: float
    ) -> DocumentsAccount:
        database = await app.database()
        results = await database.read(
            lambda tx: store.documents.list_results(
                tx, batch.id, Which(), after=0, n=self.size.documents
            )
        )
        log = [each for each in lines_of(self.log_file) if each["paid"]]
        asked = Counter(each["item"] for each in log if each["odd"] not in USELESS)
        again = asked.total() - len(asked)
        problems = self._problems(results)
        if again > left.held:
            problems.append(
                f"{again} answers were paid again and {left.held} documents were taken over"
            )
        codes = Counter(each["erro_codigo"] for each in results if each["rotulo"] is None)
        return DocumentsAccount(
            documents=len(results),
            labelled=sum(each["rotulo"] is not None for each in results),
            explained=dict(codes),
            paid_calls=len(log),
            paid_again=again,
            kept=left.kept,
            taken_over=left.held,
            seconds=seconds,
            problems=problems,
        )

    def _problems(self, results: Sequence[dict[str, Any]]) -> list[str]:
        """Each has its label, or the code that says why it has none."""
        found = []
        for each in results:
            paper = self._made[each["codigo"]]
            ended = each["rotulo"] or each["erro_codigo"]
            if ended != (paper.label or paper.code):
                found.append(f"{paper.codigo} ended with {ended}")
        missing = self.size.documents - len(results)
        return [*found, *([f"{missing} documents are missing"] if missing else [])]

    def summary(self, account: DocumentsAccount) -> str:
        return (
            f"{account.documents} documents have ended, in {account.seconds:.1f} s:"
            f" {account.labelled} with a label, {sum(account.explained.values())} with a code"
        )


def install(app: Retoma) -> Sequence[Application]:
    """Documents, in a house of the demo."""
    app.install(APP, build_tools(app, settings.read()))
    return [APP]


def rows_of(account: DocumentsAccount) -> Sequence[tuple[str, int, str]]:
    """For the table at the end of a demo."""
    codes = ", ".join(f"{n} {code}" for code, n in sorted(account.explained.items()))
    return [
        ("documents", account.documents, f"{account.labelled} with a label; {codes}"),
        ("answers paid", account.paid_calls, "by the model's own log"),
        (
            "taken over",
            account.taken_over,
            f"documents of the runner that was killed; {account.kept} answers were there already",
        ),
        ("paid again", account.paid_again, "were on their way just then"),
    ]
