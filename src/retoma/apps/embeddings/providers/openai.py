"""OpenAI's `/embeddings`, and any endpoint that speaks as it does."""

from collections.abc import Mapping, Sequence
from typing import Any

from retoma.apps.embeddings.providers.http import HttpProvider, indexed_rows
from retoma.apps.embeddings.providers.provider import InputType


class OpenAI(HttpProvider):
    name = "openai"
    home = "https://api.openai.com/v1"
    path = "/embeddings"
    model_path = "/models/{model}"
    usual_model = "text-embedding-3-small"
    usual_dims = 1536
    usual_most = 256
    usual_tokens = 8_192
    call_tokens = 300_000

    def request(
        self,
        texts: Sequence[str],
        input_type: InputType,  # noqa: ARG002 — a text is a text there
    ) -> dict[str, Any]:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        return body if self.dimensions is None else {**body, "dimensions": self.dimensions}

    @staticmethod
    def rows(told: Mapping[str, Any], asked: int) -> Mapping[int, Any] | None:
        return indexed_rows(told, asked)

    @staticmethod
    def usage(told: Mapping[str, Any]) -> tuple[Any, Any]:
        """OpenAI itself names no dollars; others of its shape do."""
        usage = told.get("usage")
        if not isinstance(usage, dict):
            return None, None
        return usage.get("prompt_tokens", usage.get("total_tokens")), usage.get("cost")
