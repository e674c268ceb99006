"""Every line of the design documents is shown by a test, or departed from by a decision with its reason."""

from dataclasses import replace

import pytest

from tests.seeds.extract import claims, names_in
from tests.seeds.table import Table, documents, names, problems, read_table

HELD = ("000", "001", "002", "003", "004")  # documents whose table is whole

DOCUMENT = """# 4. Estados em 3 fases

Um texto sem nada.
1. Outro texto.
- `PENDING` por 10 min em `/api/scrape/{id}`

```sql
SELECT id
┌──┐
FROM scrape_jobs
```
"""
ROW = {
    "lines": "5",
    "quote": "- `PENDING` por 10 min em `/api/scrape/{id}`",
}


@pytest.mark.parametrize("name", names())
def test_every_line_of_a_document_has_its_row_and_every_row_its_test(name):
    assert list(problems(read_table(name))) == []


def test_every_document_that_is_held_has_a_table():
    assert set(HELD) <= set(names())
    assert set(names()) <= set(documents() or names())


def test_a_line_says_something_by_its_names_numbers_and_code():
    assert list(claims(DOCUMENT)) == [4, 5, 8, 10]
    assert names_in(DOCUMENT) == {"PENDING", "/api/scrape/{id}", "scrape_jobs"}
    assert names_in('O `queued` de {"user_name": 1, "url": 2}') == {
        "queued",
        "user_name",
        "url",
    }
    assert names_in("Veja `locked_by`, lockedAt, ERROR104, /health e SELECT.") == {
        *("locked_by", "lockedAt", "ERROR104", "/health")
    }


def held(**row: object) -> list[str]:
    """What is wrong with a row of this table that was changed so."""
    table = read_table("003")
    first = next(each for each in table.rows if each.tests)
    return list(problems(Table("003", "away.md", [replace(first, **row)])))  # type: ignore[arg-type]


def test_a_row_is_refused_for_each_of_its_flaws():
    assert held() == []
    assert "there is no test tests/no.py::test_no" in held(tests=("tests/no.py::test_no",))[0]
    assert "there is no test" in held(tests=("tests/seeds/test_seeds.py::test_nothing",))[0]
    assert "it needs `tests`" in held(tests=(), why="soon")[0]
    assert held(tests=(), why="The old system is gone: nothing of it is left.") == []
    assert "it needs `kept`" in held(kept=())[0]
    assert "src/nowhere is not there" in held(kept=("src/nowhere",))[0]
    assert "there is no page" in held(decision="docs/decisions/9999-no.md")[0]
    assert "mention no_such_name" in held(quote="`no_such_name`")[0].replace("\n", " ")
    assert held(quote="`no_such_name`", other={"no_such_name": "scrape_jobs"}) == []


def test_a_document_is_compared_with_its_table_where_it_lies_beside():
    table = read_table("003")
    if table.text() is None:
        assert documents() == []
        return
    fewer = Table(table.name, table.document, table.rows[1:])
    assert any("has no row" in each for each in problems(fewer))
    other = replace(table.rows[0], quote=table.rows[0].quote + "?")
    changed = Table(table.name, table.document, [other, *table.rows[1:]])
    assert any("the document says something else" in each for each in problems(changed))
