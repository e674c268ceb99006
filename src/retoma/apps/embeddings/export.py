"""Write the chunks of a collection to a file, with text, metadata and vector: as JSONL or Parquet."""

import importlib
import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from retoma.apps.embeddings.store.chunks import ExportedChunk
from retoma.engine.rules.errors import BadInput
from retoma.words import say

DIGITS: Final = 9  # that tell every float32 from its neighbours
MEDIA: Final = {"jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


class Format(StrEnum):
    """What a collection is saved as."""

    JSONL = "jsonl"
    PARQUET = "parquet"


class Listing(Protocol):
    """Writes rows page by page."""

    def add(self, page: Sequence[ExportedChunk]) -> None: ...
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


class _Jsonl:
    """One JSON object for each line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, page: Sequence[ExportedChunk]) -> None:
        for each in page:
            numbers = np.frombuffer(each.vector, dtype="<f4").tolist()
            line = _plain_fields(each) | {"metadata": each.metadata}
            line["vector"] = [float(f"{number:.{DIGITS}g}") for number in numbers]
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
            self._file.write(text.encode() + b"\n")

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

    def add(self, page: Sequence[ExportedChunk]) -> None:
        rows = [
            _plain_fields(each)
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


def _plain_fields(each: ExportedChunk) -> dict[str, Any]:
    names = ("document", "name", "ordinal", "start", "end", "text", "model", "version")
    return {name: getattr(each, name) for name in names}
