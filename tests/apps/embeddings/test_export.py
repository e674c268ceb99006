"""A collection as a file: every chunk once with its vector, as JSONL and as Parquet, read by others' readers."""

import io
import json
from typing import Any

import numpy as np
from pyarrow import parquet

from retoma.apps.embeddings import export
from retoma.testing import drain
from tests.apps.embeddings.aids import long_text
from tests.apps.embeddings.test_api import ROOT, TEXTS, documents, site

EXPORT = f"{ROOT}/collections/livros/export"


async def vectors(app: Any) -> dict[tuple[int, int], list[float]]:
    """As they lie in the database."""
    found: dict[tuple[int, int], list[float]] = {}
    async for page in export.exported(app, 1):
        for each in page:
            found[each.document, each.ordinal] = np.frombuffer(each.vector, "<f4").tolist()
    return found


async def test_a_collection_is_saved_whole_in_either_form(database_url, monkeypatch):
    """Over several pages, a document longer than one of them; what is not embedded yet is not there."""
    monkeypatch.setattr(export, "PAGE", 7)
    async with site(database_url) as (app, those):
        given = documents({**TEXTS, "longo.txt": long_text("casa", 40)})
        given["documents"][0]["metadata"] = {"autor": "Ana", "ano": 2024}
        await those["operator"].post(
            f"{ROOT}/collections", json={"name": "livros", "size": 200}
        )
        await those["operator"].post(f"{ROOT}/documents", json=given)
        await drain(app)
        await those["operator"].post(f"{ROOT}/documents", json=documents({"novo.txt": "novo"}))

        lines = await those["viewer"].get(EXPORT)
        table = await those["viewer"].get(EXPORT, params={"format": "parquet"})
        kept = await vectors(app)

    rows = [json.loads(line) for line in lines.text.splitlines()]
    columns = parquet.read_table(io.BytesIO(table.content)).to_pylist()
    assert "application/jsonl" == lines.headers["content-type"]
    assert 'filename="livros.parquet"' in table.headers["content-disposition"]
    assert {*TEXTS, "longo.txt"} == {row["name"] for row in rows}
    assert len(rows) > 2 * 7
    assert [*kept] == [(row["document"], row["ordinal"]) for row in rows]
    assert {"autor": "Ana", "ano": 2024} == rows[0]["metadata"]
    assert [np.float32(each) for each in kept[1, 0]] == [
        np.float32(each) for each in rows[0]["vector"]
    ]
    assert [*kept.values()] == [row["vector"] for row in columns]
    for row, column in zip(rows, columns, strict=True):
        assert row["metadata"] == json.loads(column["metadata"])
        assert {**row, "metadata": 0, "vector": 0} == {**column, "metadata": 0, "vector": 0}


async def test_an_empty_collection_is_an_empty_file(database_url):
    async with site(database_url) as (_, those):
        await those["operator"].post(f"{ROOT}/collections", json={"name": "livros"})
        lines = await those["viewer"].get(EXPORT)
        table = await those["viewer"].get(EXPORT, params={"format": "parquet"})

    assert (200, "") == (lines.status_code, lines.text)
    assert 0 == parquet.read_table(io.BytesIO(table.content)).num_rows


async def test_what_cannot_be_saved_is_refused(sqlite_url, monkeypatch):
    async with site(sqlite_url) as (_, those):
        gone = await those["viewer"].get(EXPORT)
        await those["operator"].post(f"{ROOT}/collections", json={"name": "livros"})
        other = await those["viewer"].get(EXPORT, params={"format": "csv"})
        monkeypatch.setattr(export, "find_spec", lambda _: None)
        missing = await those["viewer"].get(EXPORT, params={"format": "parquet"})

    assert (404, 422, 422) == tuple(each.status_code for each in (gone, other, missing))
    assert "pip install 'retoma[parquet]'" in missing.text
