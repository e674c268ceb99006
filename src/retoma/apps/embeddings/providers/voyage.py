"""Voyage AI's `/embeddings`: OpenAI's answer, and a request that says what a text is for."""

from collections.abc import Mapping, Sequence
from typing import Any

from retoma.apps.embeddings.providers.http import HttpProvider, indexed_rows
from retoma.apps.embeddings.providers.provider import InputType


class Voyage(HttpProvider):
    name = "voyage"
    home = "https://api.voyageai.com/v1"
    path = "/embeddings"
    usual_model = "voyage-3.5"
    usual_dims = 1024
    usual_most = 128  # newer models take more
    usual_tokens = 32_000
    call_tokens = 120_000  # what the strictest of its models takes
    asymmetric = True

    def request(self, texts: Sequence[str], input_type: InputType) -> dict[str, Any]:
        body = {
            "model": self.model,
            "input": texts,
            "input_type": input_type.value,
            "truncation": False,  # a text that is too long is refused, not cut unseen
        }
        return (
            body if self.dimensions is None else {**body, "output_dimension": self.dimensions}
        )

    @staticmethod
    def rows(told: Mapping[str, Any], asked: int) -> Mapping[int, Any] | None:
        return indexed_rows(told, asked)

    @staticmethod
    def usage(told: Mapping[str, Any]) -> tuple[Any, Any]:
        usage = told.get("usage")
        return (usage.get("total_tokens") if isinstance(usage, dict) else None), None
