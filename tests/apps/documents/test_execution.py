"""An execution: how it stands follows from its documents, at every instant."""

from retoma.apps.documents.model import STATUS
from retoma.engine.rules.states import State
from tests.apps.documents.aids import house, paper


async def test_c1_it_has_ended_when_every_document_has(database_url):
    """C1 C8: the counts add up; what failed says by what, how often and when."""
    async with house(database_url) as there:
        papers = [paper("A-1"), paper("A-2", "corrupt.pdf"), paper("A-3", "stumble.pdf")]
        execution = await there.execution(papers)
        assert "PENDENTE" == (await there.stand(execution)).status
        await there.drained()

        assert "CONCLUIDO" == (await there.stand(execution)).status
        told = {each["codigo"]: each for each in await there.results(execution)}
        assert ["CONCLUIDO", "ERRO", "ERRO"] == [told[f"A-{n}"]["status"] for n in (1, 2, 3)]
        assert ["petição", None, None] == [told[f"A-{n}"]["rotulo"] for n in (1, 2, 3)]
        assert [1, 1, 3] == [told[f"A-{n}"]["tentativas"] for n in (1, 2, 3)]
        assert [None, "corrupt", "bad_answer"] == [
            told[f"A-{n}"]["erro_codigo"] for n in (1, 2, 3)
        ]
        counts = await (await there.app.batches.get(execution)).counts()
        assert {State.DONE: 1, State.DEAD: 2} == counts


async def test_c1_the_view_says_of_each_state_what_the_code_says(database_url):
    """Whoever reads the table of the document and whoever counts must come to the same."""
    async with house(database_url) as there:
        execution = await there.execution([paper("A-1")])
        told = {}
        for state in State:
            runner = "'r'" if state is State.RUNNING else "NULL"
            await there.change(f"UPDATE jobs SET state = '{state}', runner = {runner}")  # noqa: S608
            [told[state]] = [each["status"] for each in await there.results(execution)]
        assert STATUS == told
