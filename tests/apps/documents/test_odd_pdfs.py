"""Show 2: odd PDF files end to end: each ends with a label or with a code that says why, and costs no other."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from retoma.apps.documents.intake import clean_name
from retoma.apps.documents.sandbox import Paper, Papers
from tests.apps.documents.odd_pdfs import KINDS, OF_DAMAGE, odd_pdfs
from tests.apps.documents.test_story import RULES, World, world

ONCE = replace(RULES, max_retries_documento=0)


@pytest.mark.parametrize(
    "n",
    [
        pytest.param(2 * len(KINDS), id="gate"),
        pytest.param(200, id="200", marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
    ],
)
async def test_every_odd_file_ends_with_a_label_or_a_code(database_url, tmp_path: Path, n):
    files = odd_pdfs(n)
    async with world(database_url, tmp_path) as there:
        blank = Papers().make(0)
        papers: list[Paper] = [
            replace(blank, name=each.name, content=each.content) for each in files
        ]
        names = [clean_name(each.name) for each in files]
        execution = await there.handed_in(await there.project(rules=ONCE), papers, names)
        await there.drained()

        assert "CONCLUIDO" == (await there.stand(execution)).status
        told = {each["codigo"]: each for each in await there.results(execution)}
        for file, name in zip(files, names, strict=True):
            found = told[name]["erro_codigo"]
            if file.damaged:
                assert (found in OF_DAMAGE) != (told[name]["rotulo"] is not None), told[name]
            else:
                assert file.code == found, told[name]
                assert (file.code is None) == (told[name]["rotulo"] is not None)
        ends = Counter(each["erro_codigo"] or "label" for each in told.values())
        print(f"{n} odd files: {dict(ends)}", flush=True)
        assert n == sum(ends.values())
        await _nothing_was_asked_twice(there)


async def _nothing_was_asked_twice(there: World) -> None:
    inputs = [each["input"] for each in there.service.log.read(0)]
    assert len(set(inputs)) == len(inputs)
