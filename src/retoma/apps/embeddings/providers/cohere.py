"""Cohere's `/v2/embed`: rows in the order of the texts, and a request that says what a text is for."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from retoma.apps.embeddings.providers.http import HttpProvider
from retoma.apps.embeddings.providers.provider import InputType

INPUT_TYPES: Final[Mapping[InputType, str]] = {
    InputType.DOCUMENT: "search_document",
    InputType.QUERY: "search_query",
}


class Cohere(HttpProvider):
    name = "cohere"
    home = "https://api.cohere.com/v2"
    path = "/embed"
    usual_model = "embed-v4.0"
    usual_dims = 1536
    usual_most = 96
    usual_tokens = 128_000  # the models before the fourth take 512
    call_tokens = 128_000
    asymmetric = True

    def request(self, texts: Sequence[str], input_type: InputType) -> dict[str, Any]:
        body = {
            "model": self.model,
            "texts": texts,
            "input_type": INPUT_TYPES[input_type],
            "embedding_types": ["float"],
            "truncate": "NONE",  # a text that is too long is refused, not cut unseen
        }
        return (
            body if self.dimensions is None else {**body, "output_dimension": self.dimensions}
        )

    @staticmethod
    def rows(told: Mapping[str, Any], asked: int) -> Mapping[int, Any] | None:
        """Rows name no place: where one is missing nobody knows which, and none is believed."""
        given = told.get("embeddings")
        rows = given.get("float") if isinstance(given, dict) else None
        if not isinstance(rows, list):
            return None
        return dict(enumerate(rows)) if len(rows) == asked else {}

    @staticmethod
    def usage(told: Mapping[str, Any]) -> tuple[Any, Any]:
        meta = told.get("meta")
        billed = meta.get("billed_units") if isinstance(meta, dict) else None
        return (billed.get("input_tokens") if isinstance(billed, dict) else None), None
