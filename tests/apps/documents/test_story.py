"""A document from its bytes to its label: read in a child, asked about once, told of by its code alone."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from retoma import Retoma
from retoma.apps.documents import APP, store
from retoma.apps.documents import steps as story
from retoma.apps.documents.clients.openrouter import Answer
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.model import Classified, Label, ProjectRules
from retoma.apps.documents.store.executions import NewDocument
from retoma.apps.readers.reading import Read
from retoma.apps.tools import Tools
from retoma.outbound import Outbound
from retoma.sandbox.box import Box
from retoma.sandbox.documents import KEY, LABELS, MODEL, Odd, Paper, Papers, build_service
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from tests.apps.documents.aids import WHO, House
from tests.apps.documents.readers import read_or_die
from tests.apps.documents.run_documents import LITTLE
from tests.apps.quotes.aids import serving

RULES = ProjectRules(labels=tuple(Label(name, why) for name, why in LABELS.items()))
IMPATIENT = replace(RULES, max_retries_documento=0, least_confidence=1.0)
AGAIN = {"bad_answer", "unknown_label", "truncated"}  # tried three times
READ = list(Odd)[: list(Odd).index(Odd.HUGE)]  # what goes wrong before anybody is asked
SLOW = [Odd.ENDLESS, Odd.CRASH]  # what costs a child
CODE_2 = "DOC-00002"
ODD = [odd for odd in Odd if odd not in (*SLOW, Odd.HUGE)]


@dataclass(frozen=True, slots=True)
class World(House):
    """A house, and the model it asks."""

    service: Box
    folder: Path

    async def handed_in(
        self, project: int, papers: Sequence[Paper], codes: Sequence[str] | None = None
    ) -> int:
        contents = Contents(self.app)
        wanted = []
        for paper, code in zip(papers, codes or [each.codigo for each in papers], strict=True):
            digest = sha256(paper.content).hexdigest()
            file = self.folder / "handed-in"
            file.write_bytes(paper.content)
            await contents.keep(file, digest, len(paper.content))
            wanted.append(NewDocument(code, paper.name, digest, len(paper.content)))
        return await self.app.write(
            lambda tx: store.executions.add_execution(tx, project, wanted, actor=WHO)
        )

    async def drained(self) -> None:
        await drain(self.app, within=120.0)

    async def text(self, execution: int, document: int) -> str:
        database = await self.app.database()
        return await database.read(lambda tx: store.documents.text_of(tx, execution, document))

    def asked(self) -> Counter[Any]:
        """How often the model was asked about which document."""
        return Counter(each["item"] for each in self.service.log.read(0))


@asynccontextmanager
async def world(url: str, folder: Path, **how: Any) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        service = build_service(**how)
        port = await stack.enter_async_context(serving(service))
        settings = Settings(
            database_url=url,
            openrouter_url=f"http://127.0.0.1:{port}/api/v1",
            openrouter_key=KEY,
            openrouter_model=MODEL,
        )
        app = await stack.enter_async_context(Retoma(url, clock=FakeClock()))
        out = await stack.enter_async_context(Outbound(private=frozenset({"127.0.0.1"})))
        app.install(APP, Tools(app, out, settings=settings))
        yield World(app, service, folder)


async def test_each_ends_as_it_must_and_nobody_pays_twice(database_url, tmp_path, monkeypatch):
    """C1 C2 C6 C8 H-21 H-24 H-30: a label of the set or a code, whatever the neighbours do; a copy
    costs nothing and says whose it is, in this execution and in the next."""
    monkeypatch.setattr(story, "read_file", read_or_die)
    monkeypatch.setattr(story, "_of", Forgetful(Papers().text(2)[0]))
    monkeypatch.setattr(story, "PROCESSOR", LITTLE)
    async with world(database_url, tmp_path) as there:
        made = Papers()
        papers = [made.make(n) for n in range(3)]
        papers += [made.make(n + 10, odd) for n, odd in enumerate(ODD)]
        copies = ["copia-1", "copia-2"]
        codes = [*(each.codigo for each in papers), *copies]
        project = await there.project(rules=RULES)
        execution = await there.handed_in(project, [*papers, papers[0], papers[0]], codes)
        slow = [*(made.make(n + 40, odd) for n, odd in enumerate(SLOW)), made.make(50)]
        beside = await there.handed_in(await there.project("outro", IMPATIENT), slow)
        await there.drained()

        told = await ended(there, execution, papers, but="DOC-00002")
        assert ("exception", 2) == tuple(
            told["DOC-00002"][name] for name in ("erro_codigo", "tentativas")
        )
        tried = [each for each in papers if each.n != 2]
        assert {each.codigo: 3 if each.code in AGAIN else 1 for each in tried} == {
            each.codigo: told[each.codigo]["tentativas"] for each in tried
        }
        first = told[papers[0].codigo]
        assert [(first["rotulo"], first["id"])] * 2 == [
            (told[code]["rotulo"], told[code]["origem"]) for code in copies
        ]
        texts = {await there.text(execution, told[code]["id"]) for code in (*copies, codes[0])}
        assert [made.text(0)[0]] == [each.partition("\n")[0] for each in texts]
        aside = await ended(there, beside, slow)
        assert {1} == {each["tentativas"] for each in aside.values()}
        assert [True] == [each["revisar"] for each in aside.values() if each["rotulo"]]
        asked = there.asked()
        assert {1} == {asked[each.n] for each in papers if each.code is None}
        assert 0 == sum(asked[each.n] for each in (*papers, *slow) if each.odd in READ)
        await assert_nothing_is_quoted(there, made)

        again = await there.handed_in(project, papers[:3])
        await there.drained()
        later = await ended(there, again, papers[:3])
        assert asked == there.asked()
        assert [told[each.codigo]["id"] for each in papers[:3]] == [
            later[each.codigo]["origem"] for each in papers[:3]
        ]
        assert await there.app.costs.of_batch(execution)
        assert not await there.app.costs.of_batch(again)


class Forgetful:
    """Fails once, after the answer of that document was paid for and committed."""

    def __init__(self, first: str) -> None:
        self._left = {first}
        self._of = story._of

    def __call__(self, answer: Answer, read: Read) -> Classified:
        line = read.text.partition("\n")[0]
        if line in self._left:
            self._left.remove(line)
            raise RuntimeError(f"no room for {CODE_2}: {line}, exordial, requerente")
        return self._of(answer, read)


async def ended(
    there: World, execution: int, papers: Sequence[Paper], but: str = ""
) -> dict[str, Any]:
    """Every document by its code, when each has ended as it must; `but`: that one after an error."""
    assert "CONCLUIDO" == (await there.stand(execution)).status
    told = {each["codigo"]: each for each in await there.results(execution)}
    assert {each.codigo: (each.label, each.code) for each in papers} == {
        each.codigo: (
            told[each.codigo]["rotulo"],
            None if each.codigo == but else told[each.codigo]["erro_codigo"],
        )
        for each in papers
    }
    return told


async def assert_nothing_is_quoted(there: World, made: Papers) -> None:
    """C8: no line of any document stands in what is told of failures."""
    rows = await there.rows(
        "SELECT details FROM events WHERE type IN ('failed', 'buried', 'step_failed')"
    )
    told = json.dumps([each for (each,) in rows], ensure_ascii=False)
    lines = [line for n in range(30) for line in made.text(n)[2:]]
    assert rows
    assert [] == [line for line in (*lines, "no room for DOC") if line in told]
