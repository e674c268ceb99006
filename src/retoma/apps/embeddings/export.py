"""A collection as a file: one row for each chunk, with its text, its metadata and its vector, as JSONL or Parquet."""

import importlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from retoma.apps.embeddings import store
from retoma.apps.embeddings.model import MetadataValue
from retoma.engine.errors import BadInput
from retoma.library import Retoma
from retoma.words import say

PAGE: Final = 500  # chunks read at a time, and rows of one group of a Parquet file
DIGITS: Final = 9  # that tell every float32 from its neighbours
MEDIA: Final = {"jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


class Format(StrEnum):
    """What a collection is saved as."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkExported:
    """One row. `start` and `end`: where the text stands in its document."""

    document: int
    name: str
    metadata: dict[str, MetadataValue]
    ordinal: int
    start: int
    end: int
    text: str
    model: str
    version: str
    vector: bytes


class Listing(Protocol):
    """Writes rows page by page."""

    def add(self, page: Sequence[ChunkExported]) -> None: ...
    def end(self) -> None: ...


def listing_for(as_: Format) -> Callable[[BinaryIO], Listing]:
    """Raises BadInput where Parquet is asked for and pyarrow is not installed."""
    if as_ is Format.JSONL:
        return _Jsonl
    if find_spec("pyarrow") is None:
        raise BadInput(
            say("Parquet needs pyarrow: pip install 'retoma[parquet]', or save as JSONL")
        )
    return _Parquet


async def exported(retoma: Retoma, collection: int) -> AsyncIterator[list[ChunkExported]]:
    """The chunks of a collection that have their vectors, a page at a time."""
    database = await retoma.database()
    after = (0, -1)
    while True:
        page = partial(store.chunks.export, collection=collection, after=after, n=PAGE)
        rows = await database.read(page)
        yield [_row(row) for row in rows]
        if len(rows) < PAGE:
            return
        after = (rows[-1][0], rows[-1][1])


def _row(row: Sequence[Any]) -> ChunkExported:
    document, ordinal, name, metadata, start, end, text, model, version, _, vector = row
    return ChunkExported(
        document=document,
        name=name,
        metadata=json.loads(metadata),
        ordinal=ordinal,
        start=start,
        end=end,
        text=text,
        model=model,
        version=version,
        vector=bytes(vector),
    )


class _Jsonl:
    """One JSON object for each line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, page: Sequence[ChunkExported]) -> None:
        for each in page:
            numbers = np.frombuffer(each.vector, dtype="<f4").tolist()
            told = _told(each) | {"metadata": each.metadata}
            told["vector"] = [float(f"{number:.{DIGITS}g}") for number in numbers]
            line = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
            self._file.write(line.encode() + b"\n")

    def end(self) -> None:
        """It has none."""


class _Parquet:
    """A table with a list of float32 for each vector; metadata is JSON text."""

    def __init__(self, file: BinaryIO) -> None:
        # Seconds to import: only whoever saves a Parquet file waits for it.
        self._arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
        arrow = self._arrow
        self._schema = arrow.schema(
            [
                ("document", arrow.int64()),
                ("name", arrow.string()),
                ("metadata", arrow.string()),
                ("ordinal", arrow.int32()),
                ("start", arrow.int64()),
                ("end", arrow.int64()),
                ("text", arrow.string()),
                ("model", arrow.string()),
                ("version", arrow.string()),
                ("vector", arrow.list_(arrow.float32())),
            ]
        )
        self._writer = parquet.ParquetWriter(file, self._schema)

    def add(self, page: Sequence[ChunkExported]) -> None:
        rows = [
            _told(each)
            | {
                "metadata": json.dumps(each.metadata, ensure_ascii=False),
                "vector": np.frombuffer(each.vector, dtype="<f4"),
            }
            for each in page
        ]
        if rows:
            self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def end(self) -> None:
        self._writer.close()


def _told(each: ChunkExported) -> dict[str, Any]:
    names = ("document", "name", "ordinal", "start", "end", "text", "model", "version")
    return {name: getattr(each, name) for name in names}
